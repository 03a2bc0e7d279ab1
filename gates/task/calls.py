"""What of a task speaks for a criterion in the place of tests."""

from collections.abc import Collection

from gates.task.measurement import Measurement
from gates.task.task import Criterion, Task


def measured_by(task: Task, criterion: Criterion) -> list[Measurement]:
    """Return the measurements that a criterion asks for."""
    asked = {measure.from_ for measure in criterion.measures}
    return [measurement for measurement in task.measurements if measurement.id in asked]


def stands_beside(task: Task, criterion: Criterion, idle: Collection[object] = ()) -> str:
    """Return, in words, what stands for a criterion beside tests by running or measuring something, or nothing.

    Parts of the task that are known to be `idle` are left out.
    """
    found = dict.fromkeys(part.key for part in task.shown_by(criterion) if part not in idle)
    return " and ".join(key.replace("_", " ") for key in [*found, *(["measures"] if criterion.measures else [])])
