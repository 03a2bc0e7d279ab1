"""What one run came to: its gates, criteria, coverage and score, in one value that every format renders."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from gates import model
from gates.model import Decision, Finding, Level, Location, Model, Outcome
from gates.words import joined

RESULT_SCHEMA = "gates.result/1"
NAMED = 4  # criteria in a headline
LACKING = {Outcome.FAILED, Outcome.UNKNOWN}
# what a text says that only a measurement shows: a size with its unit, a speed, a device
QUANTITY = re.compile(
    r"\b\d[\d.,]*\s*(%|x\b|[mun]?s\b|[kmgt]i?b\b)|\b(faster|slower|speed-?up|latency|throughput|cuda|gpus?|mps|xpu)\b",
    re.IGNORECASE,
)


class ScoreLine(Model):
    """One line of a score: points got out of the points possible, of a check or of a gate."""

    title: str
    check: str = ""
    got: int = Field(ge=0)
    of: int = Field(ge=0)
    note: str = ""


class Score(Model):
    """Information computed from findings; no verdict reads it. `total` is the sum of the lines."""

    total: int = Field(ge=0, le=100)
    of: int = 100
    lines: tuple[ScoreLine, ...]

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if self.total != sum(line.got for line in self.lines):
            raise ValueError("the lines of a score must add up to its total")
        return self


class Section(Model):
    """A part of a gate's report: a text, facts, a table, a block of raw output; each may be absent.

    `appendix` is whether it is long, and only looked into: it comes last. What `leads` comes before the findings.
    """

    title: str
    text: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    code: str = ""
    appendix: bool = False
    leads: bool = False

    @model_validator(mode="after")
    def _rows_fit(self) -> Self:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"section {self.title!r} has a row that does not fit its columns")
        return self


class GateReport(Model):
    """One gate: what it planned, what it decided, and every finding."""

    name: str
    title: str
    stage: int
    decision: Decision
    score: Score
    planned: int = Field(ge=0)
    decided: int = Field(ge=0)
    ran: bool
    not_run_because: str = ""
    duration_s: float = Field(ge=0)
    reasons: tuple[str, ...]
    checks: tuple[model.Planned, ...]
    findings: tuple[Finding, ...]
    sections: tuple[Section, ...] = ()


class Trace(Model):
    """One thing that stands for a criterion: where it is, and how it ended; `kind` says what beside a test it is."""

    name: str
    kind: str = ""
    location: Location | None = None
    outcome: Outcome
    detail: str = ""


class CriterionReport(Model):
    """One acceptance criterion with the code, tests and measures that stand for it."""

    id: str
    text: str
    level: Level
    status: model.Status
    reasons: tuple[str, ...] = ()
    code: tuple[Trace, ...] = ()
    tests: tuple[Trace, ...] = ()
    measures: tuple[Trace, ...] = ()


class Report(Model, title="gates result"):
    """All of one run in one value; every format is a rendering of it.

    `findings` are those of the run as a whole, `partial` is what alone was asked for (`--only`, `--gate`), if not all.
    `taken` says how much of the evidence is of an earlier run, where that is so; `since` what is another than in that
    before; `excerpts` are the lines around the places that findings name. `found_by` are the options by which commands
    find it, where it lies elsewhere than usual.
    """

    schema_: str = Field(default=RESULT_SCHEMA, alias="schema")
    task: model.TaskIdentity
    revision: model.Revision
    environment: dict[str, str]
    partial: str = ""
    taken: str = ""
    started_at: str
    duration_s: float = Field(ge=0)
    verdict: model.Verdict
    score: Score
    findings: tuple[Finding, ...] = ()
    gates: tuple[GateReport, ...]
    criteria: tuple[CriterionReport, ...]
    commands: tuple[model.CommandRecord, ...] = ()
    evidence: tuple[model.FileDigest, ...] = ()
    excerpts: dict[str, str] = Field(default={})
    since: str = ""
    found_by: SkipJsonSchema[str] = Field(default="", exclude=True)

    @property
    def every_finding(self) -> tuple[Finding, ...]:
        """Return the findings of all gates, in the order of the gates, and those of the run as a whole."""
        return (*(finding for gate in self.gates for finding in gate.findings), *self.findings)

    @property
    def waived(self) -> tuple[str, ...]:
        """Return the criteria of which something is waived, in the order of the task."""
        names = {finding.criterion for finding in self.every_finding if finding.waived}
        return tuple(criterion.id for criterion in self.criteria if criterion.id in names)

    @property
    def awaited(self) -> str:
        """Return what a merge waits for where evidence is missing: the criteria that lack it, or all of it."""
        lacking = {finding.criterion for finding in self.every_finding if finding.leaves_open}
        names = [criterion.id for criterion in self.criteria if criterion.id in lacking]
        if not names or len(names) > NAMED:
            return f"{len(names)} criteria are verified" if names else "the evidence is complete"
        return f"{joined(names)} {'is' if len(names) == 1 else 'are'} verified"

    @property
    def headline(self) -> str:
        """Return the verdict as people read it, with the number of criteria of which something is waived."""
        head = self.verdict.decision.value
        head += f": merge blocked until {self.awaited}" if self.verdict.decision is Decision.INCONCLUSIVE else ""
        head += f" ({len(self.waived)} waived)" if self.waived else ""
        head += f" ({self.taken})" if self.taken else ""
        return f"{head} (partial run: {self.partial})" if self.partial else head


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings worst first, what decides before all; the order in which they came in does not matter."""
    return sorted(findings, key=_rank)


def _rank(f: Finding) -> tuple[object, ...]:
    decides, place = f.blocks or f.leaves_open, f.location
    worst = model.WORST_FIRST.index(f.outcome), model.LEVELS.index(f.level), model.SEVERITIES.index(f.severity)
    where = place is None, (place.path, place.lines.start) if place else ("", 0), str(place)
    return not decides, *worst, f.rule, f.criterion or "", f.alike, *where, f.subject, f.message, f.check, f.actual


def speaking(findings: Iterable[Finding]) -> dict[str, Finding]:
    """Return the finding that speaks for each check: the worst of what is open, waived, passed, or only advised."""
    return {finding.check: finding for finding in sorted(ranked(findings), key=_turn)[::-1]}  # the first of each


def _turn(finding: Finding) -> int:
    if finding.outcome is Outcome.UNKNOWN and finding.level is Level.ADVISORY:
        return 3
    return 1 if finding.waived else 0 if finding.outcome in LACKING else 2


AROUND, EXCERPTS, MOST_BYTES = 2, 20, 1024 * 1024


def excerpts(findings: Iterable[Finding], root: Path) -> dict[str, str]:
    """Return five lines of code around each place at which something failed, by that place."""
    failed = [f.location for f in findings if f.outcome is Outcome.FAILED and f.location]
    places = {str(place): place for place in failed if place.path.endswith(".py")}
    texts = {shown: _around(place, root) for shown, place in [*places.items()][:EXCERPTS]}
    return {shown: text for shown, text in texts.items() if text}


def _around(place: Location, root: Path) -> str:
    path = root / place.path
    if place.line is None or not path.is_file() or path.stat().st_size > MOST_BYTES:
        return ""
    first = max(1, place.line - AROUND)
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[first - 1 : place.line + AROUND]
    return "\n".join(f"{'>' if i == place.line else ' '} {i:4} {line}" for i, line in enumerate(lines, first))
