"""Builders of what was seen of a hot path."""

from collections.abc import Sequence
from typing import Any

from building import a_task

from gates.checks.hot_path import HotPaths, HotRead, HotSeen, HotStep
from gates.model import Location
from gates.task.task import Task

ALL = {"host_reads": 0, "synchronisations": 0, "stall_share": 0.1}


def a_hot_task(**changes: Any) -> Task:
    """A task with one hot path for its first criterion, and all limits."""
    path = {"call": "pkg.train:few", "args": [2], "criteria": ["AC1"], "limits": ALL, "line": 7}
    return a_task(hot_paths=[{**path, **changes}])


def a_read(call: str = "item", line: int | None = 5, **changes: Any) -> HotRead:
    """One read of the project's own code."""
    place = Location(path="pkg/train.py", line=line) if line else None
    return HotRead.model_validate({"call": call, "location": place, "by": "pkg.train", "device": "cpu", **changes})


def a_step(*reads: HotRead, waited: float = 0.001, rest: float = 0.019, **changes: Any) -> HotStep:
    """A step of 20 ms on the CPU."""
    facts = {"seconds": waited + rest, "waited": waited, "device": "cpu", "reads": reads, **changes}
    return HotStep.model_validate(facts)


def a_hot_run(steps: Sequence[HotStep], **changes: Any) -> HotSeen:
    """A process that came to its end; the steps that are left out are put before those given."""
    first = (a_step(),) * max(2, len(steps) * 3 // 17)
    return HotSeen.model_validate({"run": (*first, *steps), **changes})


def hot(seen: HotSeen | None = None) -> HotPaths:
    """The evidence of one hot path, sound where nothing else is given."""
    return HotPaths(how="steps taken apart", seen=(seen or a_hot_run([a_step()] * 12),))
