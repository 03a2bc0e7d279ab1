"""The part of a task that names what is run several times at once, to see whether that changes what comes of it."""

import json
import math
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, JsonValue, model_validator

from gates.task.types import Callable, Distance, Part, Seconds, Taken

Where = Literal["threads", "processes"]
CONFIDENT = 3  # k rounds without a failure: fewer than 3/k fail, at 95 %


class Concurrent(Part):
    """What several threads or processes do at once, and what must come of it: the same as alone.

    Either `call`, which each of them calls (with `args`, or each with its own of `each`): what it returns, or the part
    of it that `take` names, must be what it returns alone. Or `shared`, which makes one object that all threads `use`,
    `times` times each; what `read` says of it afterwards must be `expected`, or what the same uses give one after the
    other. `failure_rate` is what must be shown: so few rounds fail, or fewer.
    """

    key: ClassVar[str] = "concurrency"
    shown: ClassVar[str] = "measured, in the performance gate"

    call: Callable | None = None
    args: tuple[JsonValue, ...] = ()
    each: tuple[tuple[JsonValue, ...], ...] = ()
    take: Taken | None = None
    shared: Callable | None = None
    use: Callable | None = None
    read: Callable | None = None
    times: Annotated[int, Field(ge=1, le=100_000)] = 1000
    expected: JsonValue = None
    workers: Annotated[int, Field(ge=2, le=16)] = 2
    where: Annotated[tuple[Where, ...], Field(alias="in", min_length=1)] = ("threads", "processes")
    failure_rate: Annotated[float, Field(ge=0.003, le=1)] = 0.15
    tolerance: Distance | None = None
    relative: Distance | None = None
    budget_s: Seconds = 20.0
    timeout_s: Seconds | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.call is None) == (self.shared is None):
            raise ValueError("expected either 'call' or 'shared'")
        if self.shared and not (self.use and self.read):
            raise ValueError(
                "'shared' needs 'use', what each thread does with it, and 'read', what is asked of it then"
            )
        own = ("use", "read", "times", "expected") if self.call else ("each", "take", "where")
        astray = [name for name in own if name in self.model_fields_set]
        if astray:
            name = "in" if astray[0] == "where" else astray[0]
            raise ValueError(f"'{name}' goes with {'shared' if self.call else 'call'!r}")
        if self.each and {"args", "workers"} & self.model_fields_set:
            raise ValueError("'each' says what each is called with, and how many there are: no 'args', no 'workers'")
        if len(self.each) == 1:
            raise ValueError("'each' needs two lists of arguments or more")
        return self

    @property
    def name(self) -> str:
        """Return what it is called in reports."""
        if self.shared:
            return f"{self.use} on one {self.shared}({_shown(self.args)})"
        return f"{self.call}({' | '.join(map(_shown, self.each)) or _shown(self.args)})"

    @property
    def places(self) -> tuple[Where, ...]:
        """Return in what it is run at once: an object is shared by threads only."""
        return ("threads",) if self.shared else tuple(dict.fromkeys(self.where))

    @property
    def count(self) -> int:
        """Return how many there are at once."""
        return len(self.each) or self.workers

    @property
    def rounds(self) -> int:
        """Return how many rounds without a failure show that so few fail."""
        return math.ceil(CONFIDENT / self.failure_rate - 1e-9)

    def smoked(self) -> Self:
        """Return the same with little time."""
        return self.model_copy(update={"budget_s": min(self.budget_s, 6.0)})


def _shown(args: tuple[JsonValue, ...]) -> str:
    return ", ".join(map(_one, args))


def _one(value: JsonValue) -> str:
    """Return an argument as people read it, what is made by a call as that call."""
    if isinstance(value, dict) and "$call" in value:
        args, kwargs = value.get("args"), value.get("kwargs")
        named = [f"{name}={_one(item)}" for name, item in kwargs.items()] if isinstance(kwargs, dict) else []
        return f"{value['$call']}({', '.join([*map(_one, args if isinstance(args, list) else []), *named])})"
    return json.dumps(value)
