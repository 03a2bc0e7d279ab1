"""What three plain facts of its tests say of a criterion: each of them leaves it inconclusive."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from gates.check import Check, EvidenceSet
from gates.checks.assertions.collect import TestFiles
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.lines.traced import TEST
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.bound_tests import tests_of
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import UNAWAITED, TestRecord
from gates.model import Finding, Level, Location, Outcome, Planned, RuleText, Severity
from gates.task.task import Criterion, Task

SHOWN = 5
# what pytest itself says of a test that checks less than it seems to
UNHANDLED = {f"PytestUnhandled{what}Warning" for what in ("Coroutine", "ThreadException")}
WARNINGS = {"PytestReturnNotNoneWarning", "PytestUnraisableExceptionWarning"} | UNHANDLED
RULES = (
    RuleText(
        id="BL021",
        title="Every assertion of the tests ran",
        meaning="No test executed an unconditional `assert` in the test files of a criterion. It is "
        "behind a line that raises, in an empty loop, or in an unused helper.",
    ),
    RuleText(
        id="BL019",
        title="pytest warns of none of the tests",
        meaning="pytest or Python warned of a test of the criterion. It returned a value, never awaited a "
        "coroutine, or hid an exception in a thread or finalizer.",
    ),
    RuleText(
        id="BL020",
        title="No check of the tests is constant",
        meaning="ruff finds a check in a test of the criterion that cannot fail. Examples are `or True`, "
        "a comparison of constants, and an assertion on a tuple.",
    ),
)


def plan(task: Task) -> Iterator[Planned]:
    """Plan a check for each criterion."""
    for criterion in task.criteria:
        title = f"The tests of {criterion.id} check what they seem to"
        yield Planned(
            id=f"assertions:{criterion.id}", title=title, level=Level.ADVISORY, criterion=criterion.id, scored=False
        )


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge the tests of each criterion that passed."""
    run, files, lines = evidence.get(PytestRun), evidence.get(TestFiles), evidence.get(ExecutedLines)
    for criterion in task.criteria:
        own = [test for test in tests_of(task, criterion, run) if test.passed] if run else []
        if run is None or files is None or not own:
            missing = evidence.why_missing(PytestRun if run is None else TestFiles)
            outcome, why = (Outcome.UNKNOWN, missing) if own or run is None else (Outcome.NOT_APPLICABLE, "none passed")
            yield _told(criterion, outcome, f"The tests of {criterion.id} were not read: {why}.")
            continue
        own = _about(criterion, own, files, evidence) or own
        found = [*_unexecuted(own, files, lines), *_warned(own, run), *_constant(own, files)]
        yield from (_open(criterion, each) for each in found)
        if not found:
            unseen = "" if lines else f"which lines ran was not seen: {evidence.why_missing(ExecutedLines)}"
            doubts = "; ".join(filter(None, (unseen, files.unlinted)))
            said = f"No check in the tests of {criterion.id} was found that did not run or cannot fail"
            outcome = Outcome.UNKNOWN if unseen else Outcome.PASSED
            yield _told(criterion, outcome, f"{said} ({doubts})." if doubts else f"{said}.")


class Doubt(NamedTuple):
    """A check that shows nothing: the rule that says so, its place, what is to be said and done, and what was seen."""

    rule: str
    location: Location
    message: str
    remediation: str
    actual: str


def _about(criterion: Criterion, own: list[TestRecord], files: TestFiles, evidence: EvidenceSet) -> list[TestRecord]:
    """Return the tests that run code of the criterion or name it; all, where nobody can tell."""
    tree, lines = evidence.get(SourceTree), evidence.get(ExecutedLines)
    if tree is None or lines is None:
        return own
    places = [place for binding in criterion.code for place in tree.ways(binding)]
    bodies = [each.body for each in lines.functions if any(map(each.body.meets, places))]
    ran = {name for body in bodies for name in lines.contexts_in(body)}
    if any(name and not name.startswith(TEST) for name in ran):  # in a fixture that many tests share
        return own
    symbols = {re.split("[:.]", binding.symbol)[-1] for binding in criterion.code if binding.symbol}
    naming = {each for each in {*map(_place, own)} if not symbols.isdisjoint(_read(each, files))}
    ran |= {*lines.children, *lines.lost}  # where something ran that nobody saw
    return [test for test in own if f"{TEST}{test.id}" in ran or _place(test) in naming]


def _place(test: TestRecord) -> tuple[str, str]:
    return test.location.path, _function(test)


def _read(place: tuple[str, str], files: TestFiles) -> set[str]:
    """Return the names that a test function reads, and the helpers of its file that it calls."""
    names = files.names.get(place[0], {})
    return {name for function in _called({place[1]}, names) for name in names.get(function, ())}


def _unexecuted(own: list[TestRecord], files: TestFiles, lines: ExecutedLines | None) -> Iterator[Doubt]:
    """Yield the assertions that no test executed, in the criterion's test functions and the helpers that they name."""
    ran_in = lines.lines if lines else {}
    for path in sorted({test.location.path for test in own} & ran_in.keys()):
        asked = _called({function for file, function in map(_place, own) if file == path}, files.names.get(path, {}))
        places = [each.location for each in files.asserted if each.location.path == path and each.function in asked]
        never = [p for p in places if ran_in[path].keys().isdisjoint(p.lines)]
        for place in never[:SHOWN]:
            message = f"The assertion at {place} was executed by no test."
            yield Doubt("BL021", place, message, "Let it run, or remove it.", "never executed")


def _called(functions: set[str], names: dict[str, tuple[str, ...]]) -> set[str]:
    """Return test functions with the functions of their file that they name, and those that these name."""
    found, todo = set(functions), list(functions)
    while todo:
        read = set(names.get(todo.pop(), ()))
        last = {name: name.rpartition("::")[2] for name in names}
        new = {name for name in names if last[name] in read and not last[name].startswith("test")} - found
        found |= new
        todo += new
    return found


def _function(test: TestRecord) -> str:
    return test.function.partition("::")[2]


def _warned(own: list[TestRecord], run: PytestRun) -> Iterator[Doubt]:
    tests, paths = {test.id: test for test in own}, {test.location.path for test in own}
    counting = [each for each in run.warnings if each.category in WARNINGS or UNAWAITED in each.message]
    told = [each for each in counting if each.test in tests or (not each.test and each.location.path in paths)]
    for each in told[:SHOWN]:
        place = tests[each.test].location if each.test in tests else each.location
        said = each.message.splitlines()[0] if each.message else each.category
        message = f"{each.test or each.location}: {each.category}: {said}"
        yield Doubt("BL019", place, message, "Let the test assert, await or join what it starts.", each.category)


def _constant(own: list[TestRecord], files: TestFiles) -> Iterator[Doubt]:
    asked = {*map(_place, own)}
    for each in [one for one in files.linted if (one.location.path, one.function) in asked][:SHOWN]:
        message = f"{each.location} cannot fail: {each.message} ({each.rule})."
        yield Doubt("BL020", each.location, message, "Assert on what the code does.", each.rule)


def _open(criterion: Criterion, doubt: Doubt) -> Finding:
    about = {"check": f"assertions:{criterion.id}", "criterion": criterion.id, "level": criterion.level}
    subject = f"{PurePosixPath(doubt.location.path).name}:{doubt.location.line}"
    facts = {"outcome": Outcome.UNKNOWN, "subject": subject, "expected": "a check that can fail"}
    return Finding.model_validate({**about, **facts, **doubt._asdict()})


def _told(criterion: Criterion, outcome: Outcome, message: str) -> Finding:
    about = {"rule": "BL021", "check": f"assertions:{criterion.id}", "criterion": criterion.id, "level": Level.ADVISORY}
    return Finding.model_validate({**about, "outcome": outcome, "severity": Severity.INFO, "message": message})


CHECK = Check(
    name="assertions", gate="business-logic", order=35, rules=RULES, uses=(TestFiles,), plan=plan, judge=judge
)
