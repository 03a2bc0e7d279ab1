"""What the report tells of the lines of each criterion: which of its own tests executed which, and which none did."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from gates.check import EvidenceSet
from gates.evidence.bound_tests import tests_of
from gates.evidence.executed_lines import TEST, ExecutedLines, FunctionLines
from gates.evidence.pytest_run import PytestRun
from gates.evidence.source_tree import SourceTree
from gates.model import Location
from gates.report import Section
from gates.task.code_binding import CodeBinding
from gates.task.task import Criterion, Task

TITLE = "Lines of Each Criterion, and Its Own Tests That Executed Them"
COLUMNS = ("Criterion", "Code", "Lines executed", "By its own tests", "Executed by none of them")
SHOWN, RANGES = 3, 12


@dataclass(frozen=True)
class _Step:
    """The lines of a statement, the tests of the criterion that ran it, and whether anything else is known of it."""

    path: str
    first: int
    last: int
    tests: frozenset[str]
    otherwise: bool
    unclear: bool


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell of each binding to code how many of its lines the criterion's tests executed, who did, and what is left."""
    seen, tree = evidence.get(ExecutedLines), evidence.get(SourceTree)
    if tree is None or not any(tree.ways(binding) for criterion in task.criteria for binding in criterion.code):
        return
    if seen is None:
        yield Section(title=TITLE, text=f"Not measured: {evidence.why_missing(ExecutedLines)}.")
        return
    own = {c.id: {test.id for test in tests_of(task, c, evidence.get(PytestRun))} for c in task.criteria}
    doubt = seen.doubt()
    yield Section(
        title=TITLE,
        text="Statements that a call runs, by their lines; tests of other criteria do not count here."
        + (f" Not all was seen: {doubt}." if doubt else ""),
        columns=COLUMNS,
        rows=tuple(row for c in task.criteria for row in _rows(c, own[c.id], seen, tree)),
    )


def _rows(criterion: Criterion, own: set[str], seen: ExecutedLines, tree: SourceTree) -> Iterator[tuple[str, ...]]:
    for binding in criterion.code:
        places = tree.ways(binding)
        if not places:
            yield criterion.id, binding.name, "-", "-", "no code was found"
            continue
        more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
        where = f"{binding.name} ({', '.join(map(str, places[:SHOWN]))}{more})"
        functions = _functions(binding, places, seen)
        if any(function.compiled for function in functions):
            yield criterion.id, where, "-", "-", "it is compiled, and no line of it is seen"
            continue
        steps = _steps(binding, places, functions, own, seen)
        yield criterion.id, where, *(_told(steps, own, seen) if steps else ("-", "-", "no call runs a line of it"))


def _functions(binding: CodeBinding, places: tuple[Location, ...], seen: ExecutedLines) -> list[FunctionLines]:
    """Return the functions that a binding comes to; of a pattern and a rule those around its places, too."""
    found = [function for place in places for function in seen.within(place)]
    if not binding.symbol:
        found += [function for place in places if (function := seen.function_at(place))]
    return list({(f.location.path, f.first, f.name): f for f in found}.values())


def _steps(
    binding: CodeBinding, places: tuple[Location, ...], functions: list[FunctionLines], own: set[str],
    seen: ExecutedLines,
) -> list[_Step]:  # fmt: skip
    found = [
        _step(function, first, last, own, seen)
        for function in functions
        for first, last in function.steps
        if binding.symbol or any(_meets(place, function, first, last) for place in places)
    ]
    return sorted(found, key=lambda step: (step.path, step.first))


def _meets(place: Location, function: FunctionLines, first: int, last: int) -> bool:
    begin, end = place.line or 1, place.last_line or place.line or 1
    return place.path == function.location.path and begin <= last and first <= end


def _step(function: FunctionLines, first: int, last: int, own: set[str], seen: ExecutedLines) -> _Step:
    contexts = {name for line in range(first, last + 1) for name in seen.contexts_at(function, line)}
    unclear = {name for line in range(first, last + 1) for name in seen.unclear_at(function, line)}
    tests = frozenset(test for test in own if f"{TEST}{test}" in contexts)
    return _Step(
        function.location.path, first, last, tests,
        otherwise=any(not name.startswith(TEST) for name in contexts),
        unclear=any(f"{TEST}{test}" in unclear for test in own),
    )  # fmt: skip


def _told(steps: list[_Step], own: set[str], seen: ExecutedLines) -> tuple[str, str, str]:
    counts = Counter(test for step in steps for test in step.tests)
    ran = sorted(counts, key=lambda test: (-counts[test], test))
    more = f" and {len(ran) - SHOWN} more" if len(ran) > SHOWN else ""
    names = ", ".join(ran[:SHOWN]) + more or ("none" if own else "no test is bound to it")
    return f"{sum(bool(step.tests) for step in steps)} of {len(steps)}", names, _left(steps, seen)


def _left(steps: list[_Step], seen: ExecutedLines) -> str:
    """Return the lines that no test of the criterion ran, and what is known of them beside that."""
    left = [step for step in steps if not step.tests]
    if not left:
        return "-"
    ranges: list[tuple[str, int, int]] = []
    before: _Step | None = None
    for step in steps:
        if not step.tests:
            if ranges and before is not None and not before.tests and before.path == step.path:
                ranges[-1] = (step.path, ranges[-1][1], step.last)
            else:
                ranges.append((step.path, step.first, step.last))
        before = step
    one_file = len({step.path for step in steps}) == 1
    texts = [f"{'' if one_file else f'{p}:'}{a}" + (f"-{b}" if b > a else "") for p, a, b in ranges]
    more = f" and {len(texts) - RANGES} more" if len(texts) > RANGES else ""
    otherwise, unclear = sum(step.otherwise for step in left), sum(step.unclear for step in left)
    said = [f"{otherwise} at import or in shared fixtures"] if otherwise else []
    said += [f"{unclear} on the line of the definition, so that it cannot be told"] if unclear else []
    said += ["imported before lines were noted"] if any(step.path in seen.early for step in left) else []
    return ", ".join(texts[:RANGES]) + more + (f" ({'; '.join(said)})" if said else "")
