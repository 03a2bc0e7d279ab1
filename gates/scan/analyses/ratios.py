"""Ratios of two arms the wrong way up."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.benchmarks.benching import (
    GAIN,
    RATE,
    SAVED,
    are_of_one_kind,
    called,
    is_baseline,
    is_candidate,
    words,
)
from gates.scan.analyses.benchmarks.directions import by_name
from gates.scan.analyses.benchmarks.formulas import formulas
from gates.scan.analyses.benchmarks.named_quotients import misnamed
from gates.scan.analyses.benchmarks.units import unit
from gates.scan.analyses.reading.code import broken, constant, function_of, tail_text
from gates.scan.program.module import Module, tail_of
from gates.scan.program.project import Project
from gates.scan.site import Site

SHARE = re.compile(r"(?i)ratio|factor|left|remain|_x$|fold|[ _]to$")
ACCURACY = re.compile(r"(?i)(^|[^a-z])(acc|accuracy|top1|hit_rate|precision|recall)([^a-z]|$)")
HITS = re.compile(r"(?i)(^|[^a-z])(correct|hits?|right|matche[sd]|matching|tp)([^a-z]|$)")
WHOLE = re.compile(r"(?i)(^|[^a-z])(total|n|count|seen|len|size|numel|num|examples|samples)([^a-z]|$)")
USED = re.compile(r"(?i)(^|[^a-z])(mfu|hfu|utili[sz]ation|util|occupancy)([^a-z]|$)")
MOST = re.compile(r"(?i)(^|[^a-z])(peak|available|max|maximum|theoretical|promised|rated|capacity)([^a-z]|$)")
LAPS = re.compile(r"(?i)(^|[^a-z])(p\d\d|median|mean|avg|average|quantile|percentile)([^a-z]|$)")  # as of times
PER = re.compile(r"(?:^|_)([a-z]{4,}?)(?:e?s)?_per_")
TIMED = re.compile(r"time|(^|_)(per|secs?|seconds|ms|duration)(_|$)")
SLOWER = re.compile(r"(?i)(^|_)slow_?down(_|$)")
SPENT = re.compile(r"(?i)(^|_)(ms|us|ns|secs?|seconds|time|latency)_per_(?!s(ec|econd)?($|_))")
OVER = re.compile(r"(?i)speed_?up_(over|vs|versus|against|from|relative_to|compared_to|with)$")
BETTER = re.compile(r"(?i)improve|gain|faster|quicker")
WORDS = ("improve*", "gain*", "speed*", "faster*", "saved*", "saving*", "reduction*", "reduced*", "acceleration*",
         "throughput*", "rate", "per_sec*", "_per_s*", "accuracy*", "mfu*", "hfu*", "utili*",
         "occupancy*", "ratio*", "baseline*", "_over_*")  # fmt: skip


def look(project: Project) -> Iterator[Site]:
    """Yield each speed-up that divides the new time by the old one, and each saving with its sign turned."""
    for module in project.modules.values():
        told: set[ast.expr] = set()
        for name, value in formulas(module):
            if value not in told and (problem := _problem(project, module, name, value)) is not None:
                told.add(value)
                yield broken(module, value, f"{name}{problem}")
        for value, name in misnamed(module):
            yield broken(module, value, f"{name} is divided the other way round, upside down")


def _problem(project: Project, module: Module, name: str, value: ast.expr) -> str | None:
    """Return what is wrong with a formula whose result is called so."""
    if BETTER.search(name) and (problem := _grown(project, module, value)) is not None:
        return f": {problem}"
    if GAIN.search(name):
        turned = [
            pair for pair in _quotients(value)
            if _is_turned(project, module, *pair) or (OVER.search(name) and _is_turned_over(project, module, *pair))
        ]  # fmt: skip
        texts = [_text(side, module).strip() for side in (turned[0] if turned else ())]
        return f" divides {texts[0]} by {texts[1]}, upside down" if texts else None
    if SLOWER.search(name) and any(_is_turned(project, module, *pair[::-1]) for pair in _quotients(value)):
        return " divides the old time by the new one, upside down"
    if SAVED.search(name):
        problem = _saving(value, module) or _left(name, value, module)
        return f": {problem}" if problem else None
    return _per_time(project, module, name, value) or _of_whole(name, value)


def _per_time(project: Project, module: Module, name: str, value: ast.expr) -> str | None:
    """Return what is wrong with a rate, or with a time for each of something."""
    pairs = list(_quotients(value))
    if (RATE.search(name) or name == "rate") and any(_is_inverse(project, module, name, *pair) for pair in pairs):
        return " divides a time by what was done in it, upside down"
    if SPENT.search(name) and any(_is_inverse(project, module, "", *pair[::-1]) for pair in pairs):
        return " divides what was done by the time that it took, upside down"
    return None


def _of_whole(name: str, value: ast.expr) -> str | None:
    """Return what is wrong with a share of what there is: of right answers, of what a device can do."""
    if ACCURACY.search(words(name)):
        sides = [[words(tail_text(side)) for side in pair] for pair in _quotients(value)]
        if any(WHOLE.search(left) and HITS.search(right) for left, right in sides):
            return " divides all by what is right, upside down"
    if USED.search(words(name)):
        sides = [[words(tail_text(side)) for side in pair] for pair in _quotients(value)]
        if any(MOST.search(left) and not MOST.search(right) for left, right in sides):
            return " divides what there is by what is used of it, upside down"
    return None


def _is_turned(project: Project, module: Module, over_: ast.expr, under_: ast.expr) -> bool:
    """Return whether a speed-up divides the wrong way: by both arms, or by one of them and what is clearly a time.

    Where nothing tells a time from a rate, only a statistic as of repeated times is taken for one.
    """
    left, right = _text(over_, module), _text(under_, module)
    told = [is_candidate(text) or is_baseline(text) for text in (left, right)]
    if not any(told):
        return False
    units = {each for each in (unit(project, module, side) for side in (over_, under_)) if each is not None}
    if len(units) > 1 or (not units and not all(LAPS.search(words(text)) for text in (left, right))):
        return False
    rate = "rate" in units
    over, under = (is_baseline, is_candidate) if rate else (is_candidate, is_baseline)
    if over(left) and under(right):
        return True
    if rate or not units:
        both = rate and all(unit(project, module, side) == "rate" for side in (over_, under_))
        return both and sum(told) == 1 and (over(left) or under(right))
    return (over(left) and not told[1]) or (under(right) and not told[0])


def _is_turned_over(project: Project, module: Module, over: ast.expr, under: ast.expr) -> bool:
    """Return whether a method that gives the speed-up over another object divides the wrong way."""
    function = function_of(over, module)
    names = [arg.arg for arg in function.args.args] if function is not None else []
    at = [names.index(root) if (root := _root(side)) in names else -1 for side in (over, under)]
    units = {unit(project, module, side) for side in (over, under)}
    return names[:1] == ["self"] and ((units == {"rate"} and at == [1, 0]) or (units == {"time"} and at == [0, 1]))


def _is_inverse(project: Project, module: Module, name: str, left: ast.expr, right: ast.expr) -> bool:
    """Return whether a rate divides a time by a count, or anything by what it says that there are so many of."""
    if unit(project, module, left) == "time" and unit(project, module, right) is None:
        return True
    if isinstance(constant(left), int | float) and unit(project, module, right) == "time":
        return False
    counted = PER.search(name.lower())
    texts = [tail_text(side).lower() for side in (left, right)]
    told = [counted is not None and counted[1] in text and not TIMED.search(text) for text in texts]
    return told == [False, True]


def _grown(project: Project, module: Module, value: ast.expr) -> str | None:
    """Return what is wrong with a gain that is the growth of a time: `(new - old) / old`."""
    for over, _ in _quotients(value):
        top = _unscaled(over)
        if not isinstance(top, ast.BinOp) or not isinstance(top.op, ast.Sub):
            continue
        if not is_candidate(_text(top.left, module)) or not is_baseline(_text(top.right, module)):
            continue
        if {unit(project, module, side) for side in (top.left, top.right)} == {"time"}:
            return "the old arm's time is subtracted from the new one's, so a gain is negative"
    return None


def _left(name: str, value: ast.expr, module: Module) -> str | None:
    """Return what is wrong with a saving that is the share which is left."""
    if SHARE.search(name):
        return None
    texts = [(_text(left, module), _text(right, module)) for left, right in _quotients(value)]
    pairs = [(left, right) for left, right in texts if is_candidate(left) and is_baseline(right)]
    return "the new arm divided by the old one is the share that is left" if pairs else None


def _quotients(value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield both sides of a division that makes a value, in percent or rounded, too."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        sides = (value.left, value.right)
        if any(isinstance(side, ast.Constant) for side in sides):
            yield from (pair for side in sides for pair in _quotients(side))
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
        yield value.left, value.right
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub) and constant(value.right) in (1, 100):
        yield from _quotients(value.left)
    elif isinstance(value, ast.Call) and tail_of(value.func) in {"round", "float", "abs"} and value.args:
        yield from _quotients(value.args[0])
    elif isinstance(value, ast.IfExp):
        yield from _quotients(value.body)


def _text(node: ast.expr, module: Module) -> str:
    """Return the names that a side is made of; a mean or median is what it is of."""
    if isinstance(node, ast.Call) and node.args:
        return f"{tail_text(node.func)} {_text(node.args[0], module)}"
    if isinstance(node, ast.BinOp):
        return f"{_text(node.left, module)} {_text(node.right, module)}"
    return " ".join([called(node, module), *_keys(node)])


def _root(node: ast.expr) -> str:
    """Return the variable that a field is of: of `other.stats["ms"]`, `other`."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _keys(node: ast.expr) -> Iterator[str]:
    """Yield the names that a side is looked up by: of `results[base]["ms"]`, `base`."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name):
            yield node.slice.id
        node = node.value


def _unscaled(node: ast.expr) -> ast.expr:
    """Return what is rounded, or multiplied by a constant: of `100 * (old - new)`, `old - new`."""
    if isinstance(node, ast.Call) and tail_of(node.func) in {"round", "float"} and node.args:
        return _unscaled(node.args[0])
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return node
    sides = [side for side in (node.left, node.right) if not isinstance(side, ast.Constant)]
    return _unscaled(sides[0]) if len(sides) == 1 else node


def _is_unnamed_arm(text: str, other: str) -> bool:
    """Return whether a value that names no arm is the same as another one is: of `row.peak` and `base.peak`, each."""
    return not is_baseline(text) and not is_candidate(text) and are_of_one_kind(text, other)


def _sides(node: ast.expr, kind: type[ast.operator]) -> tuple[ast.expr, ast.expr] | None:
    """Return both sides of a difference or a quotient, in percent, too."""
    inside = _unscaled(node)
    return (inside.left, inside.right) if isinstance(inside, ast.BinOp) and isinstance(inside.op, kind) else None


def _saving(value: ast.expr, module: Module) -> str | None:
    """Return what is wrong with a share that is saved: it is 1 - new / old, or (old - new) / old."""
    inside = _unscaled(value)
    if isinstance(inside, ast.BinOp) and isinstance(inside.op, ast.Mult):
        return _saving(inside.left, module) or _saving(inside.right, module)
    share = _sides(inside, ast.Div)
    difference = _sides(share[0] if share is not None else inside, ast.Sub)
    left = _sides(difference[1], ast.Div) if difference is not None and share is None else None
    texts = [_text(side, module) for side in left or ()]
    if texts and is_baseline(texts[0]) and (is_candidate(texts[1]) or _is_unnamed_arm(texts[1], texts[0])):
        return "the old arm is divided by the new one, upside down"
    grown = _sides(difference[0], ast.Div) if difference is not None and constant(difference[1]) == 1 else None
    if grown is not None and is_candidate(_text(grown[0], module)) and is_baseline(_text(grown[1], module)):
        return "one is subtracted from the share that is left, so a saving is negative"
    texts = [_text(side, module) for side in difference or ()]
    is_field = share is not None and texts != [] and _is_unnamed_arm(*texts) and not by_name(texts[0])
    if texts and is_baseline(texts[1]) and (is_candidate(texts[0]) or is_field):
        return "the old arm is subtracted from the new one, so a saving is negative"
    return None
