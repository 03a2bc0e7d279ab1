"""A task and its acceptance criteria: what was asked, and how much of it a partial run looks at."""

import re
from collections.abc import Collection, Iterable
from enum import StrEnum
from functools import cache, partial
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeVar, get_args

from pydantic import Field, create_model, model_validator

from gates import registry
from gates.model import Finding, Level, Location, Outcome, TaskIdentity
from gates.task.measurement import CodeBinding, Measurement, Waiver
from gates.task.types import ArmName, Callable, Command, InsidePath, Json, Located, Name, OneCall, Part, Seconds, Text
from gates.words import called, in_shell, joined, one_of

Spot = tuple[str, str, int, int]  # a key of the task, a word of its list, and the line and column of that
P = TypeVar("P", bound=Part)
KINDS: tuple[Literal["ratio", "reduction", "difference", "value"], ...] = ("ratio", "reduction", "difference", "value")
TASK_ID = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


class Measure(Located):
    """A number that a criterion demands, and how it comes from the samples of a measurement.

    One of `ratio` [a, b] (median of a/b over pairs), `reduction` [a, b] (1 - b/a), `difference` [a, b] (a - b),
    `value` (one arm); one of `at_least`, `at_most`, `below`. `on` is the kind of
    device that it must be seen on; `when` names capabilities without which the measure does not apply to a device.
    The arms `base` and `now` are one arm of the measurement, named by `arm` where it has several, at the base and here.
    """

    one_of = (KINDS, ("at_least", "at_most", "below"))
    from_: Name = Field(alias="from")
    of: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.:/-]*$")]
    ratio: tuple[ArmName, ArmName] | None = None
    reduction: tuple[ArmName, ArmName] | None = None
    difference: tuple[ArmName, ArmName] | None = None
    value: ArmName | None = None
    at_least: float | None = None
    at_most: float | None = None
    below: float | None = None
    on: Literal["any", "cpu", "cuda", "rocm", "xpu", "mps"] = "any"
    when: tuple[Name, ...] = ()
    level: Level | None = None
    arm: ArmName | None = None

    @model_validator(mode="after")
    def _one_each(self) -> Self:
        if self.ratio and (self.at_least or self.at_most or self.below or 0) <= 0:
            raise ValueError("a ratio is compared with a number above 0")
        if len(self.arms) == 2 and len(set(self.arms)) == 1:
            raise ValueError(f"'{self.kind}' compares {self.arms[0]!r} with itself: name two arms")
        if self.arm and not self.against_base:
            raise ValueError("'arm' goes with the arms 'base' and 'now'")
        return self

    @property
    def against_base(self) -> bool:
        """Return whether the base revision is compared with the work tree."""
        return set(self.arms) == {"base", "now"}

    @property
    def kind(self) -> Literal["ratio", "reduction", "difference", "value"]:
        """Return which of the four ways the number is made in."""
        return next((kind for kind in KINDS if getattr(self, kind) is not None), "value")

    @property
    def arms(self) -> tuple[str, ...]:
        """Return the arms that the number is made of."""
        return self.ratio or self.reduction or self.difference or (self.value or "",)

    @property
    def bound(self) -> tuple[str, float]:
        """Return the comparison's sign and its limit."""
        if self.at_least is not None:
            return ">=", self.at_least
        return ("<=", self.at_most) if self.at_most is not None else ("<", self.below or 0.0)

    @property
    def name(self) -> str:
        """Return the measure in words, such as `ratio fp32/bf16 of step_time_s >= 1.5 on cuda`."""
        sign, limit = self.bound
        of_arms = {"ratio": "/", "reduction": " to ", "difference": " - "}.get(self.kind, "").join(self.arms)
        return f"{self.kind} {of_arms} of {self.of} {sign} {limit:g} on {self.on}"


class Criterion(Located):
    """One acceptance criterion and everything that must speak for it.

    `changes` names tests of the base whose behaviour this criterion changes on purpose.
    """

    id: Name
    text: Text
    level: Level = Level.MUST
    code: tuple[CodeBinding, ...] = ()
    tests: tuple[InsidePath, ...] = ()
    measures: tuple[Measure, ...] = ()
    changes: tuple[InsidePath, ...] = ()


class EntryPoint(Part):
    """Production code that must run to its end: a command, with exit code 0, or a callable, without an exception.

    In a command, `{out}` is a fresh file to write to. A callable is called with `args`, in a process of its own; what
    is a console script must not return what `sys.exit` takes for a failure.
    """

    key: ClassVar[str] = "entry_points"

    one_of = (("run", "call"),)
    along = (("call", "args"),)
    run: Command | None = None
    call: Callable | None = None
    args: tuple[Json, ...] = ()
    timeout_s: Seconds | None = None

    @property
    def name(self) -> str:
        """Return what the entry point is called in reports: its command, or its call."""
        return called(self.call, self.args) if self.call else in_shell(self.run or ())


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


class Task(Located, title="gates task"):
    """What was asked: the criteria, the files they speak of, and the ways to see whether they are met."""

    id: Annotated[str, Field(pattern=rf"^{TASK_ID.pattern}$")]
    title: Text
    implementation: Annotated[tuple[InsidePath, ...], Field(min_length=1)]
    tests: tuple[InsidePath, ...] = ()
    entry_points: tuple[EntryPoint, ...] = ()
    rules: tuple[Name, ...] = ()
    training_steps: tuple[TrainingStep, ...] = ()
    criteria: Annotated[tuple[Criterion, ...], Field(min_length=1)]
    measurements: tuple[Measurement, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    coverage_at_least: Annotated[float, Field(ge=0, le=1)] = 0.8
    path: str = Field(default="", exclude=True, json_schema_extra={"readOnly": True})
    digest: str = Field(default="", exclude=True, json_schema_extra={"readOnly": True})
    spots: tuple[Spot, ...] = Field(default=(), exclude=True, json_schema_extra={"readOnly": True})
    bundles: tuple[str, ...] = Field(default=(), exclude=True, json_schema_extra={"readOnly": True})
    only: str = Field(default="", exclude=True, json_schema_extra={"readOnly": True})

    def criterion(self, criterion_id: str) -> Criterion:
        """Return the criterion; raise `UsageError` with a suggestion for an id that there is not."""
        return one_of(criterion_id, {each.id: each for each in self.criteria}, f"{self.id} has no criterion")

    @property
    def every_test(self) -> tuple[str, ...]:
        """Return its tests and those of its criteria."""
        return tuple(dict.fromkeys((*self.tests, *(path for one in self.criteria for path in one.tests))))

    @property
    def identity(self) -> TaskIdentity:
        """Return what tells this task from others, and from what its file was before."""
        return TaskIdentity(id=self.id, title=self.title, path=self.path, digest=self.digest)

    def measures_of(self, measurement: str) -> list[Measure]:
        """Return the measures that a measurement is to answer."""
        return [m for criterion in self.criteria for m in criterion.measures if m.from_ == measurement]

    def place(self, part: Located) -> Location:
        """Return where a part of this task stands in its file."""
        return Location(path=self.path, line=part.line)

    @classmethod
    def part_keys(cls) -> tuple[str, ...]:
        """Return the keys of the lists of parts that a task may hold."""
        held = {name: next(iter(get_args(field.annotation)), None) for name, field in cls.model_fields.items()}
        return tuple(name for name, kind in held.items() if isinstance(kind, type) and issubclass(kind, Part))

    def parts(self, *keys: str) -> tuple[Part, ...]:
        """Return the parts that this task holds under some keys, or all of them."""
        return tuple(part for key in keys or self.part_keys() for part in getattr(self, key))

    def part(self, kind: type[P]) -> tuple[P, ...]:
        """Return the parts of one kind."""
        return tuple(part for part in self.parts(kind.key) if isinstance(part, kind))

    def criteria_of(self, part: Part) -> list[Criterion]:
        """Return the criteria that a part stands for."""
        return [criterion for criterion in self.criteria if criterion.id in part.criteria]

    def shown_by(self, criterion: Criterion) -> tuple[Part, ...]:
        """Return the parts that may stand for a criterion without a test."""
        return tuple(part for part in self.parts() if criterion.id in part.criteria)


@cache
def task_model() -> type[Task]:
    """Return the model of a task file: with a list for each kind of part that a check in `gates/checks/` has."""
    found = [kind for name in registry.parts("gates.checks", "spec") for kind in registry.kinds_in(name, Part)]
    fields: dict[str, Any] = {k.key: (tuple.__class_getitem__((k, ...)), ()) for k in found if hasattr(k, "key")}
    return create_model("Task", __base__=Task, __doc__=Task.__doc__, **fields)


def stands_beside(task: Task, criterion: Criterion, idle: Collection[object] = ()) -> str:
    """Return, in words, what stands for a criterion by being run or measured, but for what is `idle`; or nothing."""
    found = dict.fromkeys(part.key for part in task.shown_by(criterion) if part not in idle)
    return joined([key.replace("_", " ") for key in [*found, *(["measures"] if criterion.measures else [])]])


class Selection(NamedTuple):
    """What of a task is asked for: gates and criteria by name (all where empty), and whether a block stops."""

    gates: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    keep_going: bool = False

    @property
    def partial(self) -> str:
        """Return what alone was asked for, in words; empty where it was the whole task."""
        return " and ".join(filter(None, [", ".join(self.only), f"gate {', '.join(self.gates)}" if self.gates else ""]))


def narrowed(task: Task, *only: str | None) -> Task:
    """Return the task with some criteria and what these need; raise `UsageError` where it has no such criterion."""
    if not (names := tuple(dict.fromkeys(filter(None, only)))):
        return task
    criteria = tuple(task.criterion(name) for name in names)
    asked = {key: tuple(p for p in task.parts(key) if set(names) & set(p.criteria)) for key in task.part_keys()}
    bound = all(criterion.tests for criterion in criteria)
    tests = tuple(dict.fromkeys(test for c in criteria for test in c.tests)) if bound else task.tests
    return task.model_copy(update={"criteria": criteria, "tests": tests, "only": ", ".join(names), **asked})


def left_out(whole: Task, asked: Task) -> Iterable[Finding]:
    """Say of all that was not asked for that it was not looked at."""
    only = asked.only
    said = partial(Finding, rule="GT003", outcome=Outcome.UNKNOWN, actual="not looked at")
    said = partial(said, remediation="Run without --only.", command=f"gates run {whole.id}")
    for criterion in whole.criteria:
        if criterion not in asked.criteria:
            message, name = f"{criterion.id} was not asked for (--only {only}).", criterion.id
            about = partial(said, check=f"only:{name}", criterion=name, level=criterion.level)
            yield about(message=message, location=whole.place(criterion))
    if parts := [name for name in ("tests", *whole.part_keys()) if getattr(asked, name) != getattr(whole, name)]:
        message = f"Some of the task's {', '.join(parts).replace('_', ' ')} were not asked for (--only {only})."
        yield said(check="only", message=message, location=whole.place(whole))
