"""Builders of what was seen of a callable that was run over and over."""

from collections.abc import Sequence
from typing import Any

from building import a_task

from gates.checks.leaks import LeakRun, Leaks, Rung
from gates.model import Location
from gates.task.task import Task

MB = 1 << 20


def a_leaking_task(**changes: Any) -> Task:
    """A task with one callable whose memory must not go on growing, for its first criterion."""
    return a_task(leaks=[{"call": "pkg.train:epochs", "args": [2], "criteria": ["AC1"], "line": 7, **changes}])


def level(value: float = 100.0, epochs: int = 30) -> list[float]:
    """A rung that stays where it is."""
    return [value] * epochs


def growing(by: float = MB, epochs: int = 30) -> list[float]:
    """A rung that grows by as much in each epoch."""
    return [100.0 * MB + by * i for i in range(epochs)]


def a_watch(epochs: int = 30, **changes: Any) -> LeakRun:
    """A run to its end in which no rung grows; a rung is given by its name, or left out with `None`."""
    names = ("tensors", "graph", "python", "private")
    given: dict[str, Sequence[float] | None] = {name: changes.pop(name, level(epochs=epochs)) for name in names}
    rungs = tuple(Rung(name=name, values=tuple(values)) for name, values in given.items() if values is not None)
    facts: dict[str, Any] = {"form": "returned", "asked": epochs, "epochs": epochs, "rungs": rungs}
    return LeakRun.model_validate({**facts, **changes})


ALLOCATED = Location(path="pkg/model.py", line=3)


def leaked(first: LeakRun | None = None, longer: LeakRun | None = None, **changes: Any) -> Leaks:
    """What was seen of the first callable of a task: nothing grew, where nothing else is given."""
    run = (longer or first or a_watch()).model_copy(update={"longer": longer is not None, **changes})
    return Leaks(how="each callable over and over", seen=(LeakRun.model_validate(dict(run)),))
