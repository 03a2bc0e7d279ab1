"""The part of a task that names tests to be recorded: what the project's code does in them is judged, too."""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from gates.task.types import InsidePath, Name, Part, Seconds


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
