"""The part of the execution gate on the test suite: can the run be believed, what failed, what was left out?"""

from collections.abc import Iterator

from gates.check import Check, EvidenceSet
from gates.checks.test_run.belief import judge_suite
from gates.checks.test_run.outcomes import judge_left_out, judge_tests
from gates.checks.test_run.page import describe_run
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import Finding, Level, Location, Outcome, Planned, RuleText, Severity
from gates.report import Section
from gates.task.task import Task

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


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell the run, or why there is none."""
    run = evidence.get(PytestRun)
    if run is None:
        yield Section(title="Test Execution Results", text=f"Not run: {evidence.why_missing(PytestRun)}.")
    else:
        yield from describe_run(task, run)


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
