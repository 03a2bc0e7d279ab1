"""The part of a task that names what trains, to see where the time of a step goes and what the host waits for."""

import json
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, JsonValue

from gates.model import Level
from gates.task.types import Located, Part, Seconds

Count = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


class Limits(Located):
    """The most that a step may do; what is left out is only advised.

    `host_reads`, `synchronisations` and `empty_cache` count what happens at each step (what happens once in a while,
    such as a log every ten steps, does not); `stall_share` is the share of the time that is spent waiting for batches.
    """

    host_reads: Count | None = None
    synchronisations: Count | None = None
    empty_cache: Count | None = None
    stall_share: Share | None = None


class HotPath(Part):
    """A callable that trains some steps; it is run in a process of its own, and each step is taken apart.

    It is stopped after `steps` steps of an optimizer, if it does not end before. `on` is the kind of device that the
    steps must be seen on, `level` how binding its limits are.
    """

    key: ClassVar[str] = "hot_paths"
    shown: ClassVar[str] = "measured, in the performance gate"

    call: Annotated[str, Field(pattern=r"^[^\W\d][\w.]*:[^\W\d][\w.]*$")]
    args: tuple[JsonValue, ...] = ()
    steps: Annotated[int, Field(ge=10, le=1000)] = 50
    on: Literal["any", "cpu", "cuda", "xpu", "mps"] = "any"
    limits: Limits = Limits()
    level: Level = Level.MUST
    timeout_s: Seconds | None = None

    @property
    def name(self) -> str:
        """Return what it is called in reports."""
        return f"{self.call}({', '.join(json.dumps(arg) for arg in self.args)})"

    def smoked(self) -> Self:
        """Return the same with as few steps as can decide."""
        return self.model_copy(update={"steps": min(self.steps, 20)})
