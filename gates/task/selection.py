"""What of a task is asked for, what is said of the rest, and how little of a measurement a smoke run takes."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from gates.model import Finding, Outcome, RuleText
from gates.task.measurement import Measurement
from gates.task.task import Task

NOT_ASKED_FOR = RuleText(
    id="GT003",
    title="Every criterion was asked for",
    meaning="A run of one criterion (--only) says nothing of the others, nor of the tests and entry "
    "points that it leaves out. They stay unknown.",
)


@dataclass(frozen=True)
class Selection:
    """What of a task is asked for: gates and criteria by name (all where empty), and whether a block stops."""

    gates: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    keep_going: bool = False

    @property
    def partial(self) -> str:
        """Return what alone was asked for, in words; empty where it was the whole task."""
        return " and ".join(
            part for part in (", ".join(self.only), f"gate {', '.join(self.gates)}" if self.gates else "") if part
        )


def narrowed(task: Task, *only: str | None) -> Task:
    """Return the task with some criteria and what these need; raise `UsageError` where it has no such criterion."""
    names = tuple(dict.fromkeys(filter(None, only)))
    if not names:
        return task
    criteria = tuple(task.criterion(name) for name in names)
    asked = {key: tuple(p for p in task.parts(key) if set(names) & set(p.criteria)) for key in task.part_keys()}
    bound = all(criterion.tests for criterion in criteria)
    tests = tuple(dict.fromkeys(test for c in criteria for test in c.tests)) if bound else task.tests
    return task.model_copy(update={"criteria": criteria, "tests": tests, "only": ", ".join(names), **asked})


def left_out(whole: Task, asked: Task) -> Iterable[Finding]:
    """Say of all that was not asked for that it was not looked at."""
    only = asked.only
    said = partial(Finding, rule="GT003", outcome=Outcome.UNKNOWN, actual="not looked at")
    said = partial(said, remediation="Run without --only.", command=f"gates run {whole.id}")
    for criterion in whole.criteria:
        if criterion not in asked.criteria:
            message, name = f"{criterion.id} was not asked for (--only {only}).", criterion.id
            about = partial(said, check=f"only:{name}", criterion=name, level=criterion.level)
            yield about(message=message, location=whole.place(criterion))
    parts = [name for name in ("tests", *whole.part_keys()) if getattr(asked, name) != getattr(whole, name)]
    if parts:
        message = f"Some of the task's {', '.join(parts).replace('_', ' ')} were not asked for (--only {only})."
        yield said(check="only", message=message, location=whole.place(whole))


BUDGET_S = 30.0
RESTARTS = 4  # three of them before the first look, so that it sees how processes differ
PAIRS = 32
SAID = "smoke: little time for each measurement; what that leaves undecided is unknown"


def smoked(task: Task) -> Task:
    """Return the task with each of its parts as small as can decide; criteria and limits are as they were.

    Measurements stay as they are written, too: how they are cut short is no part of what an attempt is known by.
    """
    parts = {key: tuple(part.smoked() for part in task.parts(key)) for key in Task.part_keys()}
    return task.model_copy(update={"smoke": True, **parts})


def cut_short(measurement: Measurement, task: Task) -> Measurement:
    """Return how a measurement is taken: in a smoke run with less time, fewer starts and pairs; else as it stands."""
    if not task.smoke:
        return measurement
    less = {"budget_s": min(measurement.budget_s, BUDGET_S), "pairs": min(measurement.pairs, PAIRS)}
    restarts = min(measurement.restarts, RESTARTS) if measurement.arms else measurement.restarts
    run = (*measurement.run, *measurement.smoke) if measurement.run else None
    return measurement.model_copy(update={**less, "restarts": restarts, "run": run})
