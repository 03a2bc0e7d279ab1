"""One form for all probes: what is seen of each callable of one kind that a task names, and what is said of it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, Self, TypeVar

from pydantic import ValidationError

from gates.check import Check, Evidence, EvidenceSet, Said, for_criteria
from gates.child.probing import Probe, probing
from gates.config import Context
from gates.model import Finding, Level, Location, Model, Outcome, Planned, Row, RuleText
from gates.report import Section
from gates.task.probes import Concurrent, HotPath, Leak, Scale
from gates.task.task import Task

AnyPart = Concurrent | HotPath | Leak | Scale
P = TypeVar("P", Concurrent, HotPath, Leak, Scale)
S = TypeVar("S", bound=Model)
LONGEST = 600


class Probes(Evidence, Generic[P, S]):
    """What was seen of each callable that a task names under `key`, in their order."""

    key: ClassVar[str]
    method: ClassVar[str]
    seen: tuple[S, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Look at each callable in processes of its own."""
        probe = probing(task, context, cls.key)
        parts = getattr(task, cls.key)
        seen = tuple(cls.look(probe, f"{i}", part, part.timeout_s or context.timeout_s) for i, part in enumerate(parts))
        return cls(how=cls.method, commands=tuple(probe.commands), seen=seen)

    @classmethod
    def look(cls, probe: Probe, name: str, part: P, limit_s: float) -> S:
        """Return what is seen of one callable; `name` is that of its journals."""
        raise NotImplementedError

    def of(self, index: int) -> S | None:
        """Return what was seen of a callable of the task."""
        return self.seen[index] if index < len(self.seen) else None


M = TypeVar("M", bound=Model)


def readable(seen: M, facts: Callable[[], Mapping[str, object]]) -> M:
    """Return what was seen with the facts of its journal; where these cannot be read, that is its problem."""
    try:
        return type(seen).model_validate({**dict(seen), **facts()})
    except (ValidationError, KeyError, TypeError, ValueError, RecursionError) as error:
        why = dict(seen).get("problem") or f"the journal cannot be read: {type(error).__name__}"
        return seen.model_copy(update={"problem": why})


def _none(_seen: object) -> str:
    return ""


@dataclass(frozen=True)
class ProbeCheck(Generic[P, S]):
    """What a check on one kind of callable has of its own; all else follows from it.

    `title` and `promise` are what is planned for a callable and for a criterion that it stands for. `judge` says what
    was seen of one; `doubt` begins what is said where nothing was, and `remedy` is what to do then. `section` is its
    section of a page, `suffix` that of the journal which counts.
    """

    name: str
    order: int
    prefix: str
    rule: RuleText
    evidence: type[Probes[P, S]]
    title: Callable[[P], str]
    promise: str
    judge: Callable[[P, S], Said]
    section: Callable[[tuple[tuple[P, S], ...], str], Section]
    doubt: str
    remedy: str
    suffix: Callable[[S], str] = _none

    def check(self) -> Check:
        """Return the check."""
        return Check(
            name=self.name,
            gate="performance",
            order=self.order,
            rules=(self.rule,),
            uses=(self.evidence,),
            plan=self._plan,
            judge=self._judge,
            page=self._page,
            row=Row.MEASURE,
        )

    def _parts(self, task: Task) -> tuple[P, ...]:
        parts: tuple[P, ...] = getattr(task, self.evidence.key)
        return parts

    def _plan(self, task: Task) -> Iterator[Planned]:
        for i, part in enumerate(self._parts(task)):
            yield from checks(task, part, f"{self.prefix}:{i}", self.title(part), self.promise)

    def _judge(self, task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
        seen = evidence.get(self.evidence)
        for i, part in enumerate(self._parts(task)):
            one = seen.of(i) if seen else None
            why = f"{self.doubt}: it was not run: {evidence.why_missing(self.evidence)}"
            said = self.judge(part, one) if one else unknown(why, remedy=self.remedy)
            raw = f"{self.evidence.key}/{i}{self.suffix(one)}.jsonl" if one else None
            yield from findings(task, part, said, rule=self.rule.id, check=f"{self.prefix}:{i}", raw=raw)

    def _page(self, task: Task, evidence: EvidenceSet) -> Iterator[Section]:
        if parts := self._parts(task):
            seen = evidence.get(self.evidence)
            not_run = "" if seen else f"Not run: {evidence.why_missing(self.evidence)}."
            yield self.section(tuple(zip(parts, seen.seen if seen else (), strict=False)), not_run)


def unknown(why: str, *, remedy: str, actual: str = "not seen", location: Location | None = None) -> Said:
    """Say that something is not known."""
    return Said(Outcome.UNKNOWN, why, actual, location=location, remediation=remedy)


def checks(
    task: Task,
    part: AnyPart,
    check: str,
    title: str,
    of_criterion: str,
    *,
    level: Level = Level.MUST,
    binds: bool = True,
) -> Iterator[Planned]:
    """Plan the check itself, and one for each criterion that it binds, which is titled by what it asks."""
    yield Planned(id=check, title=title, level=level)
    if binds:
        yield from for_criteria(task, part, f"{check}:for", f": {of_criterion}")


def findings(
    task: Task,
    part: AnyPart,
    said: Said,
    *,
    rule: str,
    check: str,
    raw: str | None,
    level: Level = Level.MUST,
    binds: bool = True,
) -> Iterator[Finding]:
    """Say the same of the check itself and of each criterion."""
    about: list[tuple[str, Level, str | None]] = [(check, level, None)]
    bound = task.criteria_of(part) if binds else []
    about += [(f"{check}:for:{criterion.id}", criterion.level, criterion.id) for criterion in bound]
    for name, its, criterion_id in about:
        yield Finding(
            rule=rule,
            check=name,
            level=its,
            criterion=criterion_id,
            outcome=said.outcome,
            subject=f"{part.name}{f' at {said.subject}' if said.subject else ''}",
            message=f"{part.name}: {said.message}"[:LONGEST],
            location=said.location or task.place(part),
            expected=said.expected,
            actual=said.actual,
            impact=said.impact,
            remediation=said.remediation,
            evidence=raw,
        )
