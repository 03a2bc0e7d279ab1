"""What every check and every kind of evidence has, and the findings that checks say things with."""

import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from pathlib import Path
from typing import ClassVar, NamedTuple, ParamSpec, Self, TypeVar, cast

from pydantic import Field, JsonValue
from pydantic_core import PydanticSerializationError

from gates import registry
from gates.child.guardian import guarded_folder, stop_if_interrupted
from gates.child.noting import Noted, noting
from gates.code.units import Units, lines_of
from gates.config import Context
from gates.errors import Absent, EvidenceUnavailable
from gates.model import Basis, CommandRecord, Finding, Level, Location, Model, Outcome, Planned, Row
from gates.project.copies import is_left_out
from gates.report import Section
from gates.task.task import Criterion, Task
from gates.words import printable

E = TypeVar("E", bound="Evidence")
M = TypeVar("M", bound=Model)
T = TypeVar("T")
P = ParamSpec("P")
LINE = r'{}(:|","line":|\\", line )\d'  # of a file, as a location, an error and a traceback tell it
WROTE = "files were written that others may read"


class Evidence(Model):
    """Something observed, and `how`; it is `lasting` where the same project, options and machine give it again.

    It is `noted` where it rests on what processes ran and on nothing else of the project's Python files: where these
    ran nothing of what changed, it holds.
    """

    lasting: ClassVar[bool] = True
    noted: ClassVar[bool] = False
    how: str
    commands: tuple[CommandRecord, ...] = Field(default=())

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Observe the world; raise `EvidenceUnavailable` with the reason where nothing can be seen."""
        raise NotImplementedError(f"{cls.__name__} rests on what was seen before: call `derive`")

    @classmethod
    def derive(cls, task: Task, context: Context, seen: "EvidenceSet") -> Self:  # noqa: ARG003  # of kinds that rest on it
        """Observe the world as far as what was seen before asks for it, where a kind rests on that; else `collect`."""
        return cls.collect(task, context)


class Earlier(NamedTuple):
    """What a run left, at `at`, of the present state, or one with another text of some Python files only.

    `seen` is its lasting evidence, `raw` the folder of its raw files, `sources` the text of the files that its tests
    could run, by their real paths, and `changed` of those that differ their functions then and now. What is `whole`
    is evidence of the present state, taken as it is.
    """

    seen: "EvidenceSet"
    raw: Path
    at: str
    sources: Mapping[str, bytes]
    changed: Mapping[str, tuple[Units, Units]]
    noted: Mapping[str, Noted] = {}
    whole: Mapping[type[Evidence], Evidence] = {}

    def holds(self, name: str, seen: Model, context: Context) -> bool:
        """Return whether what was seen rests on nothing that changed, and names no line that moved."""
        noted, text = self.noted.get(name), seen.model_dump_json()
        for path, (before, now) in self.changed.items():
            shown = context.shown(Path(path))
            if noted is None or noted.rests_on(shown, before, now):
                return False
            if re.search(LINE.format(re.escape(shown)), text) and not before.stays_in(now):
                return False
        return noted is not None

    def rewrote(self, path: str, line: int, context: Context) -> bool:
        """Return whether the body that a line of a file is in, or what is around all bodies, is another now."""
        pairs = (pair for file, pair in self.changed.items() if context.shown(Path(file)) == path)
        changed = [now.changed(before) for before, now in pairs]
        return any(each is None or any(line in lines_of(function) for function in each) for each in changed)


@dataclass
class EvidenceSet:
    """At most one piece of evidence of each kind, in the order of collection, and for missing ones the reason."""

    present: dict[type[Evidence], Evidence] = field(default_factory=dict)
    why: str = "it was not collected"
    missing: dict[type[Evidence], str] = field(default_factory=dict)
    earlier: Earlier | None = None
    noted: dict[str, Noted] = field(default_factory=dict)
    unseen: bool = False  # whether one is missing for a reason that may not be there another time
    copy: Path | None = None
    begun: float = field(default_factory=time.time)
    opened: dict[Callable[..., object], object] = field(default_factory=dict)
    ahead: "dict[type[Evidence], Future[Evidence]]" = field(default_factory=dict)
    stack: ExitStack = field(default_factory=ExitStack)

    def get(self, kind: type[E]) -> E | None:
        """Return the evidence of a kind, or `None`; the type makes the caller handle its absence."""
        found = self.present.get(kind)
        return found if isinstance(found, kind) else None

    def why_missing(self, kind: type[Evidence]) -> str:
        """Return why there is no evidence of a kind."""
        return self.missing.get(kind, self.why)

    def collect(self, kind: type[Evidence], task: Task, context: Context) -> None:
        """Collect a kind once; a kind that cannot be had leaves its reason."""
        if kind in self.present or kind in self.missing:
            return
        stop_if_interrupted()
        try:
            if kind.noted:
                before, make = self.before(kind), partial(kind.derive, task, context, self)
                self.present[kind] = self.taken_or(kind.__name__, before, lambda: writable(make()), context, self.copy)
            else:
                begun = self.ahead.pop(kind, None)
                self.present[kind] = writable(begun.result() if begun else kind.derive(task, context, self))
        except EvidenceUnavailable as error:
            self.missing[kind] = printable(str(error))
            self.unseen |= not isinstance(error, Absent)

    def begin(self, kind: type[Evidence], task: Task, context: Context) -> None:
        """Begin to collect a kind that starts no process, beside those that others start; who asks for it waits."""
        if kind not in self.present and kind not in self.missing:
            pool = ThreadPoolExecutor(1)
            self.ahead[kind] = pool.submit(kind.derive, task, context, self)
            pool.shutdown(wait=False)

    def before(self, kind: type[E]) -> E | None:
        """Return the evidence of a kind that an earlier run left, whether it holds or not."""
        return self.earlier.seen.get(kind) if self.earlier else None

    def taken_or(
        self, name: str, before: M | None, make: Callable[[], M], context: Context, copy: Path | None = None
    ) -> M:
        """Return what an earlier run saw, with its raw files, if it holds; else make it, and keep what is noted.

        The `copy` is the one in which it is made, if others are made there, too.
        """
        own = self.earlier if before and self.earlier and self.earlier.holds(name, before, context) else None
        if own and before and (own.whole or not self._wrote(context.root, copy, context=context)):
            self.noted[name] = own.noted[name]
            for raw in self.noted[name].raw:
                (context.evidence / raw).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(own.raw / raw, context.evidence / raw)
            return before
        for raw in self.earlier.noted[name].raw if self.earlier and name in self.earlier.noted else ():
            (context.evidence / raw).unlink(missing_ok=True)  # it would be added to
        there = {*context.evidence.rglob("*")}
        with guarded_folder() as folder, noting(folder) as notes:
            made = make()
            new = (path for path in {*context.evidence.rglob("*")} - there if path.is_file())
            noted = Noted.of(notes, [path.relative_to(context.evidence).as_posix() for path in new])
        doubt = WROTE if self._wrote(copy, context=context) else noted.doubt
        self.noted[name] = noted.model_copy(update={"doubt": doubt})
        return made

    def shared(self, make: Callable[P, AbstractContextManager[T]], *about: P.args, **more: P.kwargs) -> T:
        """Return what several kinds of evidence use, made once and left when the stack is closed."""
        if make not in self.opened:
            self.opened[make] = self.stack.enter_context(make(*about, **more))
            self.stack.callback(self.opened.clear)
        return cast("T", self.opened[make])

    def _wrote(self, *folders: Path | None, context: Context) -> bool:
        """Return whether the run has written a file there, reports aside."""
        for here, inner, names in (each for folder in folders if folder for each in os.walk(folder)):
            inner[:] = (n for n in inner if not (is_left_out(one := Path(here, n)) or one in context.evidence.parents))
            for name in (name for name in names if not name.startswith(".coverage")):
                with suppress(OSError):
                    if os.stat(f"{here}/{name}").st_mtime > self.begun:  # noqa: PTH116  # of thousands
                        return True
        return False


class RunDate(Evidence):
    """The day on which the run began: waivers end by it, whenever its findings are judged again."""

    lasting: ClassVar[bool] = False
    today: date

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Take the day from the context; a task without waivers does not hang on it."""
        if not task.waivers:
            raise Absent("the task has no waivers, so its findings do not hang on the day")
        if context.today is None:
            raise EvidenceUnavailable("no day was given, so no waiver works")
        return cls(how="the clock of this machine, in UTC", today=context.today)


def day_of(evidence: EvidenceSet) -> date | None:
    """Return the day of the run, or `None` where nothing hangs on it or none was seen."""
    seen = evidence.get(RunDate)
    return seen.today if seen else None


@dataclass(frozen=True)
class Check:
    """One thing that a task can ask, in `gates/checks/<name>/`, or `<name>.py`: the only place that knows of it.

    `spec.py` says what a task may ask, `collect.py` how it is seen, `judge.py` what that means, and `rules.yaml` what
    its rules mean; a small check is one file, with `<name>.yaml` beside it. `gate` is where it belongs, `order` its
    place there, `uses` the evidence that it judges, in the order of collection. `basis` is what its findings rest on,
    `row` where they stand in the traceability matrix, `label` how that names them.
    """

    name: str
    gate: str
    order: int
    uses: tuple[type[Evidence], ...] = ()
    plan: Callable[[Task], Iterable[Planned]] = lambda _task: ()
    judge: Callable[[Task, EvidenceSet], Iterable[Finding]] = lambda _task, _evidence: ()
    page: Callable[[Task, EvidenceSet], Iterator[Section]] = lambda _task, _evidence: iter(())
    basis: Basis = Basis.OBSERVED
    row: Row | None = None
    label: str = ""

    def planned(self, task: Task) -> Iterator[Planned]:
        """Return what is to be decided, each with what it rests on and its row of the matrix."""
        for one in self.plan(task):
            own = {"basis": one.basis or self.basis, "row": one.row or self.row, "label": one.label or self.label}
            yield one.model_copy(update={**own, "kind": self.name.replace("_", " ").capitalize()})


def discover() -> tuple[Check, ...]:
    """Return the check of each folder and file in `gates/checks/`, in the order of their places."""
    return tuple(sorted(registry.values("gates.checks", Check), key=lambda check: (check.order, check.name)))


def writable(piece: M) -> M:
    """Return a model as it is, or, where JSON cannot hold what it says, with escapes in place of that."""
    try:
        piece.model_dump_json()
    except PydanticSerializationError:
        return type(piece).model_validate(_escaped(piece.model_dump(mode="json", by_alias=True)))
    return piece


def _escaped(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {printable(name): _escaped(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_escaped(inner) for inner in value]
    return printable(value) if isinstance(value, str) else value


class Said(NamedTuple):
    """One conclusion about a part of a task; `subject` tells it from others of the same part."""

    outcome: Outcome
    message: str
    actual: str
    location: Location | None = None
    expected: str = ""
    impact: str = ""
    remediation: str = ""
    subject: str = ""
    level: Level = Level.MUST


class About:
    """What findings of one check have in common, so that each says only what is its own."""

    def __init__(self, **facts: object) -> None:
        self._facts = facts

    def but(self, **facts: object) -> "About":
        """Return the same with some other facts."""
        return About(**{**self._facts, **facts})

    def __call__(self, outcome: Outcome, message: str, fix: str = "", **own: object) -> Finding:
        """Return a finding, with what to do about it."""
        said = {"outcome": outcome, "message": message, "remediation": fix, **own}
        return Finding.model_validate({**self._facts, **said})

    def says(self, said: Said, **own: object) -> Finding:
        """Return a conclusion as a finding, with some other facts."""
        return Finding.model_validate({**self._facts, **said._asdict(), **own})

    def passed(self, message: str, **own: object) -> Finding:
        """Say that it was seen to hold."""
        return self(Outcome.PASSED, message, "", **own)

    def failed(self, message: str, fix: str, **own: object) -> Finding:
        """Say that it does not hold, and what to do."""
        return self(Outcome.FAILED, message, fix, **own)

    def unknown(self, message: str, fix: str = "", **own: object) -> Finding:
        """Say that it was not seen, and what to do."""
        return self(Outcome.UNKNOWN, message, fix, **own)

    def not_asked(self, message: str, **own: object) -> Finding:
        """Say that nothing here asks for it."""
        return self(Outcome.NOT_APPLICABLE, message, "", **own)


def about_criterion(criterion: Criterion, rule: str, check: str, **facts: object) -> About:
    """Return what findings about one check of a criterion have in common."""
    return About(**{"rule": rule, "check": check, "criterion": criterion.id, "level": criterion.level, **facts})


def beside(criteria: Iterable[Criterion], check: str, title: str) -> Iterator[Planned]:
    """Plan a check of what stands for each criterion, which may leave it open and has no share of the score."""
    for one in criteria:
        about = {"level": Level.ADVISORY, "criterion": one.id, "scored": False}
        yield Planned.model_validate({"id": f"{check}:{one.id}", "title": title.format(one.id), **about})
