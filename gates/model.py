"""The values that everything else speaks of: findings, verdicts, reports."""

import hashlib
from enum import StrEnum
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

RESULT_SCHEMA = "gates.result/1"


class Model(BaseModel):
    """A frozen value that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Outcome(StrEnum):
    """What one check came to."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    NOT_APPLICABLE = "not_applicable"


class Severity(StrEnum):
    """How much a failed check matters."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"


class Level(StrEnum):
    """How binding a criterion or check is: only `must` decides, the others are shown and cost score."""

    MUST = "must"
    SHOULD = "should"
    ADVISORY = "advisory"


class Decision(StrEnum):
    """The verdict of a task or a gate; `not applicable` and `waived` are only ever said of a gate."""

    PASS = "PASS"  # noqa: S105  # a verdict, not a password
    BLOCK = "BLOCK"
    INCONCLUSIVE = "INCONCLUSIVE"
    NOT_APPLICABLE = "NOT APPLICABLE"
    WAIVED = "WAIVED"


class Status(StrEnum):
    """Where one acceptance criterion stands."""

    PASS = "PASS"  # noqa: S105  # a status, not a password
    FAIL = "FAIL"
    PARTIAL = "PARTIAL"
    UNVERIFIED = "UNVERIFIED"
    NOT_IMPLEMENTED = "NOT IMPLEMENTED"
    WAIVED = "WAIVED"


SEVERITIES = tuple(Severity)
EXIT_CODES = {Decision.PASS: 0, Decision.BLOCK: 1, Decision.INCONCLUSIVE: 3}
HEADLINES = {
    Decision.PASS: "PASS",
    Decision.BLOCK: "BLOCK",
    Decision.INCONCLUSIVE: "BLOCK (inconclusive)",
    Decision.NOT_APPLICABLE: "NOT APPLICABLE",
    Decision.WAIVED: "WAIVED",
}


class Location(Model):
    """A place in a file of the project, its path relative to the project's root."""

    path: str
    line: int | None = Field(default=None, ge=1)
    last_line: int | None = Field(default=None, ge=1)

    def __str__(self) -> str:
        if self.line is None:
            return self.path
        if self.last_line is None or self.last_line == self.line:
            return f"{self.path}:{self.line}"
        return f"{self.path}:{self.line}-{self.last_line}"


class Check(Model):
    """Something that a gate has planned to decide, named before anything is looked at.

    `scored` is whether it has a share of the score; what speaks of the bar and not of the work has none.
    """

    id: str
    title: str
    level: Level = Level.MUST
    criterion: str | None = None
    scored: bool = True


class Waived(Model):
    """Who answers for it that a finding neither blocks nor leaves open, why, and from which day on it does again."""

    reason: str
    owner: str
    expires: str
    location: Location | None = None

    def __str__(self) -> str:
        return f"waived by {self.owner} until {self.expires}: {self.reason}"


class Finding(Model):
    """The conclusion of one check.

    `message` is the problem (or what was seen to be right), `impact` why it matters, `remediation` the fix,
    `command` what would reproduce or settle it, `evidence` the raw file that it rests on. `subject` names
    what the finding is about where path and check do not tell two findings apart.
    """

    rule: str
    check: str
    outcome: Outcome
    severity: Severity
    message: str
    level: Level = Level.MUST
    criterion: str | None = None
    location: Location | None = None
    subject: str = ""
    expected: str = ""
    actual: str = ""
    impact: str = ""
    remediation: str = ""
    command: str = ""
    evidence: str | None = None
    fingerprint: str = ""
    waived: Waived | None = None

    @model_validator(mode="before")
    @classmethod
    def _fill_fingerprint(cls, data: object) -> object:
        """Derive the fingerprint from what stays the same when lines move or numbers change."""
        if not isinstance(data, dict) or data.get("fingerprint"):
            return data
        where = data.get("location")
        path = where.path if isinstance(where, Location) else (where or {}).get("path", "")
        parts = [
            data.get("rule"),
            data.get("check"),
            data.get("criterion") or "",
            path,
            data.get("subject", ""),
        ]
        digest = hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()
        return {**data, "fingerprint": digest[:16]}

    @property
    def blocks(self) -> bool:
        """Whether this finding alone stops the change."""
        return (
            self.outcome is Outcome.FAILED
            and self.waived is None
            and (self.level is Level.MUST or self.severity in {Severity.CRITICAL, Severity.HIGH})
        )

    @property
    def leaves_open(self) -> bool:
        """Whether required evidence is missing here."""
        return self.outcome is Outcome.UNKNOWN and self.waived is None and self.level is Level.MUST


class RuleText(Model):
    """What a rule of the gates means, as `gates explain RULE` says it."""

    id: str = Field(pattern=r"^[A-Z]{2}[0-9]{3}$")
    title: str = Field(min_length=1)
    meaning: str = Field(min_length=1)


class Verdict(Model):
    """The decision, the exit code that goes with it, and what caused it, worst first."""

    decision: Decision
    exit_code: int
    reasons: tuple[str, ...]


class ScoreLine(Model):
    """One line of a score: points got out of the points possible."""

    title: str
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

    `appendix` is whether it is long, and only looked into: it comes last.
    """

    title: str
    text: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    code: str = ""
    appendix: bool = False

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
    checks: tuple[Check, ...]
    findings: tuple[Finding, ...]
    sections: tuple[Section, ...] = ()


class Trace(Model):
    """One thing that stands for a criterion: where it is, and how it ended."""

    name: str
    location: Location | None = None
    outcome: Outcome
    detail: str = ""


class CriterionReport(Model):
    """One acceptance criterion with the code, tests and measures that stand for it."""

    id: str
    text: str
    level: Level
    status: Status
    reasons: tuple[str, ...] = ()
    code: tuple[Trace, ...] = ()
    tests: tuple[Trace, ...] = ()
    measures: tuple[Trace, ...] = ()


class Coverage(Model):
    """How many criteria stand where, and the share that the task asks for; the share leaves waived ones out."""

    asked: float
    counts: dict[Status, int]

    @property
    def total(self) -> int:
        """Return how many criteria there are."""
        return sum(self.counts.values())

    @property
    def counting(self) -> int:
        """Return how many criteria the share is taken of: those that are not waived."""
        return self.total - self.counts.get(Status.WAIVED, 0)

    @property
    def share(self) -> float:
        """Return the share of the criteria that are verified, 0 where none counts."""
        return self.counts.get(Status.PASS, 0) / self.counting if self.counting else 0.0

    @property
    def words(self) -> str:
        """Return the counts in words, such as `6 PASS, 2 PARTIAL`."""
        return ", ".join(f"{count} {status.value}" for status, count in self.counts.items() if count)


class FileDigest(Model):
    """A file, its SHA-256 and its size."""

    path: str
    sha256: str
    bytes: int = Field(ge=0)


class Revision(Model):
    """The state of the project that the evidence speaks of.

    `digest` is the SHA-256 over the paths and contents of `files`, the task's implementation and tests. `web` is the
    address that a path follows where the commit can be read on the web; only a clean work tree has one.
    """

    commit: str | None
    dirty: bool | None
    digest: str
    files: tuple[FileDigest, ...]
    web: str | None = None


class TaskIdentity(Model):
    """Which task was judged, and the SHA-256 of its file; `policy` is the revision it was taken from, if not here."""

    id: str
    title: str
    path: str
    digest: str
    policy: str = ""

    @property
    def shown(self) -> str:
        """Return the file as reports name it, with the revision that it was taken from."""
        return f"{self.path} @ {self.policy}" if self.policy else self.path


class CommandRecord(Model):
    """A command that was run to collect evidence, and how it ended."""

    purpose: str
    argv: tuple[str, ...]
    ended: str
    duration_s: float = Field(ge=0)


class Report(Model):
    """All of one run in one value; every format is a rendering of it."""

    model_config = ConfigDict(frozen=True, extra="forbid", title="gates result")

    schema_: str = Field(default=RESULT_SCHEMA, alias="schema")
    task: TaskIdentity
    revision: Revision
    environment: dict[str, str]
    started_at: str
    duration_s: float = Field(ge=0)
    verdict: Verdict
    score: Score
    gates: tuple[GateReport, ...]
    criteria: tuple[CriterionReport, ...]
    coverage: Coverage | None = None
    commands: tuple[CommandRecord, ...] = ()
    evidence: tuple[FileDigest, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return the findings of all gates, in the order of the gates."""
        return tuple(finding for gate in self.gates for finding in gate.findings)

    @property
    def waived(self) -> tuple[str, ...]:
        """Return the criteria of which something is waived, in the order of the task."""
        names = {finding.criterion for finding in self.findings if finding.waived}
        return tuple(criterion.id for criterion in self.criteria if criterion.id in names)

    @property
    def headline(self) -> str:
        """Return the verdict as people read it, with the number of criteria of which something is waived."""
        head = HEADLINES[self.verdict.decision]
        note = f"{len(self.waived)} waived)"
        if not self.waived:
            return head
        return f"{head[:-1]}, {note}" if head.endswith(")") else f"{head} ({note}"


def worst(outcomes: set[Outcome]) -> Outcome:
    """Return the outcome that speaks for a group: failed, then unknown, then passed, then not applicable."""
    for outcome in (Outcome.FAILED, Outcome.UNKNOWN, Outcome.PASSED):
        if outcome in outcomes:
            return outcome
    return Outcome.NOT_APPLICABLE if outcomes else Outcome.UNKNOWN
