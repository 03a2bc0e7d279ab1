"""A smoke run: the same criteria at the same error, with as little of each measurement as can decide."""

from gates.task.measurement import Measurement
from gates.task.task import Task

BUDGET_S = 30.0
RESTARTS = 4  # three of them before the first look, so that it sees how processes differ
PAIRS = 32
SCALING_STARTS = 3
EPOCHS = 20
STEPS = 20
PART_S = 6.0
SAID = "smoke: little time for each measurement; what that leaves undecided is unknown"


def smoked(task: Task) -> Task:
    """Return the task with as few epochs, steps and starts as its parts allow; criteria and limits are as they were.

    Measurements stay as they are written, too: how they are cut short is no part of what an attempt is known by.
    """
    return task.model_copy(
        update={
            "smoke": True,
            "leaks": tuple(one.model_copy(update={"epochs": min(one.epochs, EPOCHS)}) for one in task.leaks),
            "hot_paths": tuple(one.model_copy(update={"steps": min(one.steps, STEPS)}) for one in task.hot_paths),
            "concurrency": tuple(
                one.model_copy(update={"budget_s": min(one.budget_s, PART_S)}) for one in task.concurrency
            ),
            "scaling": tuple(
                one.model_copy(
                    update={"restarts": min(one.restarts, SCALING_STARTS), "budget_s": min(one.budget_s, PART_S)}
                )
                for one in task.scaling
            ),
        }
    )  # fmt: skip


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
