"""How much of what was asked is verified: counted once, from the statuses that the findings come to."""

from collections import Counter
from collections.abc import Sequence

from gates.criteria import status
from gates.model import Finding, Location, Outcome, Severity, Status
from gates.report import Coverage, GateReport
from gates.tasks.task import Task
from gates.verdict import decide_gate, score_gate

OPEN = (Status.PARTIAL, Status.UNVERIFIED)  # could still go either way


def statuses_of(task: Task, gates: Sequence[GateReport]) -> list[Status]:
    """Return where each criterion stands by the findings of all gates, in the order of the task."""
    findings = [finding for gate in gates for finding in gate.findings]
    return [status(f for f in findings if f.criterion == criterion.id) for criterion in task.criteria]


def recounted(gate: GateReport, coverage: Finding) -> GateReport:
    """Put the coverage by everything that was seen in place of what one gate could tell."""
    if not gate.ran or coverage.check not in {check.id for check in gate.checks}:
        return gate
    findings = tuple(coverage if f.rule == coverage.rule else f for f in gate.findings)
    decision, reasons = decide_gate(findings)
    score = score_gate(gate.checks, findings)
    return gate.model_copy(update={"findings": findings, "decision": decision, "reasons": reasons, "score": score})


def cover(task: Task, statuses: Sequence[Status]) -> Coverage:
    """Count where the criteria of a task stand."""
    counts = Counter(statuses)
    return Coverage(asked=task.coverage_at_least, counts={status: counts[status] for status in Status})


def judge_coverage(task: Task, coverage: Coverage) -> Finding:
    """Compare the share with what the task asks for; what was not seen leaves it open before it fails."""
    passed, open_ = coverage.counts[Status.PASS], sum(coverage.counts[status] for status in OPEN)
    reachable = (passed + open_) / coverage.counting if coverage.counting else 1.0
    outcome = Outcome.UNKNOWN
    if not coverage.asked:
        outcome = Outcome.NOT_APPLICABLE
    elif passed and coverage.share >= coverage.asked:  # shares, not counts: 0.55 * 20 is more than 11
        outcome = Outcome.PASSED
    elif reachable < coverage.asked:
        outcome = Outcome.FAILED
    met = outcome in {Outcome.PASSED, Outcome.NOT_APPLICABLE}
    waived = coverage.total - coverage.counting
    left_out = f", {waived} waived and left out" if waived else ""
    return Finding(
        rule="BL003", check="coverage", location=Location(path=task.path, line=task.line), outcome=outcome,
        severity=Severity.INFO if met else Severity.MEDIUM, expected=f">= {coverage.asked:.0%}",
        actual=f"{passed}/{coverage.counting} ({coverage.share:.1%})",
        message=f"{passed} of {coverage.counting} criteria ({coverage.share:.1%}) are verified{left_out} "
        f"({coverage.words}); {coverage.asked:.0%} are asked for.",
        remediation="" if met else "Bring more criteria to PASS; the findings of each say what it lacks.",
    )  # fmt: skip
