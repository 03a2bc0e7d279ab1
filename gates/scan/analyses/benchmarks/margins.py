"""The two arms that a comparison is of, with whatever margin, and which one of them should be the smaller."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.benchmarks.benching import called, is_baseline, is_benchmark, is_candidate, words
from gates.scan.analyses.benchmarks.units import unit_by_name
from gates.scan.analyses.reading.code import constant, function_of, tail_text
from gates.scan.analyses.reading.flow import set_before
from gates.scan.program.module import Module, tail_of
from gates.scan.program.signatures import parameters

SIZE = re.compile(r"(?i)(^|[^a-z])(peak|memory|mem|bytes|mib|mb|gib|gb|vram|footprint)([^a-z]|$)")
T = re.compile(r"(?i)(?<![a-z])(t(?![a-z])|s$)")  # a time, or seconds
KEPT = re.compile(r"(?i)(^|[^a-z])(previous|prev|golden|recorded|stored|committed|upstream|main|master)([^a-z]|$)")
ARMS = re.compile(
    r"(?i)^(now|current|this|new|latest|base|baseline|reference|ref|previous|prev|golden|recorded|stored)$"
)
NEAR = (0.7, 1.5)
SHARES = (0.55, 1.5)


def left_is_smaller(compare: ast.Compare, module: Module) -> bool | None:
    """Return whether the left one of two arms should be the smaller one; `None` for no times or sizes of arms."""
    left, right = _sides(compare, module)
    one, other = arm(left), arm(right)
    texts = called(one, module), called(other, module)
    units = {_unit(text) for text in texts}
    kind = units.pop() if len(units) == 1 else None
    old = is_baseline(texts[0]), is_baseline(texts[1])
    if kind is None or is_candidate(texts[0]) is is_candidate(texts[1]):
        has_margin = (one, other) != (compare.left, compare.comparators[0])
        if kind is None or not (has_margin or is_benchmark(compare, module)) or _measure(one) != _measure(other):
            return None
        old = _is_old(texts[0]), _is_old(texts[1])
        return old[1] is (kind != "rate") if old[0] is not old[1] else None
    return is_candidate(texts[0]) is (kind != "rate") if old[0] is not old[1] else None


def share_is_smaller(value: ast.expr) -> bool | None:
    """Return whether a share of two arms is better where it is small; `None` for no times, rates or sizes of arms."""
    while isinstance(value, ast.Call) and value.args and tail_of(value.func) in {"round", "float"}:
        value = value.args[0]
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Div):
        return None
    texts = tail_text(value.left), tail_text(value.right)
    units = {_unit(text) for text in texts}
    kind = units.pop() if len(units) == 1 else None
    old = _is_old(texts[0]), _is_old(texts[1])
    if kind is None or old[0] is old[1] or _measure(value.left) != _measure(value.right):
        return None
    return old[1] is (kind != "rate")


def _unit(text: str) -> str | None:
    if SIZE.search(words(text)):
        return "size"
    return unit_by_name(text) or unit_by_name(T.sub("time", words(text)))


def arm(node: ast.expr) -> ast.expr:
    """Return the arm of one with a margin: of `baseline.step_ms * max_slowdown`, `baseline.step_ms`."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult | ast.Div | ast.Add | ast.Sub):
        return node
    sides = [node.left, node.right] if isinstance(node.op, ast.Mult | ast.Add) else [node.left]
    found = [side for side in sides if _is_old(tail_text(side)) or is_candidate(tail_text(side))]
    other = constant(node.right if found == [node.left] else node.left)
    is_far = isinstance(other, int | float) and isinstance(node.op, ast.Mult | ast.Div) and not _is_near(other)
    return node if len(found) != 1 or is_far else found[0]  # what is far off is no margin, but a bound of sense


def _is_old(text: str) -> bool:
    """Return whether a name is that of the old arm, or of what was kept of an earlier run."""
    return is_baseline(text) or (KEPT.search(words(text)) is not None and not is_candidate(text))


def _measure(node: ast.expr) -> list[str]:
    """Return the words for what is measured of an arm: of `base["step_ms"]` and of `base_step_ms`, `step ms`."""
    own = constant(node.slice) if isinstance(node, ast.Subscript) else tail_of(node)
    return [word for word in words(str(own or "")).lower().split() if not ARMS.match(word)]


def _sides(compare: ast.Compare, module: Module) -> tuple[ast.expr, ast.expr]:
    """Return what is compared, also as a share or a difference: of `new / old < 1.05` and `new - old < 3`, both."""
    left, right = compare.left, compare.comparators[0]
    for value, bar in ((left, right), (right, left)):
        for one, other in _related(_seen(value, module), _written(bar, module)):
            return (one, other) if value is left else (other, one)
    found = [_seen(side, module) for side in (left, right)]
    bars = [made if isinstance(made, ast.BinOp) and arm(made) is not made else None for made in found]
    return bars[0] or left, bars[1] or right


def _written(bar: ast.expr, module: Module) -> ast.expr:
    """Return the number that a bar is, where its file names it once, or as its default: `MEMORY_BAR = 0.85`."""
    if not isinstance(bar, ast.Name):
        return bar
    made = _default(bar, module)
    bound = [b.node for b in module.bindings.get(bar.id, ())]
    made = bound[0] if made is None and len(bound) == 1 else made
    return made if isinstance(made, ast.Constant) else bar


def _default(name: ast.Name, module: Module) -> ast.AST | None:
    """Return what a parameter is where it is not handed."""
    function = function_of(name, module)
    return parameters(function).get(name.id) if function is not None else None


def _related(value: ast.expr, bar: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the two arms of a share that is held against about one, or of a difference; of `1 - new / old`, turned."""
    if not isinstance(value, ast.BinOp):
        return
    rest, number = value.right, constant(bar)
    if constant(value.left) == 1 and isinstance(value.op, ast.Sub) and isinstance(number, int | float):
        left_over = ast.Constant(1 - number)
        yield from ((other, one) for one, other in _related(rest, left_over) if isinstance(rest, ast.BinOp))
        return
    if isinstance(value.op, ast.Div) and isinstance(value.left, ast.BinOp) and isinstance(value.left.op, ast.Sub):
        value = value.left if ast.dump(value.left.right) == ast.dump(value.right) else value
    is_share = isinstance(value.op, ast.Div) and _is_about_one(bar)
    told = [_is_old(tail_text(side)) for side in (value.left, value.right)]
    if (is_share or isinstance(value.op, ast.Sub)) and told[0] is not told[1]:
        yield value.left, value.right


def _is_about_one(bar: ast.expr) -> bool:
    if isinstance(bar, ast.BinOp) and isinstance(bar.op, ast.Add | ast.Sub):
        return constant(bar.left) == 1 or (isinstance(bar.op, ast.Add) and constant(bar.right) == 1)
    number = constant(bar)
    return isinstance(number, int | float) and SHARES[0] < number < SHARES[1]


def _is_near(number: float) -> bool:
    return NEAR[0] < number < NEAR[1]


def _seen(node: ast.expr, module: Module) -> ast.expr:
    """Return the share, the difference or the bar behind a variable that is set once before."""
    if not isinstance(node, ast.Name):
        return node
    found = set_before(function_of(node, module) or module.tree, node.id, node.lineno)
    return found[0][0] if len(found) == 1 else node
