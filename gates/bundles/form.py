"""What a bundle holds: the runs of a measurement and the state of the project that they speak of."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from gates.evidence.measurement_run import MeasurementRun
from gates.measuring.samples import Samples
from gates.model import Model, TaskIdentity
from gates.task.measurement import Measurement
from gates.task.task import Measure
from gates.task.types import InsidePath

SCHEMA = "gates.bundle/1"
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Definition = dict[str, JsonValue]


class BoundFile(Model):
    """A file that a measurement speaks of, as it was: its contents' SHA-256, and whether it may be executed."""

    path: InsidePath
    sha256: Sha256
    executable: bool


class BundledRun(Model):
    """One measurement on one device: what was asked for, the files that it speaks of, and what was seen."""

    definition: Definition
    measures: tuple[Definition, ...]
    files: Annotated[tuple[BoundFile, ...], Field(min_length=1)]
    run: MeasurementRun

    @model_validator(mode="after")
    def _of_one_piece(self) -> Self:
        device = self.samples.device.type
        if self.run.device not in {"any", device}:
            raise ValueError(f"samples of a {device!r} device, said to be of {self.run.device!r}")
        if self.run.problem:
            raise ValueError("samples of a run that did not end well")
        return self

    @property
    def samples(self) -> Samples:
        """Return the samples; without any there is nothing to bundle."""
        if self.run.samples is None:
            raise ValueError("a run without samples")
        return self.run.samples


class Origin(Model):
    """Where a bundle was made: when, by whom, on what, and by which command. It is told, not proved."""

    at: str
    by: str
    command: tuple[str, ...]
    environment: dict[str, str]
    commit: str | None
    dirty: bool | None

    @property
    def revision(self) -> str:
        """Return the commit in words."""
        return f"commit {self.commit[:12]}{', changed since' if self.dirty else ''}" if self.commit else "no commit"


class Bundle(Model):
    """A measurement made on another machine. `digest` is that of all the rest; `signature` speaks for all but both."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, title="gates bundle")

    schema_: Literal["gates.bundle/1"] = Field(alias="schema")
    task: TaskIdentity
    origin: Origin
    runs: Annotated[tuple[BundledRun, ...], Field(min_length=1)]
    signature: str | None = None
    digest: Sha256

    @model_validator(mode="after")
    def _once(self) -> Self:
        named = [(one.run.id, one.run.device) for one in self.runs]
        if len(set(named)) < len(named):
            raise ValueError("holds one measurement on one device twice")
        return self


def definition_of(part: Measurement | Measure) -> Definition:
    """Return what a part of a task asks for: all that was written but its place, its level and how long it may take."""
    left_out = {"level", "timeout_s"}
    asked: Definition = part.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=left_out)
    if isinstance(part, Measurement) and part.arms:
        asked["order"] = list(part.arms)  # the first is the one that the others are compared with
    return asked
