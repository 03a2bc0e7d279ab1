"""Every test that ran, and every test that was left out: what the run says of them."""

import shlex
from collections.abc import Iterator, Sequence
from functools import partial

from gates.check import Check, EvidenceSet
from gates.checks.test_run.belief import LOG, judge_suite
from gates.checks.test_run.page import describe_run
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.tests.bound_tests import NAMED, more
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import BAD, TestOutcome, TestRecord
from gates.model import Basis, Finding, Level, Location, Outcome, Planned, Row, RuleText, Severity
from gates.report import Section
from gates.task.task import Task
from gates.words import counted

SHOWN = 20
ASIDE = {TestOutcome.SKIPPED, TestOutcome.XFAILED, TestOutcome.XPASSED}
_test = partial(Finding, check="tests", evidence=LOG, expected="every test passes")
_aside = partial(Finding, rule="EX003", check="left-out", evidence=LOG, outcome=Outcome.UNKNOWN, level=Level.ADVISORY)


def judge_tests(run: PytestRun) -> Iterator[Finding]:
    """Name every test that failed; a pass needs a believed run in which something passed."""
    passed = sum(test.passed for test in run.tests)
    actual = f"{passed} of {len(run.tests)} passed"
    bad = [test for test in run.tests if test.outcome in BAD]
    advice = "Make the test pass; if the test is wrong, mend the test."
    yield from _bad("EX002", [(test, f"{test.ended}: {test.reason}") for test in bad], "failed", advice)
    advice = "Find what differs: state left by another test, time, randomness, order of a set."
    ends = [(test, f"{ends}: {test.reason}" if test.message else f"{ends}.") for test, ends in run.unstable]
    yield from _bad("EX011", ends, "ended in two ways", advice)
    if bad or ends:
        return
    if not run.complete or not passed:
        why = "the run cannot be believed (EX001)" if not run.complete else "no test passed: all were skipped"
        said = {"message": f"The tests prove nothing: {why}.", "remediation": "Mend the run first."}
        yield _test(rule="EX002", outcome=Outcome.UNKNOWN, actual=actual, follows=not run.complete, **said)
        return
    each = f", in each of {1 + len(run.repeats)} runs" if run.repeats else ""
    yield _test(
        rule="EX002", outcome=Outcome.PASSED, actual=actual, message=f"{passed} tests passed, none failed{each}."
    )


def _bad(rule: str, tests: Sequence[tuple[TestRecord, str]], what: str, advice: str) -> Iterator[Finding]:
    """Name tests that failed, each with what was seen of it, or that ended in two ways."""
    about = partial(_test, rule=rule, outcome=Outcome.FAILED, severity=Severity.HIGH)
    for test, ended in tests[:NAMED]:
        where, command = test.crash or test.location, f"python -m pytest {shlex.quote(test.id)}"
        said = {"message": f"{test.id} {ended}", "remediation": advice, "command": command}
        yield about(subject=test.id, location=where, actual=test.outcome.value, **said)
    if rest := more([test for test, _ in tests], what):
        yield about(subject="more", message=rest, remediation="Mend the tests that are named first.")


def judge_left_out(run: PytestRun) -> Iterator[Finding]:
    """Name what was skipped, expected to fail, left out by a mark, or never collected."""
    aside = [test for test in run.tests if test.outcome in ASIDE or test.subtests_left_out]
    found = [*_left_out(run, aside)]
    for name, message, where, remediation in found:
        yield _aside(subject=name, message=message, location=where, remediation=remediation)
    if rest := more(aside, "were skipped or expected to fail"):
        yield _aside(subject="more", message=rest, remediation="Run them where they can run.")
    if not found:
        outcome = Outcome.PASSED if run.complete else Outcome.UNKNOWN
        message = "No test was skipped or expected to fail." if run.complete else "The run did not come to its end."
        yield _aside(outcome=outcome, severity=Severity.INFO, message=message)


def _left_out(run: PytestRun, aside: list[TestRecord]) -> Iterator[tuple[str, str, Location, str]]:
    """Yield what did not run or shows nothing: its name, what is to be said of it, its place and what to do."""
    run_it = "Run it where it can run."
    for test in aside[:NAMED]:
        yield test.id, f"{test.id} {test.ended}: {test.reason}", test.location, run_it
    for skip in run.collect_skips:
        yield skip.id, f"{skip.id} was skipped as a whole: {skip.message}", skip.location, run_it
    for path in run.uncollected[:NAMED]:
        advice = "Let pytest collect it: see collect_ignore, --ignore, norecursedirs and python_files."
        yield path, f"{path} looks like tests, and pytest collected none of it.", Location(path=path), advice
    for one in [test for test in run.unplanned if not test.certain][:NAMED]:
        message = f"{one.id} is written as a test and was not planned: {one.why}."
        yield one.id, message, one.location, "Let pytest collect it, or give it a name that is no test's."
    by_mark = [test for test in run.deselected if test.by_mark]
    if by_mark:
        message = f"{len(by_mark)} tests were left out by the project's mark expression, first {by_mark[0].id}."
        advice = "Run them where they can run: remove -m, or run them in a task of their own."
        yield "deselected", message, by_mark[0].location, advice


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
        id="EX005",
        title="Public code is executed by a test",
        meaning="A public function of the implementation that no test executed is listed. Where tests "
        "started other processes, it is unknown. It costs score and never blocks.",
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
    about = partial(Planned, level=Level.ADVISORY, basis=Basis.READ, row=Row.CODE)
    yield about(id="executed", title="Every public function was executed by a test")


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
    yield from _executed(task, evidence)


def _data(run: PytestRun) -> Iterator[Finding]:
    """Name each file that tests read and that the commit does not have."""
    about = partial(Finding, rule="EX013", check="data")
    for path in run.untracked:
        message = f"Tests read {path}, which the commit does not have."
        advice = "Commit it, or let the tests make it anew in a temporary folder."
        where = Location(path=path)
        yield about(outcome=Outcome.UNKNOWN, subject=path, location=where, message=message, remediation=advice)
    if not run.untracked:
        yield about(outcome=Outcome.PASSED, message="Tests read no file beside them that the commit lacks.")


def _executed(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Name the public functions that no test was seen to run; they ask nothing of anybody."""
    about = partial(Finding, rule="EX005", check="executed", level=Level.ADVISORY, basis=Basis.READ)
    seen, run = evidence.get(ExecutedLines), evidence.get(PytestRun)
    if seen is None:
        message = f"Not known which lines the tests executed: {evidence.why_missing(ExecutedLines)}"
        advice = "Install `coverage` for the project, and trace nothing yourself."
        yield about(outcome=Outcome.UNKNOWN, message=message, remediation=advice)
        return
    if task.only:
        message = f"Only what verifies {task.only} was run (--only): it need not execute all public functions."
        yield about(outcome=Outcome.NOT_APPLICABLE, message=message)
        return
    public = [function for function in seen.functions if function.counts]
    absent = [function for function in public if not seen.contexts_in(function.body)]
    unseen = seen.doubt() if run and run.complete else "the run cannot be believed (EX001)"
    actual = f"{len(public) - len(absent)} of {len(public)} executed"
    if not absent:
        outcome = Outcome.PASSED if public else Outcome.NOT_APPLICABLE
        message = f"{counted(len(public), 'public function')} of the implementation, each executed by the test run."
        yield about(outcome=outcome, severity=Severity.INFO, message=message, actual=actual)
    for function in absent[:SHOWN]:
        doubt = unseen or ("a decorator may answer in its place" if function.wrapped else "")
        outcome, name = Outcome.UNKNOWN if doubt else Outcome.FAILED, f"{function.location.path}:{function.name}"
        message = f"No test executed `{function.name}`{f' (not all was seen: {doubt})' if doubt else ''}."
        said = {"message": message, "remediation": "Add a test that calls it.", "severity": Severity.MEDIUM}
        yield about(outcome=outcome, location=function.location, subject=name, **said)
    if len(absent) > SHOWN:
        outcome = Outcome.UNKNOWN if unseen else Outcome.FAILED
        message = f"All {len(absent)} of them are in ExecutedLines.json."
        yield about(outcome=outcome, severity=Severity.MEDIUM, subject="more", message=message, actual=actual)


def describe(_task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell the run, or why there is none."""
    run = evidence.get(PytestRun)
    if run is None:
        yield Section(title="Test Execution Results", text=f"Not run: {evidence.why_missing(PytestRun)}.")
    else:
        yield from describe_run(run)


def _without_run(task: Task, why: str) -> Iterator[Finding]:
    levels = {"EX001": Level.MUST, "EX002": Level.MUST, "EX013": Level.ADVISORY, "EX003": Level.ADVISORY}
    for planned, (rule, level) in zip(plan(task), levels.items(), strict=False):
        about = partial(Finding, check=planned.id, rule=rule, level=level, severity=Severity.HIGH)
        message, advice = f"No test run to judge: {why}", "Name the tests of the task under 'tests' and make them run."
        yield about(outcome=Outcome.UNKNOWN, message=message, location=task.place(task), remediation=advice)


CHECK = Check(
    name="test_run",
    gate="execution",
    order=10,
    rules=RULES,
    uses=(PytestRun, ExecutedLines),
    plan=plan,
    judge=judge,
    page=describe,
)
