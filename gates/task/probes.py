"""What a task may ask of callables that are run: memory, steps, sizes, several at once, what they ask of torch."""

import json
import math
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, JsonValue, model_validator

from gates.child.values import shown
from gates.model import Level
from gates.task.types import Callable, Distance, Json, Located, Name, OneCall, Part, Seconds, Taken


class Leak(OneCall):
    """A callable whose memory must not go on growing from one epoch to the next.

    A function that `call` returns is called once an epoch; where it returns anything else, `call` itself is.
    `tolerance_bytes` is what an epoch may keep; without it, 16 KB or 0.01 % of the process's memory.
    """

    key: ClassVar[str] = "leaks"

    epochs: Annotated[int, Field(ge=20, le=500)] = 30
    tolerance_bytes: Annotated[int, Field(gt=0)] | None = None


Count = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


class Limits(Located):
    """The most that a step may do; what is left out is only advised.

    `host_reads` and `synchronisations`, with emptied caches, count what happens at each step, not once in a while, as a
    log every ten steps; `stall_share` is the share of the time that is spent waiting for batches.
    """

    host_reads: Count | None = None
    synchronisations: Count | None = None
    stall_share: Share | None = None


class HotPath(OneCall):
    """A callable that trains some steps; it is run in a process of its own, and each step is taken apart.

    It is stopped after `steps` steps of an optimizer, if it does not end before. `on` is the kind of device that the
    steps must be seen on, `level` how binding its limits are.
    """

    key: ClassVar[str] = "hot_paths"

    steps: Annotated[int, Field(ge=10, le=1000)] = 50
    on: Literal["any", "cpu", "cuda", "xpu", "mps"] = "any"
    limits: Limits = Limits()
    level: Level = Level.MUST


FEWEST = 3
Size = Annotated[int, Field(ge=1)]


class Exponent(Located):
    """What the exponent must be: of what grows as `size ** exponent`."""

    at_most: float


class Scale(OneCall):
    """How a step grows with a size.

    `call` is called with `args`, `kwargs` and, by the name that `over` gives, one size after the other; what it returns
    is the step. `of` is what is measured of each step: wall time, CPU time, the most memory above what was held before
    the step was made, or how many calls of functions it makes.
    """

    key: ClassVar[str] = "scaling"

    kwargs: dict[str, Json] = Field(default_factory=dict)
    over: dict[Name, tuple[Size, ...]]
    of: Literal["step_time_s", "step_cpu_time_s", "peak_memory_bytes", "python_calls"] = "step_time_s"
    exponent: Exponent
    on: Literal["any", "cpu", "cuda", "xpu", "mps"] = "any"
    threads: Annotated[int, Field(ge=1, le=1024)] = 1
    restarts: Annotated[int, Field(ge=3, le=20)] = 5
    budget_s: Seconds = 20.0

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


MOST = 1000  # characters of arguments in a name
CONFIDENT = 3  # k rounds without a failure: fewer than 3/k fail, at 95 %


class Concurrent(Part):
    """What several threads do at once, and what must come of it: the same as alone.

    Either `call`, which each of them calls (with `args`, or each with its own of `each`): what it returns, or the part
    of it that `take` names, must be what it returns alone. Or `shared`, which makes one object that all threads `use`,
    `times` times each; what `read` says of it afterwards must be `expected`, or what the same uses give one after the
    other. `failure_rate` is what must be shown: so few rounds fail, or fewer.
    """

    key: ClassVar[str] = "concurrency"

    one_of = (("call", "shared"),)
    along = (("call", "each", "take"), ("shared", "use", "read", "times", "expected"))
    call: Callable | None = None
    args: tuple[Json, ...] = ()
    each: tuple[tuple[Json, ...], ...] = ()
    take: Taken | None = None
    shared: Callable | None = None
    use: Callable | None = None
    read: Callable | None = None
    times: Annotated[int, Field(ge=1, le=100_000)] = 1000
    expected: Json = None
    workers: Annotated[int, Field(ge=2, le=16)] = 2
    failure_rate: Annotated[float, Field(ge=0.003, le=1)] = 0.15
    tolerance: Distance | None = None
    relative: Distance | None = None
    budget_s: Seconds = 20.0
    timeout_s: Seconds | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.shared and not (self.use and self.read):
            raise ValueError(
                "'shared' needs 'use', what each thread does with it, and 'read', what is asked of it then"
            )
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
    def count(self) -> int:
        """Return how many there are at once."""
        return len(self.each) or self.workers

    @property
    def rounds(self) -> int:
        """Return how many rounds without a failure show that so few fail."""
        return math.ceil(CONFIDENT / self.failure_rate - 1e-9)


def _shown(args: tuple[JsonValue, ...]) -> str:
    return shown(list(args), MOST)[1:-1]


class Need(StrEnum):
    """What must be seen in a training step; what is not asked for may be absent, but not wrong."""

    SCALER = "scaler"
    AUTOCAST = "autocast"
    BF16 = "bf16"
    GRADIENTS = "gradients"
    OVERFLOW = "overflow"
    LOGGED_SCALE = "logged-scale"
    MEAN = "mean"


class TrainingStep(OneCall):
    """A callable that trains a few steps of a tiny model; it is run on the CPU, in a process of its own, recorded.

    `criteria` are those that it stands for, `needs` what must be seen in it: a `scaler` that scales, products in half
    precision (`autocast`), in bfloat16 (`bf16`), `gradients` like those computed in float64, an `overflow` that is
    skipped, the loss scale in what is logged or returned at each step (`logged-scale`), the `mean` of the losses of
    each step's backward passes.
    """

    key: ClassVar[str] = "training_steps"

    needs: tuple[Need, ...] = ()
