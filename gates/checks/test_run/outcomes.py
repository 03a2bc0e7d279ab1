"""Every test that ran, and every test that was left out: what the run says of them."""

import shlex
from collections.abc import Iterator

from gates.checks.test_run.belief import LOG
from gates.evidence.tests.bound_tests import NAMED, more
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import BAD, TestOutcome
from gates.model import Finding, Level, Location, Outcome, Severity

ASIDE = {TestOutcome.SKIPPED, TestOutcome.XFAILED, TestOutcome.XPASSED}


def judge_tests(run: PytestRun) -> Iterator[Finding]:
    """Name every test that failed; a pass needs a believed run in which something passed."""
    passed = sum(test.passed for test in run.tests)
    each = f", in each of {1 + len(run.repeats)} runs" if run.repeats else ""
    actual = f"{passed} of {len(run.tests)} passed"
    bad = [test for test in run.tests if test.outcome in BAD]
    for test in bad[:NAMED]:
        yield Finding(
            rule="EX002", check="tests", outcome=Outcome.FAILED, severity=Severity.HIGH, subject=test.id,
            location=test.crash or test.location, expected="passed", actual=test.outcome.value,
            message=f"{test.id} {test.ended}: {test.reason}", evidence=LOG,
            impact="The behaviour that this test verifies is broken.",
            remediation="Make the test pass; if the test is wrong, mend the test.",
            command=f"python -m pytest {shlex.quote(test.id)}",
        )  # fmt: skip
    if rest := more(bad, "failed"):
        yield Finding(
            rule="EX002", check="tests", outcome=Outcome.FAILED, severity=Severity.HIGH, subject="more",
            message=rest, expected="every test passes", actual=actual, evidence=LOG,
            remediation="Mend the tests that are named first.",
        )  # fmt: skip
    yield from _unstable(run)
    if bad or run.unstable:
        return
    if not run.complete or not passed:
        why = "the run cannot be believed (EX001)" if not run.complete else "no test passed: all were skipped"
        yield Finding(
            rule="EX002", check="tests", outcome=Outcome.UNKNOWN, evidence=LOG,
            message=f"The tests prove nothing: {why}.", expected="every test passes", actual=actual,
            remediation="Mend the run first.",
        )  # fmt: skip
        return
    yield Finding(
        rule="EX002", check="tests", outcome=Outcome.PASSED, evidence=LOG,
        message=f"{passed} tests passed, none failed{each}.", expected="every test passes", actual=actual,
    )  # fmt: skip


def _unstable(run: PytestRun) -> Iterator[Finding]:
    """Name every test that ended in two ways: running it again until it passes hides one of them."""
    unstable = run.unstable
    for test, ends in unstable[:NAMED]:
        yield Finding(
            rule="EX011", check="tests", outcome=Outcome.FAILED, severity=Severity.HIGH, subject=test.id,
            location=test.crash or test.location, expected="one end in every run", actual=ends, evidence=LOG,
            message=f"{test.id} {ends}: {test.reason}" if test.message else f"{test.id} {ends}.",
            impact="Whether the behaviour holds depends on chance or on the order of tests.",
            remediation="Find what differs: state left by another test, time, randomness, order of a set.",
        )  # fmt: skip
    if rest := more([test for test, _ in unstable], "ended in two ways"):
        yield Finding(
            rule="EX011", check="tests", outcome=Outcome.FAILED, severity=Severity.HIGH, subject="more",
            message=rest, evidence=LOG, remediation="Mend the tests that are named first.",
        )  # fmt: skip


def judge_left_out(run: PytestRun) -> Iterator[Finding]:
    """Name what was skipped, expected to fail, left out by a mark, or never collected."""
    aside = [test for test in run.tests if test.outcome in ASIDE or test.subtests_left_out]
    by_mark = [test for test in run.deselected if test.by_mark]
    for test in aside[:NAMED]:
        yield _aside(
            f"{test.id} {test.ended}: {test.reason}", test.location, subject=test.id, actual=test.ended,
            impact="It verifies nothing and counts for no criterion.",
        )  # fmt: skip
    if rest := more(aside, "were skipped or expected to fail"):
        yield _aside(rest, None, subject="more", remediation="Run them where they can run.")
    for skip in run.collect_skips:
        message = f"{skip.id} was skipped as a whole: {skip.message}"
        yield _aside(message, skip.location, subject=skip.id, actual="skipped")
    for path in run.uncollected[:NAMED]:
        yield _aside(
            f"{path} looks like tests, and pytest collected none of it.", Location(path=path), subject=path,
            expected="collected", actual="not collected",
            remediation="Let pytest collect it: see collect_ignore, --ignore, norecursedirs and python_files.",
        )  # fmt: skip
    unplanned = [test for test in run.unplanned if not test.certain]
    for written in unplanned[:NAMED]:
        yield _aside(
            f"{written.id} is written as a test and was not planned: {written.why}.", written.location,
            subject=written.id, expected="planned", actual="not planned",
            remediation="Let pytest collect it, or give it a name that is no test's.",
        )  # fmt: skip
    if by_mark:
        yield _aside(
            f"{len(by_mark)} tests were left out by the project's mark expression, first {by_mark[0].id}.",
            by_mark[0].location, subject="deselected", actual="not run",
            remediation="Run them where they can run: remove -m, or run them in a task of their own.",
        )  # fmt: skip
    if not aside and not by_mark and not run.collect_skips and not run.uncollected and not unplanned:
        known = run.complete
        yield Finding(
            rule="EX003", check="left-out", severity=Severity.INFO, level=Level.ADVISORY, evidence=LOG,
            outcome=Outcome.PASSED if known else Outcome.UNKNOWN, actual="none" if known else "not known",
            message="No test was skipped or expected to fail." if known else "The run did not come to its end.",
        )  # fmt: skip


def _aside(
    message: str, location: Location | None, *, subject: str, expected: str = "passed", actual: str = "",
    impact: str = "", remediation: str = "Run it where it can run.",
) -> Finding:  # fmt: skip
    return Finding(
        rule="EX003", check="left-out", outcome=Outcome.UNKNOWN, level=Level.ADVISORY,
        message=message, location=location, subject=subject, expected=expected, actual=actual, impact=impact,
        remediation=remediation, evidence=LOG,
    )  # fmt: skip
