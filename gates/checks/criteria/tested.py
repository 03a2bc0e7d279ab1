"""The tests that speak for a criterion: each must have been seen, and seen to pass."""

import shlex
from collections.abc import Iterator

from gates.check import About, EvidenceSet, about_criterion
from gates.evidence.tests.bound_tests import is_under, tests_of
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import BAD, ELSEWHERE, TestRecord
from gates.model import Finding, Location, Outcome
from gates.task.task import Criterion, Task
from gates.words import counted

NAMED = 50  # so many tests have a finding of their own; the rest share one
LOG = "pytest/run.stdout.txt"


def judge_tests(task: Task, criterion: Criterion, evidence: EvidenceSet, *, asked: bool = True) -> Iterator[Finding]:
    """Judge the tests bound to a criterion; one that was skipped or left out verifies nothing.

    Where none is `asked` for, because something else shows the criterion, those that markers bind are judged all the
    same.
    """
    about = about_criterion(criterion, "BL002", f"tests:{criterion.id}")
    run = evidence.get(PytestRun)
    if run is None and not asked:
        yield _shown_otherwise(about, task, criterion)
        return
    if run is None:
        yield about(
            outcome=Outcome.UNKNOWN, location=task.place(criterion), actual="no test run",
            message=f"The tests of {criterion.id} were not seen: {evidence.why_missing(PytestRun)}",
            remediation="Make the test suite run.",
        )  # fmt: skip
        return
    bound = tests_of(task, criterion, run)
    doubts = [*_left_out(about, task, criterion, run), *_not_passed(about, task, criterion, bound, run)]
    yield from doubts
    if not bound and not doubts and not asked:
        yield _shown_otherwise(about, task, criterion)
    elif not bound and not doubts:
        marker = f'@pytest.mark.criterion("{task.id}/{criterion.id}")'
        yield about(
            outcome=Outcome.UNKNOWN, location=task.place(criterion), actual="no test",
            message=f"No test and no measure verifies {criterion.id}; reading its code proves nothing.",
            remediation=f"Name tests under 'tests', or mark them with {marker}.",
        )  # fmt: skip
    elif not doubts:
        yield _passed(about, criterion, bound, believed=run.complete)


def _shown_otherwise(about: About, task: Task, criterion: Criterion) -> Finding:
    """Say that no test is asked for: the task names something else that shows the criterion."""
    return about(
        outcome=Outcome.NOT_APPLICABLE, location=task.place(criterion), actual="shown otherwise",
        message=f"{criterion.id} is shown by something else than tests; no test is bound to it.",
    )  # fmt: skip


def _left_out(about: About, task: Task, criterion: Criterion, run: PytestRun) -> Iterator[Finding]:
    """Name what speaks for the criterion and was deselected, skipped as a whole, or never collected."""
    marker = f"{task.id}/{criterion.id}"
    unseen = [
        *((test.id, test.location, "deselected", test.criteria) for test in run.deselected),
        *((skip.id, skip.location, f"skipped as a whole: {skip.message}", ()) for skip in run.collect_skips),
        *((path, Location(path=path), "never collected", ()) for path in run.uncollected),
        *((one.id, one.location, f"never planned: {one.why}", ()) for one in run.unplanned),
    ]
    ours = [row for row in unseen if marker in row[3] or any(is_under(row[0], path) for path in criterion.tests)]
    marked = [one for one in run.unrun if marker in one.criteria and not any(is_under(one.id, row[0]) for row in ours)]
    ours += [(one.id, one.location, one.why, one.criteria) for one in marked]
    for name, location, why, _ in ours[:NAMED]:
        yield about(
            outcome=Outcome.UNKNOWN, location=location, subject=name, expected="passed", actual=why.split(":")[0],
            message=f"{name} is bound to {criterion.id} and was {why}.",
            remediation="Add it to the 'tests' of the task, or take its marker away." if why == ELSEWHERE
            else "Let it run (see -k, -m, --deselect, collect_ignore, skip marks); not run, it proves nothing.",
        )  # fmt: skip
    known = [*(test.id for test in run.tests), *(row[0] for row in ours)]
    for path in criterion.tests:
        if not any(is_under(name, path) for name in known):
            yield about(
                outcome=Outcome.UNKNOWN, location=task.place(criterion), subject=path, actual="not run",
                message=f"No test of {path} was run.", expected="at least one test",
                remediation="Mend the run first." if run.collect_errors or not run.tests
                else f"Put {path} back, add it to 'tests' of the task, or have the criterion name what took its place.",
            )  # fmt: skip


def _not_passed(
    about: About, task: Task, criterion: Criterion, bound: list[TestRecord], run: PytestRun
) -> Iterator[Finding]:
    """Name the tests that ran and do not stand for the criterion, those that failed first."""
    unstable = {test.id: ends for test, ends in run.unstable}
    failing = [test for test in bound if test.outcome in BAD]
    bad = [*failing, *(test for test in bound if test.outcome not in BAD and _doubt(test, unstable))]
    for test in bad[:NAMED]:
        failed = test.outcome in BAD
        ended = test.ended if failed else _doubt(test, unstable)
        yield about(
            outcome=Outcome.FAILED if failed else Outcome.UNKNOWN, location=test.crash or test.location,
            subject=test.id, message=f"{test.id} {ended}: {test.reason}" if test.message else f"{test.id} {ended}",
            expected="passed", actual=ended, evidence=LOG,
            remediation="Make the test pass." if failed else _to_mend(criterion, test),
            command=f"python -m pytest {shlex.quote(test.id)}" if failed else "",
        )  # fmt: skip
    if len(bad) > NAMED:
        yield about(
            outcome=Outcome.FAILED if len(failing) > NAMED else Outcome.UNKNOWN, location=task.place(criterion),
            subject="more", expected="passed", actual="not passed",
            message=f"{len(bad) - NAMED} more tests of {criterion.id} did not pass; "
            "all are in evidence/PytestRun.json.",
            remediation="Mend the tests that are named first.",
        )  # fmt: skip


def _doubt(test: TestRecord, unstable: dict[str, str]) -> str:
    """Return, in words, why a test does not verify a criterion, or nothing where it does."""
    if not test.passed:
        return test.ended
    return unstable.get(test.id, "")


def _to_mend(criterion: Criterion, test: TestRecord) -> str:
    """Return what to do of a test that proves nothing: one that a whole file brought along may be of something else."""
    file = next((path for path in criterion.tests if "::" not in path and is_under(test.id, path)), "")
    other = f", or name in {criterion.id} the tests of {file} that are about it" if file else ""
    return f"Run the test where it can run{other}; as it is, it proves nothing."


def _passed(about: About, criterion: Criterion, bound: list[TestRecord], *, believed: bool) -> Finding:
    count = len(bound)
    standing = f"{counted(count, 'test')} {'stands' if count == 1 else 'stand'} for {criterion.id}"
    if not believed:
        return about(
            outcome=Outcome.UNKNOWN, location=bound[0].location, expected="all passed", evidence=LOG,
            actual="the run cannot be believed", remediation="Mend the run first.",
            message=f"The tests of {criterion.id} prove nothing: the run cannot be believed (EX001).",
        )  # fmt: skip
    return about(
        outcome=Outcome.PASSED, location=bound[0].location, expected="all passed", evidence=LOG,
        actual=f"{count} of {count} passed", message=f"{standing}, all passed.",
    )  # fmt: skip
