"""The part of the execution gate on what the tests run: all public code?"""

from collections.abc import Iterator
from functools import partial

from gates.check import Check, EvidenceSet
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import Basis, Finding, Level, Outcome, Planned, Row, RuleText, Severity
from gates.task.task import Task
from gates.words import counted

RAW, NAMED = "ExecutedLines.json", 20
TITLE = "Public code is executed by a test"
RULES = (
    RuleText(
        id="EX005",
        title=TITLE,
        meaning="A public function of the implementation that no test executed is listed. Where tests "
        "started other processes, it is unknown. It costs score and never blocks.",
    ),
)
_about = partial(Finding, rule="EX005", check="executed", level=Level.ADVISORY)


def plan(_task: Task) -> Iterator[Planned]:
    """Plan the public code as a whole."""
    yield Planned(id="executed", title="Every public function was executed by a test", level=Level.ADVISORY)


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Name the public functions that no test was seen to run; they ask nothing of anybody."""
    seen, run = evidence.get(ExecutedLines), evidence.get(PytestRun)
    if seen is None:
        why = f"Not known which lines the tests executed: {evidence.why_missing(ExecutedLines)}"
        yield _about(
            outcome=Outcome.UNKNOWN, message=why, remediation="Install `coverage`, and trace nothing yourself."
        )
        return
    if task.only:
        why = f"Only what verifies {task.only} was run (--only): it need not execute all public functions."
        yield _about(outcome=Outcome.NOT_APPLICABLE, message=why)
        return
    public = [function for function in seen.functions if function.counts]
    absent = [function for function in public if not seen.contexts_in(function.body)]
    unseen = seen.doubt() if run and run.complete else "the run cannot be believed (EX001)"
    actual = f"{len(public) - len(absent)} of {len(public)} executed"
    if not absent:
        outcome = Outcome.PASSED if public else Outcome.NOT_APPLICABLE
        message = f"{counted(len(public), 'public function')} of the implementation, each executed by the test run."
        yield _about(outcome=outcome, severity=Severity.INFO, message=message, actual=actual, evidence=RAW)
    for function in absent[:NAMED]:
        doubt = unseen or ("a decorator may answer in its place" if function.wrapped else "")
        yield _about(
            outcome=Outcome.UNKNOWN if doubt else Outcome.FAILED,
            severity=Severity.MEDIUM,
            location=function.location,
            subject=f"{function.location.path}:{function.name}",
            message=f"No test executed `{function.name}`{f' (not all was seen: {doubt})' if doubt else ''}.",
            impact="No test would notice that it crashes.",
            remediation="Add a test that calls it.",
            evidence=RAW,
        )
    if len(absent) > NAMED:
        outcome, message = Outcome.UNKNOWN if unseen else Outcome.FAILED, f"All {len(absent)} of them are in {RAW}."
        yield _about(outcome=outcome, severity=Severity.MEDIUM, subject="more", message=message, actual=actual)


CHECK = Check(
    name="coverage",
    gate="execution",
    order=30,
    rules=RULES,
    uses=(ExecutedLines,),
    plan=plan,
    judge=judge,
    basis=Basis.READ,
    row=Row.CODE,
)
