"""A smoke run: the same criteria at the same error, with as little of each measurement as can decide."""

from gates.task.measurement import Measurement
from gates.task.task import Task

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
    return measurement.model_copy(
        update={
            "budget_s": min(measurement.budget_s, BUDGET_S),
            "restarts": min(measurement.restarts, RESTARTS) if measurement.arms else measurement.restarts,
            "pairs": min(measurement.pairs, PAIRS),
            "run": (*measurement.run, *measurement.smoke) if measurement.run else None,
        }
    )
