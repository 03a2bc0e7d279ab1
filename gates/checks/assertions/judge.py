"""What three plain facts of its tests say of a criterion: each of them leaves it inconclusive."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from gates.check import Check, EvidenceSet
from gates.checks.assertions.collect import TestFiles
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.tests.bound_tests import tests_of
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import UNAWAITED, TestRecord, Warned
from gates.model import Finding, Level, Location, Outcome, Planned, RuleText, Severity
from gates.task.task import Criterion, Task

SHOWN = 5
# what pytest itself says of a test that checks less than it seems to
WARNINGS = {
    "PytestReturnNotNoneWarning", "PytestUnhandledCoroutineWarning", "PytestUnraisableExceptionWarning",
    "PytestUnhandledThreadExceptionWarning",
}  # fmt: skip
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
        "a comparison with itself, and an assertion on a tuple.",
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
    run, files = evidence.get(PytestRun), evidence.get(TestFiles)
    for criterion in task.criteria:
        own = [test for test in tests_of(task, criterion, run) if test.passed] if run else []
        if run is None or files is None or not own:
            missing = evidence.why_missing(PytestRun if run is None else TestFiles)
            outcome, why = (Outcome.UNKNOWN, missing) if own or run is None else (Outcome.NOT_APPLICABLE, "none passed")
            yield _finding(criterion, outcome, f"The tests of {criterion.id} were not read: {why}.")
            continue
        found = [
            *_unexecuted(criterion, own, files, evidence.get(ExecutedLines)),
            *_warned(criterion, own, run),
            *_constant(criterion, own, files),
        ]
        yield from found
        if not found:
            unseen = "" if evidence.get(ExecutedLines) else evidence.why_missing(ExecutedLines)
            said = f"No check in the tests of {criterion.id} was found that did not run or cannot fail"
            doubts = [*filter(None, (unseen and f"which lines ran was not seen: {unseen}", files.unlinted))]
            said = f"{said} ({'; '.join(doubts)})." if doubts else f"{said}."
            yield _finding(criterion, Outcome.UNKNOWN if unseen else Outcome.PASSED, said)


def _unexecuted(
    criterion: Criterion, own: list[TestRecord], files: TestFiles, lines: ExecutedLines | None
) -> Iterator[Finding]:
    """Name the assertions that no test executed, in the criterion's test functions and the helpers that they name."""
    ran_in = lines.lines if lines else {}
    for path in sorted({test.location.path for test in own} & ran_in.keys()):
        asked = _called({_function(test) for test in own if test.location.path == path}, files.names.get(path, {}))
        never = [
            each for each in files.asserted
            if each.location.path == path and each.function in asked
            and ran_in[path].keys().isdisjoint(range(each.location.line or 1, (each.location.last_line or 1) + 1))
        ]  # fmt: skip
        for each in never[:SHOWN]:
            yield _open(
                criterion, "BL021", each.location, f"The assertion at {each.location} was executed by no test.",
                actual="never executed", remediation="Let it run, or remove it.",
            )  # fmt: skip


def _called(functions: set[str], names: dict[str, tuple[str, ...]]) -> set[str]:
    """Return test functions with the functions of their file that they name, and those that these name."""
    found, todo = set(functions), list(functions)
    while todo:
        read = set(names.get(todo.pop(), ()))
        new = {name for name in names if name.rpartition("::")[2] in read and not _is_test(name)} - found
        found |= new
        todo += new
    return found


def _is_test(name: str) -> bool:
    return name.rpartition("::")[2].startswith("test")


def _function(test: TestRecord) -> str:
    return test.function.partition("::")[2]


def _warned(criterion: Criterion, own: list[TestRecord], run: PytestRun) -> Iterator[Finding]:
    tests = {test.id: test for test in own}
    told = [each for each in run.warnings if _counts(each) and (each.test in tests or _lies_in(each, own))]
    for each in told[:SHOWN]:
        place = tests[each.test].location if each.test in tests else each.location
        message = each.message.splitlines()[0] if each.message else each.category
        yield _open(
            criterion, "BL019", place, f"{each.test or each.location}: {each.category}: {message}",
            actual=each.category, remediation="Let the test assert, await or join what it starts.",
        )  # fmt: skip


def _counts(warned: Warned) -> bool:
    return warned.category in WARNINGS or UNAWAITED in warned.message


def _lies_in(warned: Warned, own: list[TestRecord]) -> bool:
    return not warned.test and warned.location.path in {test.location.path for test in own}


def _constant(criterion: Criterion, own: list[TestRecord], files: TestFiles) -> Iterator[Finding]:
    asked = {(test.location.path, _function(test)) for test in own}
    for each in [one for one in files.linted if (one.location.path, one.function) in asked][:SHOWN]:
        yield _open(
            criterion, "BL020", each.location, f"{each.location} cannot fail: {each.message} ({each.rule}).",
            actual=each.rule, remediation="Assert on what the code does.",
        )  # fmt: skip


def _open(criterion: Criterion, rule: str, place: Location, message: str, *, actual: str, remediation: str) -> Finding:
    return Finding(
        rule=rule, check=f"assertions:{criterion.id}", criterion=criterion.id, level=criterion.level,
        outcome=Outcome.UNKNOWN, message=message, location=place, actual=actual,
        subject=f"{PurePosixPath(place.path).name}:{place.line}", expected="a check that can fail",
        impact="What it seems to show was not shown.", remediation=remediation,
    )  # fmt: skip


def _finding(criterion: Criterion, outcome: Outcome, message: str) -> Finding:
    return Finding(
        rule="BL021", check=f"assertions:{criterion.id}", criterion=criterion.id, level=Level.ADVISORY,
        outcome=outcome, severity=Severity.INFO, message=message,
    )  # fmt: skip


CHECK = Check(
    name="assertions", gate="business-logic", order=35, rules=RULES, uses=(TestFiles,), plan=plan, judge=judge
)
