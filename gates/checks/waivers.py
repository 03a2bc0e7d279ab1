"""Waivers: which work today, which end soon, which do not work any more."""

from collections.abc import Iterator
from datetime import date

from gates.check import About, Check, EvidenceSet, RunDate
from gates.model import Basis, Finding, Level, Planned, Severity
from gates.task.measurement import LONGEST, Standing, Waiver
from gates.task.task import Task
from gates.words import counted


def plan(task: Task) -> Iterator[Planned]:
    """Plan the waivers of a task that has some."""
    if task.waivers:
        title = "Waivers are in force, needed and not about to end"
        yield Planned(id="waivers", title=title, level=Level.ADVISORY, scored=False)


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Say of each waiver whether it works on the day of the run."""
    seen, names = evidence.get(RunDate), [waiver.name for waiver in task.waivers]
    about = About(rule="BL012", check="waivers", level=Level.ADVISORY)
    for waiver in task.waivers:
        name = f"{waiver.name} line {waiver.line}" if names.count(waiver.name) > 1 else waiver.name
        own = about.but(location=task.place(waiver), subject=name, expected=f"a day before {waiver.expires}")
        if seen is None:
            message = f"Whether the waiver of {waiver.name} works was not seen: {evidence.why_missing(RunDate)}"
            yield own.unknown(message, "Run the gate.", actual="no day")
        else:
            yield _standing(own.but(actual=seen.today.isoformat()), waiver, seen.today)


def _standing(about: About, waiver: Waiver, today: date) -> Finding:
    who, left = waiver.title, (waiver.expires - today).days
    days = counted(abs(left), "day")
    match waiver.standing(today):
        case Standing.ENDED:
            ago = f"{days} ago" if left else "today"
            message = f"{who} stopped working on {waiver.expires}, {ago}; what it covered counts again: {waiver.reason}"
            fix = "Fix what it covered and remove it, or have its owner extend it."
            return about.failed(message, fix, severity=Severity.MEDIUM)
        case Standing.TOO_LONG:
            message = f"{who} ends on {waiver.expires}, in {days}: it does not work, {LONGEST.days} days are the most."
            return about.failed(message, "Set a nearer day.", severity=Severity.MEDIUM)
        case Standing.ENDS_SOON:
            fix = f"Fix what it covers before {waiver.expires}, or have its owner extend it."
            return about.failed(f"{who} stops working on {waiver.expires}, in {days}: {waiver.reason}", fix)
        case Standing.IN_FORCE:
            return about.not_asked(f"{who} is in force until {waiver.expires}, for {days} more: {waiver.reason}")


CHECK = Check("waivers", "business-logic", 60, (RunDate,), plan, judge, basis=Basis.DECLARED)
