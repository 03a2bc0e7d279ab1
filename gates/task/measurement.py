"""The part of a task that says how its numbers are taken: by commands that hand over samples, or from arms."""

from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, field_validator, model_validator

from gates.task.types import Callable, Command, Located, Name, Seconds, Text
from gates.words import called, in_shell

TIMED = ("arms", "threads", "budget_s", "restarts", "pairs", "clock", "same_result")


class Arm(Located):
    """One of the things that are compared, in a process of its own.

    `call` names a function that is called once with `args` and returns the step that is timed; `run` is a command that
    answers the protocol of a worker; `time` is a command that is timed from its start to its end. `{device}` in either
    of them makes the measurement one of a device.
    """

    call: Callable | None = None
    args: tuple[JsonValue, ...] = ()
    run: Command | None = None
    time: Command | None = None

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if sum(way is not None for way in (self.call, self.run, self.time)) != 1:
            raise ValueError("expected exactly one of 'call', 'run' and 'time'")
        if self.args and not self.call:
            raise ValueError("'args' goes with 'call', not with 'run' or 'time'")
        return self

    @property
    def name(self) -> str:
        """Return what the arm runs, as reports name it."""
        if self.call:
            return called(self.call, self.args)
        return in_shell(self.run or self.time or ())

    @property
    def by_device(self) -> bool:
        """Return whether the arm is told on which device to run."""
        return "{device}" in self.name


class Measurement(Located):
    """How numbers are taken: `run` is a command that writes them to `{out}`, or `arms` are timed by the gate itself.

    With `{device}` it is done once for each device asked for. `smoke` are words that `run` gets at its end in a smoke
    run, so that it does less. `read` says what form `run` writes, if not a samples
    file; then it is run `restarts` times, and each run is one sample. The rest is for `arms`: `threads` that each may
    use, `budget_s` in all, `restarts` of the processes, `pairs` at most, the `clock` that decides (`either`: CPU time
    where the wall clock was disturbed), and whether all arms must have the `same_result`. The first arm is the one that
    is timed against a second copy of itself.
    """

    id: Name
    run: Command | None = None
    build: Command | None = None
    smoke: tuple[Text, ...] = ()
    timeout_s: Seconds | None = None
    read: Literal["samples", "pytest-benchmark", "pyperf"] = "samples"
    arms: dict[Name, Arm] = Field(default_factory=dict)
    threads: Annotated[int, Field(ge=1, le=1024)] = 1
    budget_s: Seconds = 120.0
    restarts: Annotated[int, Field(ge=1, le=64)] = 6
    pairs: Annotated[int, Field(ge=6, le=1024)] = 64
    clock: Literal["wall", "cpu", "either"] = "either"
    same_result: bool = False

    @field_validator("arms", mode="before")
    @classmethod
    def _without_line(cls, arms: object) -> object:
        """Take away the line that the loader adds to every mapping: here it is no arm."""
        return {name: arm for name, arm in arms.items() if name != "line"} if isinstance(arms, dict) else arms

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.run is None) == (not self.arms):
            raise ValueError("expected either 'run' or 'arms'")
        if self.run and not any("{out}" in word for word in self.run):
            raise ValueError("expected '{out}' in 'run': the file that the samples are written to")
        repeated = {"restarts", "budget_s"} if self.read != "samples" else set()
        astray = [name for name in TIMED[1:] if name in self.model_fields_set - repeated] if self.run else []
        if astray:
            raise ValueError(f"{astray[0]!r} goes with 'arms', not with 'run'")
        if self.arms and self.smoke:
            raise ValueError("'smoke' goes with 'run', not with 'arms': the gate itself takes less of those")
        if self.arms and "read" in self.model_fields_set:
            raise ValueError("'read' goes with 'run', not with 'arms'")
        return self

    @property
    def by_device(self) -> bool:
        """Return whether it is done for one device at a time."""
        return any("{device}" in word for word in self.run or ()) or any(arm.by_device for arm in self.arms.values())
