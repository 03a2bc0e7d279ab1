"""What a task says of measurements, of the code that a criterion is bound to, and of waivers."""

from datetime import date, timedelta
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from gates.scan.pattern import Pattern, PatternError
from gates.task.types import Callable, Command, InsidePath, Json, Located, Name, Seconds, Text
from gates.words import called, in_shell


class Arm(Located):
    """One of the things that are compared, in a process of its own.

    `call` names a function that is called once with `args` and returns the step that is timed; `run` is a command that
    answers the protocol of a worker; `time` is a command that is timed from its start to its end. `{device}` in either
    of them makes the measurement one of a device.
    """

    one_of = (("call", "run", "time"),)
    along = (("call", "args"),)
    call: Callable | None = None
    args: tuple[Json, ...] = ()
    run: Command | None = None
    time: Command | None = None

    @property
    def name(self) -> str:
        """Return what the arm runs, as reports name it."""
        return called(self.call, self.args) if self.call else in_shell(self.run or self.time or ())

    @property
    def by_device(self) -> bool:
        """Return whether the arm is told on which device to run."""
        return "{device}" in self.name


class Measurement(Located):
    """How numbers are taken: `run` is a command that writes them to `{out}`, or `arms` are timed by the gate itself.

    With `{device}` it is done once for each device asked for. `smoke` are words that `run` gets at its end where it is
    only looked at what it calls (BL017), so that it does less. `read` says what form `run` writes, if not a samples
    file; then it is run `restarts` times, and each run is one sample. The rest is for `arms`: `threads` that each may
    use, `budget_s` in all, `restarts` of the processes, `pairs` at most, the `clock` that decides (`either`: CPU time
    where the wall clock was disturbed), and whether all arms must have the `same_result`. The first arm is the one that
    is timed against a second copy of itself.
    """

    one_of = (("run", "arms"),)
    along = (("run", "smoke", "read"), ("arms", "threads", "pairs", "clock", "same_result"))
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
    pairs: Annotated[int, Field(ge=6, le=1024)] = 256
    clock: Literal["wall", "cpu", "either"] = "either"
    same_result: bool = False

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.run and not any("{out}" in word for word in self.run):
            raise ValueError("expected '{out}' in 'run': the file that the samples are written to")
        if self.run and self.read == "samples" and (astray := sorted({"budget_s", "restarts"} & self.model_fields_set)):
            raise ValueError(f"{astray[0]!r} goes with 'arms', or with 'read'")
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


Used = Annotated[str, Field(pattern=r"^[^\W\d][\w.]*(:[^\W\d][\w.]*)?$")]


class CodeBinding(Located):
    """The code that implements a criterion: a symbol, a pattern, or a code rule.

    `uses` are names that live code of the symbol must use, as its module writes them, or as `module:name`. A pattern
    must fit live code of the implementation, or of the file or folder `in`, in `at_least` so many places.
    """

    one_of = (("symbol", "pattern", "rule"),)
    along = (("symbol", "uses"), ("pattern", "in_", "at_least"))
    symbol: Callable | None = None
    uses: tuple[Used, ...] = ()
    rule: Name | None = None
    pattern: Annotated[Text, AfterValidator(_pattern)] | None = None
    in_: InsidePath | None = Field(default=None, alias="in")
    at_least: int = Field(default=1, ge=1)

    @property
    def name(self) -> str:
        """Return what the binding is called in reports."""
        if self.pattern:
            return f"pattern {self.pattern}" + (f" in {self.in_}" if self.in_ else "")
        return self.symbol or f"rule {self.rule}"


WARNING, LONGEST = timedelta(days=14), timedelta(days=366)
NEVER_WAIVED = frozenset(  # the rules of the run itself, of belief, of the bar, and of waivers
    ["GT001", "GT002", "GT003", "GT004", "GT006", "GT007", "GT008", "EX001", "BL003", "BL004", "BL011", "BL012"]
)


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
        if self.rule in NEVER_WAIVED:
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
