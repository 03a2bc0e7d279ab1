"""Every test that ran, and every test that was left out: what the run says of them."""

import shlex
from collections.abc import Iterator

from gates.check import Check, EvidenceSet
from gates.checks.test_run.belief import LOG, judge_suite
from gates.checks.test_run.page import describe_run
from gates.evidence.tests.bound_tests import NAMED, more
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import BAD, TestOutcome
from gates.model import Finding, Level, Location, Outcome, Planned, RuleText, Severity
from gates.report import Section
from gates.task.task import Task

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


RULES = (
    RuleText(
        id="EX001",
        title="The test run can be believed",
        meaning="Every planned test has an end, and process status, plugin, JSON and JUnit agree. A crash "
        "or uncollectable file fails. A run cut short, empty or contradictory is unknown.",
    ),
    RuleText(
        id="EX002",
        title="Every test that ran passed",
        meaning="A failed or broken test fails. Where no test passed, or the run cannot be believed, it is unknown.",
    ),
    RuleText(
        id="EX003",
        title="No test was left out",
        meaning="Skipped, expected-to-fail and unexpectedly passing tests are listed. They verify "
        "nothing, count for no criterion, and cost score. Alone they do not block.",
    ),
    RuleText(
        id="EX013",
        title="Tests read what the commit has",
        meaning="Tests read a file beside them that is not committed. A fresh checkout of the same commit "
        "could have another verdict, so the run stays open.",
    ),
    RuleText(
        id="EX011",
        title="A test ends the same way each time",
        meaning="A test that ended in two ways fails, with --repeat or where a plugin ran it again. The "
        "run that passed does not undo the one that failed.",
    ),
)


def plan(_task: Task) -> Iterator[Planned]:
    """Plan the suite as a whole, its tests, and what was left out of it."""
    yield Planned(id="suite", title="Test suite ran to its end, and all records of it agree")
    yield Planned(id="tests", title="Every test that ran passed")
    yield Planned(id="data", title="The tests read what the commit has", scored=False)
    yield Planned(id="left-out", title="No test was skipped or expected to fail", level=Level.ADVISORY)


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Believe a run only where process, plan, records and files agree; a skipped test proves nothing."""
    run = evidence.get(PytestRun)
    if run is None:
        yield from _without_run(task, evidence.why_missing(PytestRun))
    else:
        yield from judge_suite(run)
        yield from judge_tests(run)
        yield from _data(run)
        yield from judge_left_out(run)


def _data(run: PytestRun) -> Iterator[Finding]:
    """Name each file that tests read and that the commit does not have."""
    for path in run.untracked:
        yield Finding(
            rule="EX013", check="data", outcome=Outcome.UNKNOWN, severity=Severity.HIGH, subject=path,
            location=Location(path=path), expected="committed", actual="not committed",
            message=f"Tests read {path}, which the commit does not have.",
            impact="In a fresh checkout these tests see something else.",
            remediation="Commit it, or let the tests make it anew in a temporary folder.",
        )  # fmt: skip
    if not run.untracked:
        yield Finding(
            rule="EX013", check="data", outcome=Outcome.PASSED,
            message="Tests read no file beside them that the commit lacks.", actual="none",
        )  # fmt: skip


def describe(_task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell the run, or why there is none."""
    run = evidence.get(PytestRun)
    if run is None:
        yield Section(title="Test Execution Results", text=f"Not run: {evidence.why_missing(PytestRun)}.")
    else:
        yield from describe_run(run)


def _without_run(task: Task, why: str) -> Iterator[Finding]:
    for check, rule, level in (("suite", "EX001", Level.MUST), ("tests", "EX002", Level.MUST),
                               ("data", "EX013", Level.ADVISORY), ("left-out", "EX003", Level.ADVISORY)):  # fmt: skip
        yield Finding(
            rule=rule, check=check, outcome=Outcome.UNKNOWN, severity=Severity.HIGH, level=level,
            message=f"No test run to judge: {why}", location=Location(path=task.path, line=task.line),
            remediation="Name the tests of the task under 'tests' and make them run.",
        )  # fmt: skip


CHECK = Check(
    name="test_run",
    gate="execution",
    order=10,
    rules=RULES,
    uses=(PytestRun,),
    plan=plan,
    judge=judge,
    page=describe,
)
