"""Stage 2, execution: did the tests run to their end and pass, and does the production code run?"""

import shlex
from collections.abc import Iterator

from gates.evidence.entry_points import EntryPointRuns, EntryRun
from gates.evidence.kind import EvidenceSet
from gates.evidence.pytest_run import PytestRun
from gates.evidence.test_records import TestOutcome
from gates.model import Check, Finding, Level, Location, Outcome, RuleText, Severity
from gates.stages._execution_sections import describe
from gates.stages._suite import BAD, LOG, judge_suite
from gates.stages.bound_tests import NAMED, more
from gates.stages.gate import Gate
from gates.task import EntryPoint, Task

ASIDE = {TestOutcome.SKIPPED, TestOutcome.XFAILED, TestOutcome.XPASSED}


def plan(task: Task) -> tuple[Check, ...]:
    """Plan the suite as a whole, its tests, what was left out of it, and each entry point."""
    return (
        Check(id="suite", title="Test suite ran to its end, and all records of it agree"),
        Check(id="tests", title="Every test that ran passed"),
        Check(id="left-out", title="No test was skipped or expected to fail", level=Level.ADVISORY),
        *(
            Check(id=f"entry:{i}", title=f"Entry point ends well: {' '.join(entry.run)}")
            for i, entry in enumerate(task.entry_points)
        ),
        *(
            Check(
                id=f"entry:{i}:{c.id}",
                title=f"{c.id} is shown by entry point {i + 1}",
                level=c.level,
                criterion=c.id,
            )
            for i, entry in enumerate(task.entry_points)
            for c in task.criteria
            if c.id in entry.criteria
        ),
    )


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Believe a run only where process, plan, records and files agree; a skipped test proves nothing."""
    run = evidence.get(PytestRun)
    if run is None:
        yield from _without_run(task, evidence.why_missing(PytestRun))
    else:
        yield from judge_suite(run)
        yield from _tests(run)
        yield from _left_out(run)
    entries = evidence.get(EntryPointRuns)
    for i, entry in enumerate(task.entry_points):
        seen = next((r for r in entries.runs if r.index == i), None) if entries else None
        finding = _entry(task, i, entry, seen, evidence.why_missing(EntryPointRuns))
        yield finding
        for criterion in task.criteria:
            if criterion.id in entry.criteria:
                own = {
                    "check": f"entry:{i}:{criterion.id}",
                    "criterion": criterion.id,
                    "level": criterion.level,
                }
                yield Finding.model_validate({**finding.model_dump(exclude={"fingerprint"}), **own})


def _without_run(task: Task, why: str) -> Iterator[Finding]:
    for check, rule, level in (("suite", "EX001", Level.MUST), ("tests", "EX002", Level.MUST),
                               ("left-out", "EX003", Level.ADVISORY)):  # fmt: skip
        yield Finding(
            rule=rule, check=check, outcome=Outcome.UNKNOWN, severity=Severity.HIGH, level=level,
            message=f"No test run to judge: {why}", location=Location(path=task.path, line=task.line),
            remediation="Name the tests of the task under 'tests' and make them run.",
        )  # fmt: skip


def _tests(run: PytestRun) -> Iterator[Finding]:
    """Name every test that failed; a pass needs a believed run in which something passed."""
    passed = sum(test.passed for test in run.tests)
    actual = f"{passed} of {len(run.tests)} passed"
    bad = [test for test in run.tests if test.outcome in BAD]
    for test in bad[:NAMED]:
        yield Finding(
            rule="EX002", check="tests", outcome=Outcome.FAILED, severity=Severity.HIGH, subject=test.id,
            location=test.crash or test.location, expected="passed", actual=test.outcome.value,
            message=f"{test.id} {test.ended}: {test.reason}", evidence=LOG,
            impact="The behaviour that this test stands for is broken.",
            remediation="Make the test pass; if the test is wrong, mend the test.",
            command=f"python -m pytest {shlex.quote(test.id)}",
        )  # fmt: skip
    if rest := more(bad, "failed"):
        yield Finding(
            rule="EX002", check="tests", outcome=Outcome.FAILED, severity=Severity.HIGH, subject="more",
            message=rest, expected="every test passes", actual=actual, evidence=LOG,
            remediation="Mend the tests that are named first.",
        )  # fmt: skip
    if bad:
        return
    if not run.complete or not passed:
        why = "the run cannot be believed (EX001)" if not run.complete else "no test passed: all were skipped"
        yield Finding(
            rule="EX002", check="tests", outcome=Outcome.UNKNOWN, severity=Severity.HIGH, evidence=LOG,
            message=f"The tests prove nothing: {why}.", expected="every test passes", actual=actual,
            remediation="Mend the run first.",
        )  # fmt: skip
        return
    yield Finding(
        rule="EX002", check="tests", outcome=Outcome.PASSED, severity=Severity.INFO, evidence=LOG,
        message=f"{passed} tests passed, none failed.", expected="every test passes", actual=actual,
    )  # fmt: skip


def _left_out(run: PytestRun) -> Iterator[Finding]:
    """Name what was skipped, expected to fail, left out by a mark, or never collected."""
    aside = [test for test in run.tests if test.outcome in ASIDE or test.subtests_left_out]
    by_mark = [test for test in run.deselected if test.by_mark]
    for test in aside[:NAMED]:
        yield _aside(
            f"{test.id} {test.ended}: {test.reason}", test.location, subject=test.id, actual=test.ended,
            impact="It proves nothing and stands for no criterion.",
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
    if by_mark:
        yield _aside(
            f"{len(by_mark)} tests were left out by the project's mark expression, first {by_mark[0].id}.",
            by_mark[0].location, subject="deselected", actual="not run",
            remediation="Run them where they can run: remove -m, or run them in a task of their own.",
        )  # fmt: skip
    if not aside and not by_mark and not run.collect_skips and not run.uncollected:
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
        rule="EX003", check="left-out", outcome=Outcome.UNKNOWN, severity=Severity.LOW, level=Level.ADVISORY,
        message=message, location=location, subject=subject, expected=expected, actual=actual, impact=impact,
        remediation=remediation, evidence=LOG,
    )  # fmt: skip


def _entry(task: Task, index: int, entry: EntryPoint, seen: EntryRun | None, why: str) -> Finding:
    name = " ".join(entry.run)
    facts = {
        "rule": "EX004",
        "check": f"entry:{index}",
        "subject": name,
        "expected": "exit code 0",
        "command": name,
    }
    if seen is None or seen.process is None:
        problem = seen.problem if seen else why
        return Finding(
            **facts, outcome=Outcome.UNKNOWN, severity=Severity.HIGH, location=task.place(entry), actual="not run",
            message=f"The entry point was not seen running: {problem}",
            remediation="Name a command that can be started.",
        )  # fmt: skip
    raw = f"entry_points/{index}.stderr.txt"
    ended = seen.process
    if ended.exit_code == 0:
        return Finding(
            **facts, outcome=Outcome.PASSED, severity=Severity.INFO, location=task.place(entry), evidence=raw,
            actual=ended.ended, message=f"`{name}` ran to its end.",
        )  # fmt: skip
    return Finding(
        **facts, outcome=Outcome.UNKNOWN if ended.timed_out else Outcome.FAILED, severity=Severity.CRITICAL,
        location=seen.crash or task.place(entry), evidence=raw, actual=ended.ended,
        message=f"`{name}`: {ended.ended}: {ended.last_words}", impact="Users of this entry point meet this crash.",
        remediation="Mend the crash and add a test that runs this path.",
    )  # fmt: skip


GATE = Gate(
    name="execution",
    title="Execution Verification",
    stage=2,
    weight=40,
    code="EX",
    uses=(PytestRun, EntryPointRuns),
    rules=(
        RuleText(
            id="EX001",
            title="The test run can be believed",
            meaning="The process ended by itself, every planned test has an end, none was deselected, and process "
            "status, plugin, JSON report and JUnit file agree. A crash or a file that cannot be collected fails; a run "
            "that was cut short, collected nothing or contradicts itself is unknown.",
        ),
        RuleText(
            id="EX002",
            title="Every test that ran passed",
            meaning="A failed or broken test fails. Where no test passed, or the run cannot be believed, it is "
            "unknown.",
        ),
        RuleText(
            id="EX003",
            title="No test was left out",
            meaning="Skipped, expected-to-fail and unexpectedly passing tests are listed. They prove nothing, "
            "count for "
            "no criterion, and cost score; alone they do not block.",
        ),
        RuleText(
            id="EX004",
            title="Entry points run to their end",
            meaning="Each entry point of the task is run in its own process and must end with exit code 0. A crash is "
            "critical and names the innermost line of the traceback that lies in the project.",
        ),
    ),
    plan=plan,
    judge=judge,
    describe=describe,
)
