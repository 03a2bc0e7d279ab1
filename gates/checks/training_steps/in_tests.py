"""The part of the business logic gate that judges what the project's code was recorded to do in its tests."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gates.check import Check, EvidenceSet
from gates.checks.training_steps.aspects import hidden
from gates.checks.training_steps.aspects_in_tests import (
    Looked,
    judge_order,
    judge_overflow,
    judge_parameters,
    judge_precision,
)
from gates.checks.training_steps.collect import RecordedTest, RecordedTests, marks_of, paths_of
from gates.evidence.tests.bound_tests import is_under
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import TestOutcome, TestRecord
from gates.judging import Said, about_criterion, for_criteria, in_the_way
from gates.model import Finding, Level, Outcome, Planned, Row, RuleText
from gates.report import Section
from gates.task.recorded import TestsToRecord
from gates.task.task import Criterion, Task

RULES = (
    RuleText(
        id="BL015",
        title="The project's code does right in its tests",
        meaning="Under `recorded_tests`, tests run once more and are recorded. Judged is what one call of "
        "the project's code does: its order of calls, and that it skips an overflow.",
    ),
)
Judge = Callable[[Looked], Iterator[Said]]
ASPECTS: dict[str, tuple[str, Judge, Level]] = {
    "order": ("calls in the right order", judge_order, Level.MUST),
    "precision": ("computes in the precision that it scales for", judge_precision, Level.MUST),
    "parameters": ("keeps its parameters in float32", judge_parameters, Level.ADVISORY),
    "overflow": ("leaves out a step that overflows", judge_overflow, Level.MUST),
}
SHOWN = 40
NAMED = 3
FIX = "Run the whole gate, with an interpreter that has torch, and mend the tests that do not pass."


@dataclass(frozen=True)
class _Runs:
    """What was seen of an entry: the tests that passed both times, and why not all of them did."""

    passed: tuple[RecordedTest, ...]
    problem: str = ""
    left_out: tuple[str, ...] = ()


def plan(task: Task) -> Iterator[Planned]:
    """Plan the aspects of each entry, and each criterion that it stands for."""
    for i, asked in enumerate(task.recorded_tests):
        yield Planned(id=f"recorded:tests:{i}:run", title=f"The {asked.name} were recorded")
        for aspect, (words, _, level) in ASPECTS.items():
            title = f"The project's code {words} in {asked.name}"
            yield Planned(id=f"recorded:tests:{i}:{aspect}", title=title, level=level)
        yield from for_criteria(task, asked, f"recorded:tests:{i}:for", " is shown by recorded tests")


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge each entry by its aspects, and from these each criterion that it stands for."""
    seen = evidence.get(RecordedTests)
    for i, asked in enumerate(task.recorded_tests):
        runs = _runs(task, asked, seen, evidence)
        found = [_finding(task, i, asked, "run", _ran(runs))]
        looked = Looked(runs.passed, seen.orders if seen else (), task.implementation, frozenset(asked.needs))
        for aspect, (_, look, _) in ASPECTS.items():
            said = [_not_recorded(runs)] if runs.problem else look(looked)
            found += [_finding(task, i, asked, aspect, one) for one in said]
        yield from found
        for criterion in task.criteria_of(asked):
            yield _for_criterion(task, i, asked, criterion, found)


def _runs(task: Task, asked: TestsToRecord, seen: RecordedTests | None, evidence: EvidenceSet) -> _Runs:
    """Return the tests of an entry that passed in the test run and under the recorder."""
    run = evidence.get(PytestRun)
    if seen is None or run is None:
        return _Runs((), evidence.why_missing(RecordedTests if seen is None else PytestRun))
    if not seen.complete:
        return _Runs((), "; ".join([f"the recorder was not heard to its end ({seen.process.ended})", *seen.troubles]))
    ends = {test.id: test for test in run.tests if _is_asked(task, asked, test)}
    recorded = {test.id: test for test in seen.tests if test.id in ends}
    passed = {name for name, test in ends.items() if test.passed}
    good = tuple(test for name, test in recorded.items() if name in passed and test.outcome == "passed")
    other = [name for name in passed if name not in {test.id for test in good}]
    if not good:
        why = next(filter(None, (hidden(test.run) for test in recorded.values())), "")
        none = f"none of the tests passed, both in the test run and recorded{why and '; '}{why}"
        return _Runs((), none if ends else "there is no test")
    return _Runs(good, left_out=tuple(sorted(other)))


def _is_asked(task: Task, asked: TestsToRecord, test: TestRecord) -> bool:
    marked = bool(marks_of(task, asked) & set(test.criteria))
    return marked or any(is_under(test.id, path) for path in paths_of(task, asked))


def _ran(runs: _Runs) -> Said:
    if runs.problem:
        return _not_recorded(runs)
    driven = sum(bool(test.run.attempts) for test in runs.passed)
    text = f"{len(runs.passed)} tests were recorded; in {driven} of them the project's own code takes a step."
    if runs.left_out:
        names = ", ".join(runs.left_out[:NAMED]) + (", ..." if len(runs.left_out) > NAMED else "")
        return Said(Outcome.UNKNOWN, f"{text} {len(runs.left_out)} passed in the test run, but not recorded: {names}",
                    f"{len(runs.passed)} recorded", level=Level.ADVISORY)  # fmt: skip
    return Said(Outcome.PASSED, text, f"{len(runs.passed)} recorded")


def _not_recorded(runs: _Runs) -> Said:
    return Said(Outcome.UNKNOWN, f"The tests were not recorded: {runs.problem}.", "not recorded", remediation=FIX)


def _finding(task: Task, index: int, asked: TestsToRecord, aspect: str, said: Said) -> Finding:
    check = f"recorded:tests:{index}:{aspect}"
    return said.finding("BL015", check, name=asked.name, place=task.place(asked), evidence="RecordedTests.json")


def _for_criterion(
    task: Task, index: int, asked: TestsToRecord, criterion: Criterion, found: Sequence[Finding]
) -> Finding:
    """Fold what was seen of an entry into one finding on a criterion."""
    about = about_criterion(criterion, "BL015", f"recorded:tests:{index}:for:{criterion.id}")
    if first := in_the_way(about, found, name=asked.name):
        return first
    if Outcome.PASSED not in {f.outcome for f in found if not f.check.endswith(":run")}:
        return about(
            outcome=Outcome.UNKNOWN, location=task.place(asked), subject=asked.name, actual="not seen",
            message=f"Nothing that {criterion.id} asks for was seen in its recorded tests: none of them has the "
            "project's code take a step.", expected="a step", evidence=found[0].evidence,
            remediation="Test the function that takes the step, not its parts one by one.",
        )  # fmt: skip
    passed = [f for f in found if f.outcome is Outcome.PASSED]
    return about(
        outcome=Outcome.PASSED, location=task.place(asked), subject=asked.name, evidence=found[0].evidence,
        actual=", ".join(f.check.rpartition(":")[2] for f in passed),
        message=f"The {asked.name} do right: {' '.join(f.message for f in passed[1:])}",
    )  # fmt: skip


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell of each test in which the project's code takes a step what was seen in it."""
    if not task.recorded_tests:
        return
    seen = evidence.get(RecordedTests)
    tests = [test for test in (seen.tests if seen else ()) if test.run.attempts or test.run.overflows]
    run = evidence.get(PytestRun)
    ends = {test.id: test.outcome for test in (run.tests if run else ())}
    more = f" (the first {SHOWN}; all {len(tests)} are in RecordedTests.json)" if len(tests) > SHOWN else ""
    yield Section(
        title="Recorded Tests",
        text=f"{len(seen.tests)} tests were run with torch's calls recorded, on the CPU; those in which the project's "
        f"own code takes a step{more}:" if seen else f"Not recorded: {evidence.why_missing(RecordedTests)}.",
        columns=("Test", "Ended", "Steps", "Left out", "Overflows", "Matrix products", "Parameters"),
        rows=tuple(_row(test, ends.get(test.id)) for test in tests[:SHOWN]),
    )  # fmt: skip


def _row(test: RecordedTest, end: TestOutcome | None) -> tuple[str, ...]:
    run = test.run
    products = {name for event in run.events for name in event.products}
    params = sorted({name for attempt in run.attempts for name in attempt.params})
    ended = test.outcome if end is None or end.value == test.outcome else f"{test.outcome} (test run: {end.value})"
    return (
        test.id, ended, str(test.steps), str(test.left_out), str(len(run.overflows)),
        ", ".join(sorted(products)) or "-", ", ".join(params) or "-",
    )  # fmt: skip


RECORDED_TESTS = Check(
    name="recorded_tests",
    gate="business-logic",
    order=90,
    rules=RULES,
    uses=(RecordedTests,),
    plan=plan,
    judge=judge,
    page=describe,
    row=Row.TEST,
    label="recorded run",
)
