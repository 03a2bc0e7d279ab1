"""Waivers at work: which findings they cover on the day of the run, and which cover nothing."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date

from gates.model import Finding, Level, Outcome, Status, Waived
from gates.report import GateReport
from gates.task.task import Criterion, Task
from gates.task.waiver import Waiver, may_be_waived

OPEN = {Outcome.FAILED, Outcome.UNKNOWN}


def waive(task: Task, findings: Iterable[Finding], today: date | None) -> tuple[Finding, ...]:
    """Return the findings with those marked that a waiver covers; without a day none is."""
    working = [waiver for waiver in task.waivers if today and waiver.works(today)]
    return tuple(_marked(task, finding, working) for finding in findings)


def _marked(task: Task, finding: Finding, working: Sequence[Waiver]) -> Finding:
    waiver = next((waiver for waiver in working if covers(waiver, finding)), None)
    if waiver is None:
        return finding
    note = Waived(
        reason=waiver.reason, owner=waiver.owner, expires=waiver.expires.isoformat(), location=task.place(waiver)
    )
    return finding.model_copy(update={"waived": note})


def covers(waiver: Waiver, finding: Finding) -> bool:
    """Return whether a waiver speaks of a finding: one of its criterion and rule that did not pass."""
    return (
        finding.outcome in OPEN
        and finding.criterion == waiver.criterion
        and waiver.rule in {None, finding.rule}
        and may_be_waived(finding.rule)
    )


def unneeded(task: Task, gates: Sequence[GateReport], today: date | None) -> Iterator[Finding]:
    """Name the waivers that work and cover nothing; only a whole run can tell."""
    if today is None or not all(gate.ran for gate in gates):
        return
    used = {f.waived.location for gate in gates for f in gate.findings if f.waived}
    for waiver in task.waivers:
        if waiver.works(today) and task.place(waiver) not in used:
            yield Finding(
                rule="BL012", check="waivers", outcome=Outcome.FAILED, level=Level.ADVISORY,
                subject=f"{waiver.name} unneeded", location=task.place(waiver), actual="waives nothing",
                message=f"{waiver.title} waives nothing.",
                impact="It would hide the next failure there.", remediation="Remove the waiver.",
            )  # fmt: skip


def standing_of(task: Task, criterion: Criterion, findings: Sequence[Finding], *, waived: bool) -> Iterator[str]:
    """Yield how the waivers of a criterion stand, as far as that says something of where it stands itself."""
    places = [task.place(waiver) for waiver in task.waivers if waiver.criterion == criterion.id]
    for finding in findings:
        if finding.rule == "BL012" and finding.location in places and (waived or finding.outcome in OPEN):
            yield finding.message


def all_waived(task: Task, statuses: Sequence[Status]) -> Iterator[Finding]:
    """Say so where every required criterion is waived: then nothing that must hold was seen."""
    required = [s for c, s in zip(task.criteria, statuses, strict=True) if c.level is Level.MUST]
    if required and set(required) == {Status.WAIVED}:
        yield Finding(
            rule="GT004", check="seen", outcome=Outcome.UNKNOWN, location=task.place(task),
            message="Every required criterion is waived, so nothing that must hold was seen.",
            actual="nothing seen", remediation="Meet at least one required criterion; a waiver shows nothing.",
        )  # fmt: skip
