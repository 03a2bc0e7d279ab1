"""The functions of the project that a task calls for a criterion in the place of tests."""

from collections.abc import Collection

from gates.task.measurement import Measurement
from gates.task.task import Criterion, Task
from gates.task.types import Part


def called_by(part: object) -> tuple[str, ...]:
    """Return the functions that a part of a task calls; those of all arms of a measurement."""
    if isinstance(part, Measurement):
        return tuple(dict.fromkeys(arm.call for arm in part.arms.values() if arm.call))
    return part.calls if isinstance(part, Part) else ()


def measured_by(task: Task, criterion: Criterion) -> list[Measurement]:
    """Return the measurements that a criterion asks for."""
    asked = {measure.from_ for measure in criterion.measures}
    return [measurement for measurement in task.measurements if measurement.id in asked]


def called_for(task: Task, criterion: Criterion) -> list[str]:
    """Return the functions that are called for a criterion in the place of tests."""
    parts = (*task.shown_by(criterion), *measured_by(task, criterion))
    return sorted({call for part in parts for call in called_by(part)})


def stands_beside(task: Task, criterion: Criterion, idle: Collection[object] = ()) -> str:
    """Return, in words, what stands for a criterion beside tests by running or measuring something, or nothing.

    Parts of the task that are known to be `idle` are left out.
    """
    found = dict.fromkeys(part.key for part in task.shown_by(criterion) if part not in idle)
    return " and ".join(key.replace("_", " ") for key in [*found, *(["measures"] if criterion.measures else [])])
