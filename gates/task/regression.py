"""The part of a task that names what must not become slower or larger than it was at the baseline revision."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from gates.task.types import ArmName, Command, Name, Part

Compared = Literal[
    "step_time_s", "step_cpu_time_s", "items_per_s", "run_time_s", "run_cpu_time_s", "peak_memory_bytes",
    "process_peak_bytes", "time_s",
]  # fmt: skip
Share = Annotated[float, Field(gt=0, le=1000)]


class Regression(Part):
    """A number of a measurement, taken on the baseline revision and here in turn, and how much worse it may be.

    `arm` may be left out where the measurement has one only. More than `block_at` over the baseline fails, more than
    `warn_at` is a warning (0.5, or `block_at` if that is less): 1.0 is 100 %. `build` is run once in the baseline's
    folder; `{root}` in it is the project's.
    """

    key: ClassVar[str] = "regressions"
    shown: ClassVar[str] = "measured, in the performance gate"

    from_: Name = Field(alias="from")
    of: Compared
    arm: ArmName | None = None
    on: Literal["any", "cpu", "cuda", "rocm", "xpu", "mps"] = "any"
    warn_at: Share | None = None
    block_at: Share = 1.0
    build: Command | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.warn_at is not None and self.warn_at > self.block_at:
            raise ValueError(f"expected 'warn_at' to be at most 'block_at', which is {self.block_at:g}")
        return self

    @property
    def warns_at(self) -> float:
        """Return from where on it is a warning: a half, or where it fails if that is less."""
        return min(0.5, self.block_at) if self.warn_at is None else self.warn_at

    @property
    def name(self) -> str:
        """Return what is compared, as reports name it."""
        return f"{self.of} of {self.from_}{'/' + self.arm if self.arm else ''} on {self.on}"
