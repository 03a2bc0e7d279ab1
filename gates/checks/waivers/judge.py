"""The part of the business logic gate on waivers: which work today, which end soon, which do not work any more."""

from collections.abc import Iterator
from datetime import date

from gates.check import Check, EvidenceSet
from gates.evidence.run_date import RunDate
from gates.model import Basis, Finding, Level, Outcome, Planned, RuleText, Severity
from gates.report import Section
from gates.task.measurement import LONGEST, Standing, Waiver
from gates.task.task import Task
from gates.words import counted

RULES = (
    RuleText(
        id="BL012",
        title="Waivers are few, owned and short",
        meaning="A waiver lets findings of one criterion pass until a day. Ended, unused and overlong "
        "waivers are named. Rules on the run, on belief, on policy changes and on waivers cannot "
        "be waived.",
    ),
)


def plan(task: Task) -> Iterator[Planned]:
    """Plan the waivers of a task that has some."""
    if task.waivers:
        title = "Waivers are in force, needed and not about to end"
        yield Planned(id="waivers", title=title, level=Level.ADVISORY, scored=False)


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Say of each waiver whether it works on the day of the run."""
    seen = evidence.get(RunDate)
    for waiver in task.waivers:
        facts = {
            "rule": "BL012",
            "check": "waivers",
            "level": Level.ADVISORY,
            "location": task.place(waiver),
            "subject": f"{waiver.name} line {waiver.line}" if _is_double(task, waiver) else waiver.name,
            "expected": f"a day before {waiver.expires}",
        }
        told = _not_known(waiver, evidence) if seen is None else _told(waiver, seen.today)
        yield Finding.model_validate({**facts, **told})


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """List the waivers with reason, owner and day."""
    seen = evidence.get(RunDate)
    rows = []
    for one in task.waivers:
        standing = one.standing(seen.today).value if seen else "not known"
        rows.append((standing, one.criterion, one.rule or "all", one.reason, one.owner, one.expires.isoformat()))
    if rows:
        columns = ("Standing", "Criterion", "Rule", "Reason", "Owner", "Expires")
        yield Section(title="Waivers", columns=columns, rows=tuple(rows))


def _is_double(task: Task, waiver: Waiver) -> bool:
    return sum(other.name == waiver.name for other in task.waivers) > 1


def _not_known(waiver: Waiver, evidence: EvidenceSet) -> dict[str, object]:
    return {
        "outcome": Outcome.UNKNOWN,
        "actual": "no day",
        "message": f"Whether the waiver of {waiver.name} works was not seen: {evidence.why_missing(RunDate)}",
        "remediation": "Run the gate.",
    }


def _told(waiver: Waiver, today: date) -> dict[str, object]:
    """Return what is to be said of a waiver on a day."""
    who, left = waiver.title, (waiver.expires - today).days
    bad = {"outcome": Outcome.FAILED, "actual": today.isoformat()}
    match waiver.standing(today):
        case Standing.ENDED:
            ago = f"{counted(-left, 'day')} ago" if left else "today"
            message = f"{who} stopped working on {waiver.expires}, {ago}; what it covered counts again: {waiver.reason}"
            fix = "Fix what it covered and remove it, or have its owner extend it."
            return {**bad, "severity": Severity.MEDIUM, "message": message, "remediation": fix}
        case Standing.TOO_LONG:
            message = (
                f"{who} ends on {waiver.expires}, in {counted(left, 'day')}: it does not work, "
                f"{LONGEST.days} days are the most."
            )
            return {**bad, "severity": Severity.MEDIUM, "message": message, "remediation": "Set a nearer day."}
        case Standing.ENDS_SOON:
            message = f"{who} stops working on {waiver.expires}, in {counted(left, 'day')}: {waiver.reason}"
            fix = f"Fix what it covers before {waiver.expires}, or have its owner extend it."
            return {**bad, "message": message, "remediation": fix}
        case Standing.IN_FORCE:
            message = f"{who} is in force until {waiver.expires}, for {counted(left, 'day')} more: {waiver.reason}"
            return {"outcome": Outcome.NOT_APPLICABLE, "actual": today.isoformat(), "message": message}


CHECK = Check(
    name="waivers",
    gate="business-logic",
    order=60,
    rules=RULES,
    uses=(),
    plan=plan,
    judge=judge,
    page=describe,
    basis=Basis.DECLARED,
)
