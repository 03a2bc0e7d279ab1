"""What a task may ask of training steps and tests that are run with torch's calls recorded."""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from gates.task.types import InsidePath, Name, OneCall, Part, Seconds


class Need(StrEnum):
    """What must be seen in a training step; what is not asked for may be absent, but not wrong."""

    SCALER = "scaler"
    AUTOCAST = "autocast"
    BF16 = "bf16"
    GRADIENTS = "gradients"
    OVERFLOW = "overflow"
    LOGGED_SCALE = "logged-scale"


class TrainingStep(OneCall):
    """A callable that trains a few steps of a tiny model; it is run on the CPU, in a process of its own, recorded.

    `criteria` are those that it stands for, `needs` what must be seen in it: a `scaler` that scales, products in half
    precision (`autocast`), in bfloat16 (`bf16`), `gradients` like those computed in float64, an `overflow` that is
    skipped, the loss scale in what is logged or returned at each step (`logged-scale`).
    """

    key: ClassVar[str] = "training_steps"
    shown: ClassVar[str] = "shown by a training step"

    needs: tuple[Need, ...] = ()


class Seen(StrEnum):
    """What must be seen in the recorded tests, done by the project's own code."""

    SCALER = "scaler"
    AUTOCAST = "autocast"
    OVERFLOW = "overflow"


class TestsToRecord(Part):
    """Tests that are run once more with torch's calls recorded; without `tests`, those bound to the `criteria`.

    `needs` says what the project's code must have been seen to do in one of them: scale a loss (`scaler`), multiply in
    half precision (`autocast`), leave out a step whose gradients overflowed (`overflow`).
    """

    key: ClassVar[str] = "recorded_tests"
    shown: ClassVar[str] = "shown by recorded tests"

    __test__ = False

    criteria: Annotated[tuple[Name, ...], Field(min_length=1)]
    tests: tuple[InsidePath, ...] = ()
    needs: tuple[Seen, ...] = ()
    timeout_s: Seconds | None = None

    @property
    def name(self) -> str:
        """Return what these tests are called in reports."""
        return f"recorded tests of {', '.join(self.criteria)}"
