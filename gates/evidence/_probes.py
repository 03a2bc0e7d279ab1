"""One form for all probes: what is seen of each callable of one kind that a task names, and what is said of it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, Self, TypeVar

from pydantic import ValidationError

from gates.check import Check, Evidence, EvidenceSet, Said, for_criteria
from gates.child.probing import Probe, probing
from gates.config import Context
from gates.model import Finding, Level, Location, Model, Outcome, Planned, Row, RuleText
from gates.report import Section
from gates.task.probes import Concurrent
from gates.task.task import Task
from gates.task.types import OneCall

P = TypeVar("P", bound=Concurrent | OneCall)
S = TypeVar("S", bound=Model)
M = TypeVar("M", bound=Model)
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


def readable(seen: M, facts: Callable[[], Mapping[str, object]]) -> M:
    """Return what was seen with the facts of its journal; where these cannot be read, that is its problem."""
    try:
        return type(seen).model_validate({**dict(seen), **facts()})
    except (ValidationError, KeyError, TypeError, ValueError, RecursionError) as error:
        why = dict(seen).get("problem") or f"the journal cannot be read: {type(error).__name__}"
        return seen.model_copy(update={"problem": why})


def unknown(why: str, actual: str = "not seen", *, location: Location | None = None, remedy: str = "") -> Said:
    """Say that something is not known."""
    return Said(Outcome.UNKNOWN, why, actual, location=location, remediation=remedy)


@dataclass(frozen=True)
class Aspect(Generic[P, S]):
    """One thing that is judged of each callable.

    `title` and `promise` are what is planned for a callable and for a criterion that it stands for; `bound` is how
    binding it is, and whether it binds the criteria.
    """

    title: Callable[[P], str]
    promise: str
    judge: Callable[[P, S], Iterable[Said]]
    name: str = ""
    bound: Callable[[P], tuple[Level, bool]] = lambda _part: (Level.MUST, True)


@dataclass(frozen=True)
class ProbeCheck(Generic[P, S]):
    """What a check on one kind of callable has of its own; all else follows from it.

    `doubt` begins what is said where nothing was seen, and `remedy` is what to do then. `page` makes its sections of
    what was seen of each callable and said of it, or of why nothing was; `suffix` is that of the journal which counts.
    """

    name: str
    order: int
    prefix: str
    rule: RuleText
    evidence: type[Probes[P, S]]
    aspects: tuple[Aspect[P, S], ...]
    page: Callable[[Sequence[tuple[P, S, Said]], str], Iterable[Section]]
    doubt: str
    remedy: str
    suffix: Callable[[S], str] = lambda _seen: ""

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

    def _all(self, task: Task) -> Iterator[tuple[int, P, Aspect[P, S], str]]:
        """Yield each callable with each aspect, and the check that it is."""
        for i, part in enumerate(getattr(task, self.evidence.key)):
            for aspect in self.aspects:
                yield i, part, aspect, ":".join(filter(None, (self.prefix, f"{i}", aspect.name)))

    def _plan(self, task: Task) -> Iterator[Planned]:
        for _, part, aspect, check in self._all(task):
            level, binds = aspect.bound(part)
            yield Planned(id=check, title=aspect.title(part), level=level)
            if binds:
                yield from for_criteria(task, part, f"{check}:for", f": {aspect.promise}")

    def _judge(self, task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
        found = evidence.get(self.evidence)
        seen = found.seen if found else ()
        for i, part, aspect, check in self._all(task):
            raw = f"{self.evidence.key}/{i}{self.suffix(seen[i])}.jsonl" if i < len(seen) else None
            not_run = [unknown(f"it was not run: {evidence.why_missing(self.evidence)}")]
            for said in aspect.judge(part, seen[i]) if i < len(seen) else not_run:
                yield from self._findings(task, part, aspect, check, self._doubted(said), raw)

    def _findings(
        self, task: Task, part: P, aspect: Aspect[P, S], check: str, said: Said, raw: str | None
    ) -> Iterator[Finding]:
        """Say the same of the check itself and of each criterion that it binds."""
        level, binds = aspect.bound(part)
        facts = {
            **vars(said),
            "rule": self.rule.id,
            "message": f"{part.name}: {said.message}"[:LONGEST],
            "location": said.location or task.place(part),
            "subject": f"{part.name}{f' at {said.subject}' if said.subject else ''}",
            "evidence": raw,
        }
        yield Finding.model_validate({**facts, "check": check, "level": level})
        for criterion in task.criteria_of(part) if binds else ():
            about = {"check": f"{check}:for:{criterion.id}", "level": criterion.level, "criterion": criterion.id}
            yield Finding.model_validate({**facts, **about})

    def _doubted(self, said: Said) -> Said:
        if said.outcome is not Outcome.UNKNOWN:
            return said
        return replace(said, message=f"{self.doubt}: {said.message}", remediation=said.remediation or self.remedy)

    def _page(self, task: Task, evidence: EvidenceSet) -> Iterator[Section]:
        if parts := getattr(task, self.evidence.key):
            found = evidence.get(self.evidence)
            not_run = "" if found else f"Not run: {evidence.why_missing(self.evidence)}."
            pairs, judge = zip(parts, found.seen if found else (), strict=False), self.aspects[0].judge
            told = [(part, seen, self._doubted(next(iter(judge(part, seen))))) for part, seen in pairs]
            yield from self.page(told, not_run)
