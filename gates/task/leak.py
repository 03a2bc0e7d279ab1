"""The part of a task that names what is run over and over, to see whether its memory goes on growing."""

import json
from typing import Annotated, ClassVar, Self

from pydantic import Field, JsonValue

from gates.task.types import Part, Seconds


class Leak(Part):
    """A callable whose memory must not go on growing from one epoch to the next.

    What `call` returns says what an epoch is: a function is called once an epoch, an iterator makes one step an epoch,
    a context manager is entered first; where it returns anything else, `call` itself is called once an epoch.
    `tolerance_bytes` is what an epoch may keep; without it, 16 KB or 0.01 % of the process's memory.
    """

    key: ClassVar[str] = "leaks"
    shown: ClassVar[str] = "measured, in the performance gate"

    call: Annotated[str, Field(pattern=r"^[^\W\d][\w.]*:[^\W\d][\w.]*$")]
    args: tuple[JsonValue, ...] = ()
    epochs: Annotated[int, Field(ge=20, le=500)] = 30
    tolerance_bytes: Annotated[int, Field(gt=0)] | None = None
    timeout_s: Seconds | None = None

    @property
    def name(self) -> str:
        """Return what it is called in reports."""
        return f"{self.call}({', '.join(json.dumps(arg) for arg in self.args)})"

    def smoked(self) -> Self:
        """Return the same with as few epochs as can decide."""
        return self.model_copy(update={"epochs": min(self.epochs, 20)})
