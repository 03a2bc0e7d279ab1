"""The functions of the project that a part of a task calls."""

from collections.abc import Collection

from gates.task.calculation import Called
from gates.task.concurrent import Concurrent
from gates.task.hot_path import HotPath
from gates.task.leak import Leak
from gates.task.measurement import Measurement
from gates.task.scale import Scale
from gates.task.task import Criterion, EntryPoint, Task
from gates.task.training_step import TrainingStep

Calling = Called | Concurrent | EntryPoint | HotPath | Leak | Scale | TrainingStep

# parts of a task that stand for criteria by running or measuring something
BESIDE = ("entry_points", "calculations", "edge_cases", "properties", "training_steps", "recorded_tests", "leaks",
          "hot_paths", "concurrency", "scaling", "regressions")  # fmt: skip


def called_by(part: object) -> tuple[str, ...]:
    """Return the functions that a part of a task calls; those of all arms of a measurement."""
    if isinstance(part, Measurement):
        return tuple(dict.fromkeys(arm.call for arm in part.arms.values() if arm.call))
    return (part.call,) if isinstance(part, Calling) and part.call else ()


def measured_by(task: Task, criterion: Criterion) -> list[Measurement]:
    """Return the measurements that a criterion asks for."""
    asked = {measure.from_ for measure in criterion.measures}
    return [measurement for measurement in task.measurements if measurement.id in asked]


def called_for(task: Task, criterion: Criterion) -> list[str]:
    """Return the functions that are called for a criterion in the place of tests."""
    listed = (task.entry_points, task.calculations, task.edge_cases, task.properties, task.leaks, task.hot_paths,
              task.concurrency, task.scaling, task.training_steps)  # fmt: skip
    parts = [part for some in listed for part in some if criterion.id in part.criteria]
    return sorted({call for part in (*parts, *measured_by(task, criterion)) for call in called_by(part)})


def stands_beside(task: Task, criterion: Criterion, idle: Collection[object] = ()) -> str:
    """Return, in words, what stands for a criterion beside tests by running or measuring something, or nothing.

    Parts of the task that are known to be `idle` are left out.
    """
    found = [
        name for name in BESIDE
        if any(criterion.id in part.criteria and part not in idle for part in getattr(task, name))
    ]  # fmt: skip
    return " and ".join(name.replace("_", " ") for name in [*found, *(["measures"] if criterion.measures else [])])
