"""Verdicts of a benchmark that pass what is bad."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.benchmarks.bars import bars, is_range, of_shares, problem_of
from gates.scan.analyses.benchmarks.benching import called, is_baseline, is_benchmark, words
from gates.scan.analyses.benchmarks.best import parts, worse_kept
from gates.scan.analyses.benchmarks.contrasts import is_contrast, is_of_range
from gates.scan.analyses.benchmarks.directions import by_name
from gates.scan.analyses.benchmarks.labelled import labelled
from gates.scan.analyses.benchmarks.margins import arm, left_is_smaller
from gates.scan.analyses.benchmarks.patience import out_of_patience
from gates.scan.analyses.benchmarks.siblings import beside, is_written
from gates.scan.analyses.benchmarks.verdicts import answers, verdicts
from gates.scan.analyses.reading.code import Told, broken, constant, nodes, tail_text
from gates.scan.analyses.settings.defaults import callers_pass
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import text_of
from gates.scan.program.project import Project
from gates.scan.site import Site

WORDS = ("speed*", "faster*", "saved*", "saving*", "reduction*", "reduced*", "overhead*", "drop*",
         "degradation*", "diff*", "best*", "floor*", "limit*", "budget*", "minimum*", "better*", "improved*",
         "accept*", "tolerance*", "monitor*", "passed*", "verdict*", "max_*", "target*", "threshold*", "worth*",
         "required*", "passes*", "peak*", "slower*", "select*", "exit*", "lighter*")  # fmt: skip
MORE = re.compile(r"(?i)speed_?up|faster|acceleration|saved|saving|reduction|reduced|decrease|throughput")
LESS = re.compile(
    r"(?i)overhead|degradation|(^|_)drop(_|$)|_drop|drop_|accuracy_loss|(^|_)(abs_?|max_?)?diff(erence)?(_|$)|"
    r"(^|_)error(_|$)|^abs$|(^|_)(deviation|drift|slowdown|regression|gap)(_|$)"
)
FLOOR = re.compile(r"(?i)(^|[_ ])(floor|minimum|at_least|lower_bound|lower_limit|min)([_ ]|$)")
CEILING = re.compile(
    r"(?i)(^|[_ ])(ceiling|maximum|at_most|upper_bound|limit|budget|tolerance|tol|atol|rtol|max)([_ ]|$)"
)
BAR = re.compile(
    r"(?i)target|min|wanted|expected|least|floor|threshold|required|bar|limit|tol|max|goal|budget|ceiling|allowed"
)
COUNTS = re.compile(
    r"(?i)(^|[_ ])(steps?|epochs?|iters?|iterations?|counts?|num|n|len|size|attempts?|retries|patience|i|idx|index|"
    r"time|elapsed|age|length|seen|total|done|shape|dim|ndim|rank|version|value|x)([_ ]|$)"
)
COUNTED = re.compile(r"(?i)(^|_)(asserted|reached|met|achieved|exceed(ed|s)?|allowed)(_|$)")
FILTERS = re.compile(r"(?i)(^|[_ ])(scores?|ious?|errors?)(?=[_ ]|$)")  # what single things are chosen by
AT_LEAST = re.compile(r"(?i)(^|[^a-z])(at[ _]least|minimum|floor|no[ _]less|lower[ _]bound)([^a-z]|$)")
AT_MOST = re.compile(r"(?i)(^|[^a-z])(at[ _]most|maximum|ceiling|no[ _]more|upper[ _]bound)([^a-z]|$)")
WORST = re.compile(r"(?i)(^|[_ ])(worst|permitted|acceptable|tolerated|promised|claimed)(_|$)")
FIGURES = re.compile(r"(?i)(^|[_ ])(metrics|scores|accurac(y|ies)|results|ratios|speed_?ups|figures)([_ ]|$)")
STOPS = re.compile(r"(?i)stop|done|reached|converged|finish|exit|complete")
WRONG = re.compile(r"(?i)fail|problem|error|violation|regression|bad|broken")


def look(project: Project) -> Iterator[Site]:
    """Yield each place of a comparison that counts a small gain, or a large loss, as passed, once."""
    yield from {(site.path, site.line): site for site in reversed([*_found(project)])}.values()


def _found(project: Project) -> Iterator[Site]:
    for module in project.modules.values():
        for name, value, good in verdicts(module):
            for compare, wanted in _conjuncts(value, wanted=good):
                if (problem := _problem(project, module, compare, name, wanted=wanted)) is not None:
                    yield broken(module, compare, f"{name}: {problem}")
        for name, compare, called_so, good in labelled(module):
            if (problem := _turned(module, called_so, name, wanted=good)) is not None:
                yield broken(module, compare, f"{name}: {problem.replace(text_of(called_so), text_of(compare))}")
        yield from _barred(project, module)
        found = (*worse_kept(project, module), *_failures(module), *_odd(module), *out_of_patience(module))
        yield from (broken(module, place, problem) for place, problem in found)
    for module, name, value, good in answers(project):
        for compare, wanted in _conjuncts(value, wanted=good):
            if (problem := _problem(project, module, compare, name, wanted=wanted)) is not None:
                yield broken(module, compare, f"{name}: {problem}")


def _barred(project: Project, module: Module) -> Iterator[Site]:
    """Yield each condition of a table that is met by what is bad: by its name, or by how that is measured."""
    found = list(bars(project, module))
    for bar in (each for each in found if not is_range(each, found)):
        problem = _turned(module, bar.meant, "", wanted=bar.is_good)
        way: list[Told] = []
        if problem is None and (share := of_shares(project, bar)) is not None:
            problem = problem_of(bar, smaller=share[0])
            way = [("measured", share[1][1], share[1][0])]
        if problem is not None:
            told = problem.replace(text_of(bar.meant), text_of(bar.written))
            yield broken(module, bar.written, f"{bar.name}: {told}", *way)


def _problem(project: Project, module: Module, compare: ast.Compare, name: str, *, wanted: bool) -> str | None:
    """Return what is wrong with a verdict's comparison, by its own names or by what callers pass for its bar."""
    if is_contrast(module, compare):
        return None
    problem, passed = _turned(module, compare, name, wanted=wanted), _as_passed(project, module, compare)
    if problem is not None or passed is None:
        return problem
    problem = _turned(module, passed, name, wanted=wanted)
    return problem.replace(text_of(passed), text_of(compare)) if problem is not None else None


def _as_passed(project: Project, module: Module, compare: ast.Compare) -> ast.Compare | None:
    """Return a comparison with its bar, a parameter that does not tell its side, as all callers have it that tell."""
    sides = [compare.left, *compare.comparators]
    bars = [s for s in sides if isinstance(s, ast.Name) and BAR.search(s.id) and _by_bar(s) is None]
    if len(bars) != 1:
        return None
    given = [value for value, _ in callers_pass(bars[0].id, project.scope_at(bars[0], module))]
    told = {_by_bar(value) for value in given}
    if len(told) != 1 or None in told:
        return None
    sides[sides.index(bars[0])] = given[0]
    return ast.copy_location(ast.Compare(sides[0], compare.ops, sides[1:]), compare)


def _odd(module: Module) -> Iterator[tuple[ast.Compare, str]]:
    """Yield the comparison that is true of what is bad where those beside it are true of what is good."""
    for entries, told in beside(module):
        judged = [
            (c, says if wanted or says is None else not says)
            for value in entries for c, wanted in _conjuncts(value, wanted=True)
            for says in [_is_good(module, c)]
        ]  # fmt: skip
        good = sum(says is True for _, says in judged)
        bad = sum(says is False for _, says in judged)
        wanted = good > bad if good != bad else told
        if not good or not bad or wanted is None or (told is not None and told is not wanted):
            continue
        plain = (isinstance(c.comparators[0], ast.Constant) and is_written(c, module) for c, _ in judged)
        if told is None and all(plain):
            continue
        for compare, says in judged:
            if says is not None and says is not wanted:
                what = f"{text_of(compare).lstrip('.')} is true of what is {'bad' if wanted else 'good'}"
                yield compare, f"{what}, unlike those beside"


def _is_good(module: Module, compare: ast.Compare) -> bool | None:
    """Return whether a comparison is true of what is good; `None` where its names do not tell."""
    found = [_turned(module, compare, "check", wanted=wanted) for wanted in (False, True)]
    return None if found == [None, None] else found[0] is not None


def _conjuncts(value: ast.expr, *, wanted: bool) -> Iterator[tuple[ast.Compare, bool]]:
    if isinstance(value, ast.BoolOp):
        for part in value.values:
            yield from _conjuncts(part, wanted=wanted)
    elif isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
        yield from _conjuncts(value.operand, wanted=not wanted)
    elif isinstance(value, ast.Compare) and len(value.ops) == 1:
        yield value, wanted
    elif isinstance(value, ast.Call) and value.args and tail_text(value.func) in {"bool", "all", "any"}:
        yield from _conjuncts(value.args[0], wanted=wanted)
    elif isinstance(value, ast.GeneratorExp | ast.ListComp):
        yield from _conjuncts(value.elt, wanted=wanted)


def _turned(module: Module, compare: ast.Compare, name: str, *, wanted: bool) -> str | None:
    """Return what is wrong with a comparison whose truth means passed (`wanted`) or failed."""
    left, right = compare.left, compare.comparators[0]
    if not isinstance(compare.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        return None
    below = isinstance(compare.ops[0], ast.Lt | ast.LtE)
    if name and (smaller := left_is_smaller(compare, module)) is not None:
        is_worse = (smaller is not below) is wanted
        told = f"{text_of(compare)} is true where the new arm is {'worse' if wanted else 'better'}"
        return told if is_worse and not is_of_range(module, compare) else None
    if isinstance(left, ast.Constant) or (_by_bar(left) is not None and not _is_bar(right)):
        left, right, below = right, left, not below
    right = _scaled(right)
    if not _is_bar(right) and not _is_margin(right):
        return None
    larger = _is_said_larger(compare, module)
    if larger is None:
        is_told = COUNTED.search(name) is None or _is_floor_of_all(left, right, module)
        larger = _is_better_larger(left, right, module, told=is_told)
    if larger is None or below is not (wanted is larger):
        return None
    if larger:
        return f"{text_of(compare)} is true where the {'gain is small' if wanted else 'gain is large'}"
    return f"{text_of(compare)} is true where the {'loss is large' if wanted else 'loss is small'}"


def _is_said_larger(compare: ast.Compare, module: Module) -> bool | None:
    """Return whether a value should be above its bar, as the class around says: `AtLeast`, `AtMost`."""
    around = next((a for a in module.ancestors(compare) if isinstance(a, ast.ClassDef)), None)
    name = words(around.name) if around is not None else ""
    low, high = AT_LEAST.search(name) is not None, AT_MOST.search(name) is not None
    return low if low is not high else None


def _is_better_larger(value: ast.expr, bar: ast.expr, module: Module, *, told: bool) -> bool | None:
    """Return whether a value should be above its bar: by what it is called, and by what the bar is called."""
    found = {each for each in (_by_value(value, module), _by_bar(bar) if told else None) if each is not None}
    if COUNTS.search(_gone_over(value, module)) and len(found) < 2 and _by_value(value, module) is None:
        return None
    return next(iter(found)) if len(found) == 1 else None


def _is_floor_of_all(value: ast.expr, bar: ast.expr, module: Module) -> bool:
    """Return whether all figures that are measured are held against a floor: `all(x > floor for x in metrics)`."""
    over = _gone_over(value, module)
    return over != tail_text(value) and FIGURES.search(over) is not None and FLOOR.search(tail_text(bar)) is not None


def _gone_over(value: ast.expr, module: Module) -> str:
    """Return what a value is called; an element of what a comprehension goes over, what that is called."""
    for around in module.ancestors(value) if isinstance(value, ast.Name) else ():
        for part in getattr(around, "generators", ()):
            if isinstance(part.target, ast.Name) and part.target.id == tail_of(value):
                return tail_text(part.iter)
    return tail_text(value)


def _by_value(value: ast.expr, module: Module) -> bool | None:
    text = called(value, module) if isinstance(value, ast.Name) else _text(value)
    name = tail_text(value).strip().replace(" ", "_")
    for each in (name, text.strip().replace(" ", "_")):
        more, less = MORE.search(each) is not None, LESS.search(each) is not None
        if more or less:
            return more if more is not less else None
    return by_name(FILTERS.sub(" ", words(text)))


def _text(value: ast.expr) -> str:
    """Return the words of a value: of `abs(a - b)`, `abs`; of `round(speedup, 2)`, `speedup`."""
    if isinstance(value, ast.Call) and value.args and tail_text(value.func) in {"round", "float", "int", "max", "min"}:
        return _text(value.args[0])
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in {"item", "max"}:
        return _text(value.func.value)
    return tail_text(value)


def _by_bar(bar: ast.expr) -> bool | None:
    if not isinstance(bar, ast.Name | ast.Attribute | ast.Subscript):
        return None
    text = tail_text(bar)
    low, high = FLOOR.search(text) is not None, CEILING.search(text) is not None
    if low is high:  # a bar that is called what it limits: `worst_drop`, `wanted_speedup`
        name = text.strip().rpartition(" ")[2]
        low, high = MORE.search(name) is not None, LESS.search(name) is not None
    return low if low is not high else None


def _scaled(bar: ast.expr) -> ast.expr:
    """Return what a bar is a multiple of: of `10 * tol`, `tol`."""
    if isinstance(bar, ast.BinOp) and isinstance(bar.op, ast.Mult | ast.Div):
        if isinstance(bar.right, ast.Constant) and not is_baseline(tail_text(bar.left)):
            return bar.left
        if (
            isinstance(bar.left, ast.Constant)
            and isinstance(bar.op, ast.Mult)
            and not is_baseline(tail_text(bar.right))
        ):
            return bar.right
    return bar


def _is_margin(node: ast.expr) -> bool:
    """Return whether a bar is the old arm with a margin: `baseline - tolerance`, `(1 + slack) * fp32_loss`."""
    return isinstance(node, ast.BinOp) and (is_baseline(tail_text(node.left)) or is_baseline(tail_text(arm(node))))


def _is_bar(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool) and node.value != 0
    return BAR.search(tail_text(node)) is not None or WORST.search(tail_text(node)) is not None


def _failures(module: Module) -> Iterator[tuple[ast.Compare, str]]:
    """Yield each comparison that fails what holds its bar."""
    for node in nodes(module, ast.If):
        if not isinstance(node, ast.If) or not _fails(node.body):
            continue
        for compare in parts(node.test):
            benches = is_benchmark(node, module)
            told = _turned(module, compare, "", wanted=False) if _is_measured(compare) else None
            problem = told or (_of_bar(compare) or _of_arms(module, compare) if benches else None)
            if problem is not None:
                yield compare, problem


def _is_measured(compare: ast.Compare) -> bool:
    """Return whether one side of a comparison is called what is better large or small, and the other one a bar."""
    for value, bar in ((compare.left, compare.comparators[0]), (compare.comparators[0], compare.left)):
        told = MORE.search(tail_text(value)) or LESS.search(tail_text(value).strip().replace(" ", "_"))
        if told and _is_bar(bar) and not isinstance(bar, ast.Constant):
            return True
    return False


def _of_bar(compare: ast.Compare) -> str | None:
    left, right = tail_text(compare.left), tail_text(compare.comparators[0])
    above = isinstance(compare.ops[0], ast.Gt | ast.GtE)
    for bar, other, is_above in ((right, left, above), (left, right, not above)):
        low, high = FLOOR.search(bar) is not None, CEILING.search(bar) is not None
        if not other or FLOOR.search(other) or CEILING.search(other) or low is high:
            continue
        if low is is_above:
            return f"{text_of(compare)} fails what is {'above its floor' if low else 'below its limit'}"
    return None


def _of_arms(module: Module, compare: ast.Compare) -> str | None:
    """Return what is wrong with a comparison of two arms that fails the run."""
    is_of_arms = left_is_smaller(compare, module) is not None
    return _turned(module, compare, "the check", wanted=False) if is_of_arms else None


def _exits(statement: ast.Raise) -> bool:
    call = statement.exc
    is_exit = isinstance(call, ast.Call) and tail_text(call.func) == "SystemExit"
    return is_exit and isinstance(call, ast.Call) and bool(call.args) and constant(call.args[0]) != 0


def _fails(body: list[ast.stmt]) -> bool:
    for statement in body:
        if isinstance(statement, ast.Raise):
            raised = tail_text(statement.exc) if statement.exc is not None else ""
            return STOPS.search(raised) is None or _exits(statement)
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call):
            continue
        if tail_text(call.func).endswith("sys exit") and call.args and constant(call.args[0]) != 0:
            return True
        added = isinstance(call.func, ast.Attribute) and call.func.attr in {"append", "add", "extend"}
        if added and isinstance(call.func, ast.Attribute) and WRONG.search(tail_text(call.func.value)):
            return True
    return False
