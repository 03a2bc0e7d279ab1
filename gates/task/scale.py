"""The part of a task that names steps whose time, memory or calls must not grow too fast with a size."""

import json
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, JsonValue, field_validator, model_validator

from gates.task.types import Located, Name, Part, Seconds

FEWEST = 3
Size = Annotated[int, Field(ge=1)]


class Exponent(Located):
    """What the exponent must be: of what grows as `size ** exponent`."""

    at_most: float | None = None
    at_least: float | None = None

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError("expected either 'at_most' or 'at_least'")
        return self

    @property
    def bound(self) -> str:
        """Return the bound in words."""
        return f"<= {self.at_most:g}" if self.at_most is not None else f">= {self.at_least:g}"


class Scale(Part):
    """How a step grows with a size.

    `call` is called with `args`, `kwargs` and, by the name that `over` gives, one size after the other; what it returns
    is the step. `of` is what is measured of each step: wall time, CPU time, the most memory above what was held before
    the step was made, or how many calls of functions it makes.
    """

    key: ClassVar[str] = "scaling"
    shown: ClassVar[str] = "measured, in the performance gate"

    call: Annotated[str, Field(pattern=r"^[^\W\d][\w.]*:[^\W\d][\w.]*$")]
    args: tuple[JsonValue, ...] = ()
    kwargs: dict[str, JsonValue] = Field(default_factory=dict)
    over: dict[Name, tuple[Size, ...]]
    of: Literal["step_time_s", "step_cpu_time_s", "peak_memory_bytes", "python_calls"] = "step_time_s"
    exponent: Exponent
    on: Literal["any", "cpu", "cuda", "xpu", "mps"] = "any"
    threads: Annotated[int, Field(ge=1, le=1024)] = 1
    restarts: Annotated[int, Field(ge=3, le=20)] = 5
    budget_s: Seconds = 20.0
    timeout_s: Seconds | None = None

    @field_validator("over", mode="before")
    @classmethod
    def _without_line(cls, over: object) -> object:
        """Take away the line that the loader adds to every mapping: here it is no size."""
        return {name: sizes for name, sizes in over.items() if name != "line"} if isinstance(over, dict) else over

    @model_validator(mode="after")
    def _can_be_fitted(self) -> Self:
        if len(self.over) != 1:
            raise ValueError("'over' needs one name with its sizes, such as {batch: [8, 16, 32, 64]}")
        if self.argument in self.kwargs:
            raise ValueError(f"{self.argument!r} stands in 'over' and in 'kwargs'")
        if len(self.sizes) < FEWEST or list(self.sizes) != sorted(set(self.sizes)):
            raise ValueError(f"'over' needs {FEWEST} sizes or more, from the least to the largest, each once")
        if self.sizes[-1] < 4 * self.sizes[0]:
            raise ValueError("the largest size of 'over' must be 4 times the least, or more: less tells no exponent")
        return self

    @property
    def argument(self) -> str:
        """Return the name by which the size is given."""
        return next(iter(self.over))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the sizes."""
        return next(iter(self.over.values()))

    @property
    def name(self) -> str:
        """Return what it is called in reports."""
        given = [*map(json.dumps, self.args), *(f"{name}={json.dumps(value)}" for name, value in self.kwargs.items())]
        return f"{self.of} of {self.call}({', '.join([*given, f'{self.argument}=n'])})"

    def smoked(self) -> Self:
        """Return the same with few starts and little time."""
        return self.model_copy(update={"restarts": min(self.restarts, 3), "budget_s": min(self.budget_s, 6.0)})
