"""One form for all probes: what is seen of each callable of one kind that a task names, and what is said of it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, NamedTuple, Self, TypeVar

from gates.check import About, Check, Evidence, EvidenceSet, Said
from gates.child.probing import Probe, probing
from gates.child.process import side_by_side
from gates.config import Context
from gates.model import LEVELS, Finding, Level, Location, Model, Outcome, Planned, Row
from gates.report import Section
from gates.task.task import Criterion, Task
from gates.task.types import Run

P = TypeVar("P", bound=Run)
S = TypeVar("S", bound=Model)
LONGEST = 600


class Seen(Model):
    """What was seen of one callable; `problem` is why that is not all, and `place` where."""

    problem: str = ""
    place: Location | None = None


class Probes(Evidence, Generic[P, S]):
    """What was seen of each callable that a task names under `key`, in their order."""

    noted: ClassVar[bool] = True
    key: ClassVar[str]
    method: ClassVar[str]
    at_once: ClassVar[bool] = False  # where no time is measured
    seen: tuple[S, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Look at each callable in processes of its own."""
        probe = probing(task, context, cls.key)

        def look(number: int, part: P) -> S:
            return cls.look(probe, f"{number}", part, part.timeout_s or context.timeout_s)

        parts = [*enumerate(getattr(task, cls.key))]
        seen = side_by_side(lambda each: look(*each), parts) if cls.at_once else [look(*each) for each in parts]
        commands = sorted(probe.commands, key=lambda one: one.argv) if cls.at_once else probe.commands
        return cls(how=cls.method, commands=tuple(commands), seen=tuple(seen))

    @classmethod
    def look(cls, probe: Probe, name: str, part: P, limit_s: float) -> S:
        """Return what is seen of one callable; `name` is that of its journals."""
        raise NotImplementedError


def readable(seen: S, facts: Callable[[], Mapping[str, object]]) -> S:
    """Return what was seen with the facts of its journal; where these cannot be read, that is its problem."""
    try:
        return type(seen).model_validate({**dict(seen), **facts()})
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        why = dict(seen).get("problem") or f"the journal cannot be read: {type(error).__name__}"
        return seen.model_copy(update={"problem": why})


def unknown(why: str, actual: str = "not seen", *, location: Location | None = None, remedy: str = "") -> Said:
    """Say that something is not known."""
    return Said(Outcome.UNKNOWN, why, actual, location=location, remediation=remedy)


class Aspect(NamedTuple, Generic[P, S]):
    """One thing that is judged of each callable; without a `level` it is only advised, and decides no criterion."""

    title: Callable[[P], str]
    judge: Callable[[P, S], Iterable[Said]]
    name: str = ""
    level: Callable[[P], Level | None] = lambda _part: Level.MUST


def only(title: Callable[[P], str], say: Callable[[P, S], Said]) -> Callable[[P], tuple[Aspect[P, S], ...]]:
    """Return the one aspect of each callable, of which one thing is said."""
    aspect: Aspect[P, S] = Aspect(title, lambda part, seen: [say(part, seen)])
    return lambda _part: (aspect,)


@dataclass(frozen=True)
class ProbeCheck(Generic[P, S]):
    """What a check on one kind of callable has of its own; all else follows from it.

    `aspects` of a callable are judged one by one, and folded into one finding for each criterion that it stands for:
    `promise` is what that is, `needed` the aspects that must have passed for it. `doubt` begins what is said where
    nothing was seen, and `remedy` is what to do then. The page has a `title`, a `text`, a fact of each callable and its
    `rows` under `columns`. `suffix` is that of the journal which counts.
    """

    name: str
    order: int
    rule: str
    evidence: type[Probes[P, S]]
    aspects: Callable[[P], tuple[Aspect[P, S], ...]]
    promise: str
    title: str
    text: str
    columns: tuple[str, ...]
    rows: Callable[[P, S, Said], Iterable[tuple[str, ...]]]
    doubt: str
    remedy: str
    suffix: Callable[[S], str] = lambda _seen: ""
    needed: Callable[[P], Collection[str]] = lambda _part: ()
    facts: Callable[[P, S], str] = lambda _part, _seen: ""
    gate: str = "performance"
    row: Row = Row.MEASURE
    label: str = ""

    def check(self) -> Check:
        """Return the check."""
        parts = self._plan, self._judge, self._page
        return Check(self.name, self.gate, self.order, (self.evidence,), *parts, row=self.row, label=self.label)

    def _binds(self, task: Task, part: P) -> list[Criterion]:
        return task.criteria_of(part) if any(one.level(part) for one in self.aspects(part)) else []

    def _plan(self, task: Task) -> Iterator[Planned]:
        for i, part in enumerate(getattr(task, self.evidence.key)):
            for aspect in self.aspects(part):
                level = aspect.level(part) or Level.ADVISORY
                yield Planned(id=self._id(i, aspect.name), title=aspect.title(part), level=level)
            for one in self._binds(task, part):
                about = {"level": one.level, "criterion": one.id, "title": f"{one.id}: {self.promise}"}
                yield Planned.model_validate({"id": self._id(i, "for", one.id), **about})

    def _id(self, index: int, *names: str) -> str:
        return ":".join(filter(None, (self.name, f"{index}", *names)))

    def _judge(self, task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
        seen = found.seen if (found := evidence.get(self.evidence)) else ()
        not_run = unknown(f"it was not run: {evidence.why_missing(self.evidence)}")
        for i, part in enumerate(getattr(task, self.evidence.key)):
            raw = f"{self.evidence.key}/{i}{self.suffix(seen[i])}.jsonl" if i < len(seen) else None
            about = About(rule=self.rule, evidence=raw)
            binding: list[tuple[str, Said]] = []
            for aspect in self.aspects(part):
                level = aspect.level(part) or Level.ADVISORY
                for said in map(self._doubted, aspect.judge(part, seen[i]) if i < len(seen) else [not_run]):
                    binding += [(aspect.name, said)] if aspect.level(part) else []
                    own = {"check": self._id(i, aspect.name), "level": max(level, said.level, key=LEVELS.index)}
                    yield about.says(said, **own, **_words(task, part, said))
            for one in self._binds(task, part):
                said = self._folded(part, binding)
                own = {"check": self._id(i, "for", one.id), "level": one.level, "criterion": one.id}
                yield about.says(said, **own, **_words(task, part, said))

    def _folded(self, part: P, said: Sequence[tuple[str, Said]]) -> Said:
        """Return what all aspects say together: the first that fails or is not known, else what passed."""
        if len(said) == 1:
            return said[0][1]
        must = [each for _, each in said if each.level is Level.MUST]
        if worst := [each for outcome in (Outcome.FAILED, Outcome.UNKNOWN) for each in must if each.outcome is outcome]:
            return worst[0]
        passed = [name for name, each in said if each.outcome is Outcome.PASSED]
        if missing := [aspect for aspect in self.aspects(part) if aspect.name in {*self.needed(part)} - {*passed}]:
            return self._doubted(unknown(f"not seen: {missing[0].title(part)}"))
        warned = " ".join(f"Warned: {each.message}" for _, each in said if each.outcome is Outcome.FAILED)
        names = ", ".join(passed)
        return Said(Outcome.PASSED, f"seen to be right: {names}. {warned}".rstrip(), names)

    def _doubted(self, said: Said) -> Said:
        if said.outcome is not Outcome.UNKNOWN:
            return said
        message = f"{self.doubt}: {said.message}" if self.doubt else said.message
        return said._replace(message=message, remediation=said.remediation or self.remedy)

    def _page(self, task: Task, evidence: EvidenceSet) -> Iterator[Section]:
        parts, found = getattr(task, self.evidence.key), evidence.get(self.evidence)
        pairs = [*zip(parts, found.seen if found else (), strict=False)]
        told = [(part, seen, next(iter(self.aspects(part)[0].judge(part, seen)))) for part, seen in pairs]
        if parts:
            text = self.text if found else f"Not run: {evidence.why_missing(self.evidence)}."
            facts = tuple((part.name, fact) for part, seen in pairs if (fact := self.facts(part, seen)))
            rows = tuple(row for each in told for row in self.rows(*each))
            yield Section(title=self.title, text=text, facts=facts, columns=self.columns, rows=rows)


def _words(task: Task, part: P, said: Said) -> dict[str, object]:
    message, place = f"{part.name}: {said.message}"[:LONGEST], said.location or task.place(part)
    return {"message": message, "location": place, "subject": f"{part.name} {said.subject}".rstrip()}
