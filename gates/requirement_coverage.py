"""How much of what was asked is verified: counted once, from the statuses that the findings come to."""

from collections import Counter
from collections.abc import Iterator, Sequence

from gates.criteria import status
from gates.model import Finding, Level, Location, Outcome, Severity, Status
from gates.report import Coverage, GateReport
from gates.task.task import Task
from gates.verdict import decide_gate, score_gate

NAMED = 5
OPEN = (Status.PARTIAL, Status.UNVERIFIED)  # could still go either way


def statuses_of(task: Task, findings: Sequence[Finding]) -> list[Status]:
    """Return where each criterion stands by all that was found, in the order of the task."""
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


def unrequired(task: Task, statuses: Sequence[Status]) -> Iterator[Finding]:
    """Say so where a task requires nothing (no criterion of level must, no share) and not all of it was seen to hold.

    Where it was, there is nothing left that a verdict could wait for; where a share is asked for, that must be seen.
    """
    if task.coverage_at_least or any(criterion.level is Level.MUST for criterion in task.criteria):
        return
    lacking = [f"{c.id} {s.value}" for c, s in zip(task.criteria, statuses, strict=True) if s is not Status.PASS]
    if lacking:
        more = f", ... and {len(lacking) - NAMED} more" if len(lacking) > NAMED else ""
        yield Finding(
            rule="GT004", check="seen", outcome=Outcome.UNKNOWN, location=task.place(task),
            message="No criterion is of level must and no share of them is asked for, so nothing that must hold was "
            f"seen: {', '.join(lacking[:NAMED])}{more}.",
            actual="nothing required",
            remediation="Say what must hold: give a criterion the level must, or set coverage_at_least.",
        )  # fmt: skip


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
        rule="BL003", check="coverage", follows=True, outcome=outcome,
        location=Location(path=task.path, line=task.line),
        severity=Severity.INFO if met else Severity.MEDIUM, expected=f">= {coverage.asked:.0%}",
        actual=f"{passed}/{coverage.counting} ({coverage.share:.1%})",
        message=f"{passed} of {coverage.counting} criteria ({coverage.share:.1%}) are verified{left_out} "
        f"({coverage.words}); {coverage.asked:.0%} are asked for.",
        remediation="" if met else "Bring more criteria to PASS; the findings of each say what it lacks.",
    )  # fmt: skip
