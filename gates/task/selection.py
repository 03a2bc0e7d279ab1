"""What of a task is asked for, and what is said of the rest."""

from collections.abc import Iterable
from dataclasses import dataclass

from gates.model import Finding, Outcome, RuleText, Severity
from gates.task.task import Task

NOT_ASKED_FOR = RuleText(
    id="GT003",
    title="Every criterion was asked for",
    meaning="A run of one criterion (--only) says nothing of the others, nor of tests and entry points that it "
    "leaves out; they stay unknown.",
)


@dataclass(frozen=True)
class Selection:
    """What of a task is asked for: gates by name (all where empty), one criterion, and whether a block stops."""

    gates: tuple[str, ...] = ()
    only: str | None = None
    keep_going: bool = False


def narrowed(task: Task, only: str | None) -> Task:
    """Return the task with one criterion and what that one needs; raise `UsageError` where it has no such criterion."""
    if only is None:
        return task
    criterion = task.criterion(only)
    asked = {key: tuple(part for part in task.parts(key) if only in part.criteria) for key in task.part_keys()}
    tests = criterion.tests or task.tests
    return task.model_copy(update={"criteria": (criterion,), "tests": tests, "only": only, **asked})


def left_out(whole: Task, asked: Task, only: str | None) -> Iterable[Finding]:
    """Say of all that was not asked for that it was not looked at."""
    common = {
        "rule": "GT003",
        "outcome": Outcome.UNKNOWN,
        "severity": Severity.HIGH,
        "actual": "not looked at",
        "remediation": "Run without --only.",
        "command": f"gates run {whole.id}",
    }
    for criterion in whole.criteria:
        if criterion not in asked.criteria:
            message = f"{criterion.id} was not asked for (--only {only})."
            own = {"check": f"only:{criterion.id}", "criterion": criterion.id, "level": criterion.level}
            yield Finding.model_validate({**common, **own, "message": message, "location": whole.place(criterion)})
    parts = [name for name in ("tests", *whole.part_keys()) if getattr(asked, name) != getattr(whole, name)]
    if parts:
        message = f"Some of the task's {', '.join(parts).replace('_', ' ')} were not asked for (--only {only})."
        yield Finding.model_validate({**common, "check": "only", "message": message, "location": whole.place(whole)})
