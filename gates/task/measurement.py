"""What a task says of measurements, of the code that a criterion is bound to, and of waivers."""

from datetime import date, timedelta
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from gates.scan.pattern import Pattern, PatternError
from gates.task.types import Callable, Command, InsidePath, Json, Located, Name, Seconds, Text
from gates.words import called, in_shell

TIMED = ("arms", "threads", "budget_s", "restarts", "pairs", "clock", "same_result")


class Arm(Located):
    """One of the things that are compared, in a process of its own.

    `call` names a function that is called once with `args` and returns the step that is timed; `run` is a command that
    answers the protocol of a worker; `time` is a command that is timed from its start to its end. `{device}` in either
    of them makes the measurement one of a device.
    """

    call: Callable | None = None
    args: tuple[Json, ...] = ()
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


def _pattern(text: str) -> str:
    try:
        Pattern.parse(text)
    except PatternError as error:
        raise ValueError(f"{error}, in the pattern {text!r:.80}") from error
    return text


Symbol = Annotated[str, Field(pattern=r"^[^\W\d][\w.]*:[^\W\d][\w.]*$")]
Used = Annotated[str, Field(pattern=r"^[^\W\d][\w.]*(:[^\W\d][\w.]*)?$")]


class CodeBinding(Located):
    """The code that implements a criterion: a symbol, a pattern, or a code rule.

    `uses` are names that live code of the symbol must use, as its module writes them, or as `module:name`. A pattern
    must fit live code of the implementation, or of the file or folder `in`, in `at_least` so many places.
    """

    symbol: Symbol | None = None
    uses: tuple[Used, ...] = ()
    rule: Name | None = None
    pattern: Annotated[Text, AfterValidator(_pattern)] | None = None
    in_: InsidePath | None = Field(default=None, alias="in")
    at_least: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if sum(part is not None for part in (self.symbol, self.rule, self.pattern)) != 1:
            raise ValueError("expected exactly one of 'symbol', 'pattern' and 'rule'")
        if self.uses and not self.symbol:
            raise ValueError("'uses' goes with 'symbol'")
        for key, given in (("in", self.in_ is not None), ("at_least", self.at_least > 1)):
            if given and not self.pattern:
                raise ValueError(f"{key!r} goes with 'pattern'")
        return self

    @property
    def name(self) -> str:
        """Return what the binding is called in reports."""
        if self.pattern:
            return f"pattern {self.pattern}" + (f" in {self.in_}" if self.in_ else "")
        return self.symbol or f"rule {self.rule}"


WARNING = timedelta(days=14)
LONGEST = timedelta(days=366)
NEVER = frozenset({"EX001", "BL003", "BL004", "BL011", "BL012"})


class Standing(StrEnum):
    """Whether a waiver works on a day, and if not, why."""

    IN_FORCE = "in force"
    ENDS_SOON = "ends soon"
    ENDED = "ended"
    TOO_LONG = "too long"


class Waiver(Located):
    """What is let pass of one criterion, all of it or one rule; it works until the day before `expires`."""

    criterion: Name
    rule: Annotated[str, Field(pattern=r"^[A-Z]{2}[0-9]{3}$")] | None = None
    reason: Text
    owner: Text
    expires: date

    @model_validator(mode="after")
    def _may_be_waived(self) -> Self:
        if self.rule and not may_be_waived(self.rule):
            raise ValueError(f"{self.rule} can't be waived: it says whether the rest can be believed")
        return self

    def standing(self, today: date) -> Standing:
        """Return whether the waiver works on a day; one for longer than a year does not until its last year."""
        if self.expires <= today:
            return Standing.ENDED
        if self.expires - today > LONGEST:
            return Standing.TOO_LONG
        return Standing.ENDS_SOON if self.expires - today <= WARNING else Standing.IN_FORCE

    def works(self, today: date) -> bool:
        """Return whether the waiver works on a day."""
        return self.standing(today) in {Standing.IN_FORCE, Standing.ENDS_SOON}

    @property
    def name(self) -> str:
        """Return what the waiver is called in reports, such as `AC5 PF001`."""
        return f"{self.criterion} {self.rule}" if self.rule else self.criterion

    @property
    def title(self) -> str:
        """Return the waiver with who answers for it, as sentences about it begin."""
        return f"Waiver of {self.name} (owner {self.owner})"


def may_be_waived(rule: str) -> bool:
    """Return whether a rule can be waived: never one of the run itself, of belief, of the bar, or of waivers."""
    return rule not in NEVER and not rule.startswith("GT")
