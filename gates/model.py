"""The values that everything else speaks of: outcomes, checks, findings, verdicts, revisions."""

import hashlib
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gates.words import in_shell


class Model(BaseModel):
    """A frozen value that refuses unknown fields."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid", allow_inf_nan=False)


class Outcome(StrEnum):
    """What one check came to."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    NOT_APPLICABLE = "not_applicable"

    @property
    def words(self) -> str:
        """Return it as people read it."""
        return self.value.replace("_", " ")


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


SEVERITIES, LEVELS = tuple(Severity), tuple(Level)
GRAVE = {Severity.CRITICAL, Severity.HIGH}
WORST_FIRST = (Outcome.FAILED, Outcome.UNKNOWN, Outcome.PASSED, Outcome.NOT_APPLICABLE)
SEVERITY = {  # of a finding that does not say how much it matters; all others are for information
    Outcome.FAILED: {Level.MUST: Severity.CRITICAL, Level.SHOULD: Severity.MEDIUM, Level.ADVISORY: Severity.LOW},
    Outcome.UNKNOWN: {Level.MUST: Severity.HIGH, Level.SHOULD: Severity.MEDIUM, Level.ADVISORY: Severity.LOW},
}


class Location(Model):
    """A place in a file of the project, its path relative to the project's root."""

    path: str
    line: int | None = Field(default=None, ge=1)
    last_line: int | None = Field(default=None, ge=1)

    @property
    def lines(self) -> range:
        """Return the numbers of its lines; of a whole file the first."""
        return range(self.line or 1, (self.last_line or self.line or 1) + 1)

    def meets(self, other: "Location") -> bool:
        """Return whether two places have a line in common."""
        return self.path == other.path and self.lines[0] <= other.lines[-1] and other.lines[0] <= self.lines[-1]

    def __str__(self) -> str:
        last = f"-{self.last_line}" if self.last_line not in {None, self.line} else ""
        return self.path if self.line is None else f"{self.path}:{self.line}{last}"


class Basis(StrEnum):
    """What a finding rests on: what happened, what was only read, or what somebody said."""

    OBSERVED = "observed"
    READ = "read"
    DECLARED = "declared"


class Row(StrEnum):
    """Where in the traceability matrix a criterion shows what a check decided."""

    CODE = "code"
    TEST = "test"
    MEASURE = "measure"


class Planned(Model):
    """Something that a check has planned to decide, named before anything is looked at.

    `scored` is whether it has a share of the score; what speaks of the bar and not of the work has none. `basis`, `row`
    and `label` are those of its check where they are not given, `kind` is what its check is about.
    """

    id: str
    title: str
    level: Level = Level.MUST
    criterion: str | None = None
    scored: bool = True
    basis: Basis | None = None
    row: Row | None = None
    label: str = ""
    kind: str = ""


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

    `severity` follows from outcome and level where it is not given.
    `message` is the problem (or what was seen to be right), `impact` why it matters, `remediation` the fix,
    `command` what would reproduce or settle it, `evidence` the raw file that it rests on. `subject` names
    what the finding is about where path and check do not tell two findings apart. `follows` is whether it only follows
    from other findings, as the share of verified criteria does; `cause` is a name that findings of one cause share.
    `alike` is of how many findings it speaks, as the last of very many does. What is `absent` is not implemented;
    `unseen` says that it also tells of something that was not judged.
    """

    rule: str
    check: str
    outcome: Outcome
    severity: Severity = Severity.INFO
    message: str
    basis: Basis = Basis.OBSERVED
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
    follows: bool = False
    cause: str = ""
    alike: int = 1
    absent: bool = False
    unseen: bool = False

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, data: object) -> object:
        """Derive the severity, where none is given, and a fingerprint that stays when lines move or numbers change."""
        if not isinstance(data, dict):
            return data
        if "severity" not in data and "outcome" in data:
            by_level = SEVERITY.get(Outcome(data["outcome"]), {})
            data = {**data, "severity": by_level.get(Level(data.get("level", Level.MUST)), Severity.INFO)}
        if data.get("fingerprint"):
            return data
        where = data.get("location")
        path = where.path if isinstance(where, Location) else (where or {}).get("path", "")
        parts = [data.get("rule"), data.get("check"), data.get("criterion") or "", path, data.get("subject", "")]
        digest = hashlib.sha256("\0".join(map(str, parts)).encode(errors="surrogatepass")).hexdigest()
        return {**data, "fingerprint": digest[:16]}

    def __str__(self) -> str:
        place = f"{self.location}:" if self.location else ""
        return " ".join([*filter(None, [self.rule, self.criterion, place]), self.message])

    @property
    def blocks(self) -> bool:
        """Whether this finding alone stops the change."""
        grave = self.level is Level.MUST or self.severity in GRAVE
        return self.outcome is Outcome.FAILED and self.waived is None and grave

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


class FileDigest(Model):
    """A file, its SHA-256 and its size."""

    path: str
    sha256: str
    bytes: int = Field(ge=0)


class Revision(Model):
    """The state of the project that the evidence speaks of.

    `digest` is the SHA-256 over the paths and contents of `files`, the task's implementation and tests. `web` is the
    address that a path follows where the commit can be read on the web; only a clean work tree has one. `strays` are
    files that tests imported and that the commit does not have.
    """

    commit: str | None
    dirty: bool | None
    digest: str
    files: tuple[FileDigest, ...]
    web: str | None = None
    strays: tuple[str, ...] = ()


class PolicyRevision(Model):
    """The revision that judges, as it was asked for, and its commit."""

    revision: str
    commit: str

    def __str__(self) -> str:
        return f"{self.revision} ({self.commit[:12]})"


class TaskIdentity(Model):
    """Which task was judged, and the SHA-256 of its file; `policy` is where it was taken from, if not here."""

    id: str
    title: str
    path: str
    digest: str
    policy: PolicyRevision | None = None

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

    @property
    def line(self) -> str:
        """Return the command as a shell reads it."""
        return in_shell(self.argv)
