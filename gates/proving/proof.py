"""What a proof came to: per criterion the faults that were tried and what noticed them; and its page."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import Field

from gates.model import Level, Location, Model
from gates.render.markdown import page
from gates.words import visible

PROOF_SCHEMA, PROOF = "gates.proof/3", "proof.json"


class End(StrEnum):
    """How a fault ended. `broken` code cannot be imported; `unsteady` tests fail without the fault, too."""

    KILLED = "killed"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    CRASHED = "crashed"
    SURVIVED = "survived"
    BROKEN = "broken"
    UNSTEADY = "unsteady"
    NOT_TRIED = "not tried"


NOTICED = frozenset({End.KILLED, End.TIMEOUT, End.MEMORY, End.CRASHED})
COUNTED = NOTICED | {End.SURVIVED}


class Standing(StrEnum):
    """What a proof says of a criterion."""

    PROVED = "proved"
    WEAK = "weak"
    VACUOUS = "vacuous"
    UNPROVED = "unproved"
    NOTHING = "nothing to prove"
    MEASURED = "no tests"


class TriedFault(Model):
    """One fault: what it changes, how it ended, and what noticed it."""

    id: str
    title: str
    location: Location
    diff: str
    end: End
    by: str = ""
    message: str = ""
    tests: tuple[str, ...] = ()
    seconds: float = 0


class CriterionProof(Model):
    """A criterion, the evidence that had to notice, and the faults that were put in.

    `sampled` counts those left out; with `passed_by` its tests ran none of its code, `shown_otherwise` needs none.
    """

    id: str
    text: str
    level: Level
    location: Location
    killed_at_least: float
    tests: int = 0
    shown_otherwise: bool = False
    problem: str = ""
    notes: tuple[str, ...] = ()
    sampled: Annotated[int, Field(ge=0)] = 0
    passed_by: bool = False
    faults: tuple[TriedFault, ...] = ()

    @property
    def counted(self) -> tuple[TriedFault, ...]:
        """Return the faults that the evidence could have noticed."""
        return tuple(fault for fault in self.faults if fault.end in COUNTED)

    @property
    def noticed(self) -> tuple[TriedFault, ...]:
        """Return the faults that a test noticed."""
        return tuple(fault for fault in self.faults if fault.end in NOTICED)

    @property
    def survivors(self) -> tuple[TriedFault, ...]:
        """Return the faults that nothing noticed."""
        return tuple(fault for fault in self.faults if fault.end is End.SURVIVED)

    @property
    def rate(self) -> float | None:
        """Return the share of the faults that was noticed, or `None` where none was tried."""
        return len(self.noticed) / len(self.counted) if self.counted else None

    @property
    def standing(self) -> Standing:
        """Return what this says of the criterion."""
        if self.problem:
            return Standing.UNPROVED
        if not self.tests:
            return Standing.MEASURED if self.shown_otherwise else Standing.NOTHING
        if self.passed_by:
            return Standing.VACUOUS
        if self.rate is None or self.count(End.NOT_TRIED):  # what the sample left out was never to be tried
            return Standing.UNPROVED
        if not self.noticed:
            return Standing.VACUOUS
        return Standing.PROVED if self.rate >= self.killed_at_least else Standing.WEAK

    def going_on(self, task: str) -> str:
        """Say what was left to try when the time was up, and what to do."""
        left = self.count(End.NOT_TRIED)
        if self.problem or not left:
            return ""
        untried = f"not decided: {left} of {len(self.counted) + left} mutants were not tried when the time was up"
        return f"{untried}; try with a larger --budget, or with `gates prove {task} --only {self.id}`"

    def count(self, end: End) -> int:
        """Return how many faults ended in one way."""
        return sum(fault.end is end for fault in self.faults)


class Proof(Model):
    """All of one proof. `digest` is that of the task and of every file that the proof rests on."""

    schema_: str = Field(default=PROOF_SCHEMA, alias="schema")
    task: str
    title: str
    digest: str
    commit: str | None
    started_at: str
    duration_s: float = Field(ge=0)
    budget_s: float
    environment: dict[str, str] = Field(default={})
    notes: tuple[str, ...] = ()
    criteria: tuple[CriterionProof, ...]

    @property
    def exit_code(self) -> int:
        """Return 0 where every must criterion is proved, 1 where one is not, 3 where that is not known."""
        required = {c.standing for c in self.criteria if c.level is Level.MUST}
        if required & {Standing.WEAK, Standing.VACUOUS}:
            return 1
        proved = any(c.standing is Standing.PROVED for c in self.criteria)
        return 3 if required & {Standing.UNPROVED, Standing.NOTHING} or not proved else 0


HEADLINES = {0: "PROVED", 1: "NOT PROVED", 3: "UNPROVED"}
PASSED_BY = "its tests run none of its code: they would pass whatever it does"
LISTED = 10


def text(proof: Proof) -> str:
    """Return a proof for a terminal: a line a criterion, and the survivors."""
    lines = [f"{proof.task}  {HEADLINES[proof.exit_code]}  ({proof.duration_s:g} s)"]
    lines += [_line(criterion) for criterion in proof.criteria]
    for criterion in proof.criteria:
        shown = criterion.survivors[:LISTED]
        lines += [f"{criterion.id} survived: {fault.location}: {fault.title}" for fault in shown]
        if more := len(criterion.survivors) - len(shown):
            lines.append(f"{criterion.id} survived: ... and {more} more (see proof.md)")
    lines += [f"{criterion.id} {how}" for criterion in proof.criteria if (how := criterion.going_on(proof.task))]
    lines += [f"note: {note}" for note in proof.notes]
    return "\n".join(visible(line) for line in lines) + "\n"


def markdown(proof: Proof, web: str | None, templates: Path | None = None) -> str:
    """Return a proof as a Markdown page; `web` is where the files of this revision can be read."""
    counts = {standing: sum(c.standing is standing for c in proof.criteria) for standing in Standing}
    standings = ", ".join(f"{count} {standing.value}" for standing, count in counts.items() if count)
    said = {"headline": HEADLINES[proof.exit_code], "standings": standings, "off": _off, "why": _why}
    return page("proof.md.j2", templates, proof=proof, web=web, **said)


def _why(task: str, criterion: CriterionProof) -> str:
    return criterion.problem or criterion.going_on(task) or (PASSED_BY if criterion.passed_by else "")


def _line(criterion: CriterionProof) -> str:
    head = f"  {criterion.id:<6} {criterion.level.value:<9} {criterion.standing.value:<22}"
    if criterion.problem or criterion.passed_by:
        return f"{head} {criterion.problem or PASSED_BY}"
    off = _off(criterion)
    seen = f"{len(criterion.noticed)} of {len(criterion.counted)} mutants killed, {criterion.rate or 0:.0%}"
    return f"{head} {seen if criterion.counted else '-'}{f'  ({off})' if off else ''}"


def _off(criterion: CriterionProof) -> str:
    ends = (End.BROKEN, End.UNSTEADY, End.NOT_TRIED)
    counts = [f"{count} {end.value}" for end in ends if (count := criterion.count(end))]
    counts += [f"{criterion.sampled} left out by the sample"] if criterion.sampled else []
    return ", ".join(counts)
