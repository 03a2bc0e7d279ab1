"""The tests that speak for a criterion: each must have been seen, and seen to pass."""

import shlex
from collections.abc import Iterator
from functools import partial

from gates.check import About, EvidenceSet, about_criterion
from gates.evidence.tests.bound_tests import is_under, tests_of
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import BAD, TestRecord
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
    run, where, name = evidence.get(PytestRun), task.place(criterion), criterion.id
    bound = tests_of(task, criterion, run)
    doubts = [*_left_out(about, task, criterion, run), *_not_passed(about, criterion, bound, run)] if run else []
    yield from doubts
    if doubts:
        return
    if not bound and not asked:
        message = f"{name} is shown by something else than tests; no test is bound to it."
        yield about(outcome=Outcome.NOT_APPLICABLE, location=where, actual="shown otherwise", message=message)
    elif run is None:
        message = f"The tests of {name} were not seen: {evidence.why_missing(PytestRun)}"
        advice = "Make the test suite run."
        yield about(outcome=Outcome.UNKNOWN, location=where, actual="no test run", message=message, remediation=advice)
    elif not bound:
        message = f"No test and no measure verifies {name}; reading its code proves nothing."
        advice = f"Name tests under 'tests', or mark them with @pytest.mark.criterion(\"{task.id}/{name}\")."
        yield about(outcome=Outcome.UNKNOWN, location=where, actual="no test", message=message, remediation=advice)
    else:
        yield _passed(about, criterion, bound, believed=run.complete)


def _left_out(about: About, task: Task, criterion: Criterion, run: PytestRun) -> Iterator[Finding]:
    """Name what speaks for the criterion and was deselected, skipped as a whole, or never collected."""
    about, marker = partial(about, outcome=Outcome.UNKNOWN), f"{task.id}/{criterion.id}"
    unseen = [
        *((test.id, test.location, "deselected", test.criteria) for test in run.deselected),
        *((skip.id, skip.location, f"skipped as a whole: {skip.message}", ()) for skip in run.collect_skips),
        *((path, Location(path=path), "never collected", ()) for path in run.uncollected),
        *((one.id, one.location, f"never planned: {one.why}", one.criteria) for one in run.unplanned),
    ]
    ours = [row for row in unseen if marker in row[3] or any(is_under(row[0], path) for path in criterion.tests)]
    ours = [row for row in ours if not any(row[0] != other and is_under(row[0], other) for other, *_ in ours)]
    for name, location, why, _ in ours[:NAMED]:
        message, actual = f"{name} is bound to {criterion.id} and was {why}.", why.split(":")[0]
        advice = "Let it run (see -k, -m, --deselect, collect_ignore, skip marks); not run, it proves nothing."
        yield about(subject=name, location=location, actual=actual, message=message, remediation=advice)
    known = [*(test.id for test in run.tests), *(row[0] for row in ours)]
    for path in [path for path in criterion.tests if not any(is_under(name, path) for name in known)]:
        message, where = f"No test of {path} was run.", task.place(criterion)
        advice = f"Put {path} back, add it to 'tests' of the task, or have the criterion name what took its place."
        advice = "Mend the run first." if run.collect_errors or not run.tests else advice
        yield about(subject=path, location=where, actual="not run", message=message, remediation=advice)


def _not_passed(about: About, criterion: Criterion, bound: list[TestRecord], run: PytestRun) -> Iterator[Finding]:
    """Name the tests that ran and do not stand for the criterion, those that failed first."""
    about, unstable = partial(about, expected="passed", evidence=LOG), {test.id: ends for test, ends in run.unstable}
    failing = [test for test in bound if test.outcome in BAD]
    doubtful = [t for t in bound if t.outcome not in BAD and (not t.passed or t.id in unstable)]
    for test in [*failing, *doubtful][:NAMED]:
        ended = test.ended if not test.passed else unstable[test.id]
        message = f"{test.id} {ended}: {test.reason}" if test.message else f"{test.id} {ended}"
        facts = {"subject": test.id, "actual": ended, "location": test.crash or test.location, "message": message}
        if test.outcome in BAD:
            command = f"python -m pytest {shlex.quote(test.id)}"
            yield about(outcome=Outcome.FAILED, remediation="Make the test pass.", command=command, **facts)
        else:
            follows = not run.complete  # from what broke the run off
            yield about(outcome=Outcome.UNKNOWN, remediation=_to_mend(criterion, test), follows=follows, **facts)
    if (rest := len(failing) + len(doubtful) - NAMED) > 0:
        outcome = Outcome.FAILED if len(failing) > NAMED else Outcome.UNKNOWN
        message = f"{rest} more tests of {criterion.id} did not pass; all are in evidence/PytestRun.json."
        follows = outcome is Outcome.UNKNOWN and not run.complete
        yield about(outcome=outcome, subject="more", actual="not passed", message=message, follows=follows)


def _to_mend(criterion: Criterion, test: TestRecord) -> str:
    """Return what to do of a test that proves nothing: one that a whole file brought along may be of something else."""
    file = next((path for path in criterion.tests if "::" not in path and is_under(test.id, path)), "")
    other = f", or name in {criterion.id} the tests of {file} that are about it" if file else ""
    return f"Run the test where it can run{other}; as it is, it proves nothing."


def _passed(about: About, criterion: Criterion, bound: list[TestRecord], *, believed: bool) -> Finding:
    count, about = len(bound), partial(about, location=bound[0].location, expected="all passed", evidence=LOG)
    if not believed:
        message = f"The tests of {criterion.id} prove nothing: the run cannot be believed (EX001)."
        actual = "the run cannot be believed"
        advice = "Mend the run first."
        return about(outcome=Outcome.UNKNOWN, actual=actual, message=message, remediation=advice, follows=True)
    message = f"{counted(count, 'test')} {'stands' if count == 1 else 'stand'} for {criterion.id}, all passed."
    return about(outcome=Outcome.PASSED, actual=f"{count} of {count} passed", message=message)
