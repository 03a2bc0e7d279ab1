"""The public code that tests execute, judged on built evidence: what is listed, and what must never block."""

from typing import Any

import pytest
from building import a_criterion, a_process, a_record, a_run, a_task, evidence
from covering import TEST, a_function, executed

from gates.check import EvidenceSet
from gates.checks.test_run.judge import judge
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.model import Finding, Level, Outcome, Severity
from gates.task.task import narrowed

TASK = a_task(entry_points=[], criteria=[a_criterion()])
LOST = a_function("lost", line=5)


def findings(seen: ExecutedLines, **changes: Any) -> list[Finding]:
    return [f for f in judge(TASK, evidence(seen, a_run(**changes))) if f.rule == "EX005"]


def test_function_that_no_test_executes_is_listed_at_its_line() -> None:
    (finding,) = findings(executed(a_function(), LOST))
    assert (finding.outcome, finding.severity, finding.level) == (Outcome.FAILED, Severity.MEDIUM, Level.ADVISORY)
    assert str(finding.location) == "pkg/core.py:5-6"
    assert "lost()" in finding.message
    assert not finding.blocks


def test_function_that_does_not_count_is_not_asked_for() -> None:
    (finding,) = findings(executed(a_function(), a_function("_own", line=5, counts=False)))
    assert (finding.outcome, finding.actual) == (Outcome.PASSED, "1 of 1 executed")


UNSEEN: dict[str, dict[str, Any]] = {
    "another process": {"unseen": {f"test:{TEST}": "started another process (python), which was not followed"}},
    "a tracer that was taken away": {"unseen": {f"test:{TEST}": "took the tracer away"}},
    "a run that died": {"doubts": ("the test run did not come to its end",)},
    "a decorator": {"functions": (a_function("lost", line=5, wrapped=True),)},
}


@pytest.mark.parametrize("case", UNSEEN)
def test_function_that_may_have_run_unseen_is_unknown(case: str) -> None:
    (finding,) = findings(executed(LOST, **UNSEEN[case]))
    assert (finding.outcome, finding.leaves_open) == (Outcome.UNKNOWN, False)


def test_function_that_did_not_run_in_a_run_that_cannot_be_believed_is_unknown() -> None:
    (finding,) = findings(executed(LOST), process=a_process(3))
    assert (finding.outcome, finding.leaves_open) == (Outcome.UNKNOWN, False)


def test_run_of_one_criterion_need_not_execute_all_public_functions() -> None:
    *_, finding = judge(narrowed(a_task(), "AC1"), evidence(executed(LOST), a_run(a_record())))
    assert finding.outcome is Outcome.NOT_APPLICABLE


def test_lines_that_were_not_measured_ask_nothing_of_anybody() -> None:
    *_, finding = judge(TASK, EvidenceSet(why="the project measures coverage itself"))
    assert finding.outcome is Outcome.UNKNOWN
    assert not (finding.blocks or finding.leaves_open or finding.criterion)
