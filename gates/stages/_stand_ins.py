"""Whether the tests of a criterion ran the code that its files ship, or something that stood in its place."""

from collections.abc import Iterator, Sequence

from gates.check import EvidenceSet
from gates.evidence.bound_tests import tests_of
from gates.evidence.executed_lines import TEST, ExecutedLines, FunctionLines
from gates.evidence.pytest_run import PytestRun
from gates.evidence.source_tree import SourceTree
from gates.evidence.stand_ins import Instead, StandIn
from gates.evidence.test_records import TestRecord
from gates.model import Finding, Level, Location, Outcome, Severity
from gates.report import Section
from gates.stages.bound_tests import stand_for
from gates.task.task import Criterion, Task

SAYS = {
    Instead.CODE: "what ran under the name of {name} is not the code of {path}",
    Instead.OBJECT: "whenever {who} {name}, something else stands in the place of {last}",
    Instead.VALUE: "whenever {who} {name}, it reads what {path} does not say",
    Instead.CONSTANT: "whenever {who} {name}, a constant that it names has another value",
}
ASIDE = "They say nothing of that code; with another constant, that was put back, nothing of the one that is shipped."
TITLE = "Tests That Ran Something Else Than the Code as It Is Shipped"


def other_code(task: Task, criterion: Criterion, evidence: EvidenceSet) -> Finding | None:
    """Return why no test of a criterion has run its code as it is shipped, or nothing where one may have."""
    bound = _standing(task, criterion, evidence)
    for binding, place in _places(criterion, evidence):
        for test, stand_in in _found(bound, place):
            direct = stand_in.line == place.line
            if stand_in.kind is Instead.CONSTANT and not _is_about(criterion, stand_in, evidence):
                continue
            if stand_in.kind is Instead.CODE or not _ran_elsewhere(stand_in, bound, evidence, direct=direct):
                return _finding(criterion, binding, test, stand_in, len(bound))
    return None


def other_constants(task: Task, criterion: Criterion, evidence: EvidenceSet) -> str:
    """Return, in words, which constants were other ones in all tests of a criterion that say something, or nothing."""
    bound = _standing(task, criterion, evidence)
    for _, place in _places(criterion, evidence):
        found = [(test.id, one) for test, one in _found(bound, place) if one.kind is Instead.CONSTANT]
        if found and {test for test, _ in found} == {test.id for test in bound}:
            return "; ".join(dict.fromkeys(one.by for _, one in found))
    return ""


def describe_stand_ins(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """List what tests had in the place of the code of their criteria, where they had something."""
    rows: dict[tuple[str, str, str, str], int] = {}
    for criterion in task.criteria:
        bound = _standing(task, criterion, evidence)
        for _, place in _places(criterion, evidence):
            for test, one in _found(bound, place):
                rows.setdefault((criterion.id, one.name, one.by, test.id), 0)
    if rows:
        columns = ("Criterion", "Code", "In its place", "Test")
        yield Section(title=TITLE, text=ASIDE, columns=columns, rows=tuple(rows))


def _standing(task: Task, criterion: Criterion, evidence: EvidenceSet) -> list[TestRecord]:
    return [test for test in tests_of(task, criterion, evidence.get(PytestRun)) if test.passed and test.asserts]


def _places(criterion: Criterion, evidence: EvidenceSet) -> Iterator[tuple[str, Location]]:
    tree = evidence.get(SourceTree)
    for binding in criterion.code if tree else ():
        if binding.symbol and tree:
            yield from ((binding.symbol, place) for place in tree.places(binding))


def _found(tests: Sequence[TestRecord], place: Location) -> Iterator[tuple[TestRecord, StandIn]]:
    """Yield what tests had in the place of code within some lines; other code under its name first."""
    first, last = place.line or 1, place.last_line or place.line or 1
    found = [(test, one) for test in tests for one in test.replaced if one.path == place.path]
    inside = [(test, one) for test, one in found if first <= one.line <= last]
    yield from sorted(inside, key=lambda pair: pair[1].kind is not Instead.CODE)


def _is_about(criterion: Criterion, stand_in: StandIn, evidence: EvidenceSet) -> bool:
    """Return whether a criterion is traced to one of the constants that a test has changed."""
    places = _places(criterion, evidence)
    named = {symbol.rpartition(":")[2] for symbol, place in places if place.path == stand_in.path}
    return not named.isdisjoint(stand_in.constants)


def _ran_elsewhere(stand_in: StandIn, tests: list[TestRecord], evidence: EvidenceSet, *, direct: bool) -> bool:
    """Return whether one of some tests may have run a function as it is shipped.

    What is a part of a class that a criterion is traced to may be replaced, unless tests ran it in no other way.
    """
    weak = {Instead.CONSTANT} - {stand_in.kind}
    having = [
        test for test in tests if any(one.name == stand_in.name and one.kind not in weak for one in test.replaced)
    ]
    seen = evidence.get(ExecutedLines)
    function = _function(stand_in, seen)
    if not direct and (seen is None or function is None or not _ran(having, function, seen)):
        return True
    others = [test for test in tests if test not in having]
    if seen is None or function is None or _is_in_doubt(function, seen, tests):
        return bool(others)
    return bool(_ran(others, function, seen))


def _function(stand_in: StandIn, seen: ExecutedLines | None) -> FunctionLines | None:
    name = stand_in.name.rpartition(":")[2]
    found = [one for one in seen.functions if (one.location.path, one.name) == (stand_in.path, name)] if seen else []
    return found[0] if len(found) == 1 else None


def _ran(tests: Sequence[TestRecord], function: FunctionLines, seen: ExecutedLines) -> set[str]:
    return {f"{TEST}{test.id}" for test in tests} & seen.contexts_of(function)


def _is_in_doubt(function: FunctionLines, seen: ExecutedLines, tests: Sequence[TestRecord]) -> bool:
    """Return whether tests may have run a function where nobody saw it, or before."""
    shared = any(not name.startswith(TEST) for name in seen.contexts_of(function))
    early = function.location.path in seen.early
    return shared or early or function.cached or not function.told or bool(seen.doubt(test.id for test in tests))


def _finding(criterion: Criterion, symbol: str, test: TestRecord, one: StandIn, count: int) -> Finding:
    last = one.name.rpartition(":")[2]
    who = "it runs" if count == 1 else "they run"
    what = SAYS[one.kind].format(name=symbol, path=one.path, last=last, who=who)
    return Finding(
        rule="EX006", check=f"code:reached:{criterion.id}", outcome=Outcome.UNKNOWN, level=criterion.level,
        severity=Severity.HIGH if criterion.level is Level.MUST else Severity.MEDIUM, criterion=criterion.id,
        location=test.location, expected="the code of the criterion", evidence="PytestRun.json",
        actual={Instead.CODE: "other code", Instead.OBJECT: "replaced"}.get(one.kind, "other values"),
        message=f"{stand_for(count, criterion)} and passed, but {what}{f': {one.by}' if one.by else ''}.",
        impact=f"{'This test' if count == 1 else 'These tests'} would pass whatever the code does that is shipped.",
        remediation="Run the code as it is. Look at patches in tests, fixtures, plugins and conftest.py, and at "
        "committed bytecode.",
    )  # fmt: skip
