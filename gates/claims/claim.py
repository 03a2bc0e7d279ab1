"""What somebody said, in a form that can be checked: one claim, and the ruling on it."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from gates.model import Decision, Level, Location, Model

Percent = Annotated[float, Field(ge=0)]


class Standing(StrEnum):
    """What the evidence says to a claim."""

    CONFIRMED = "confirmed"
    CONTRADICTED = "contradicted"
    UNSUPPORTED = "unsupported"


class TestCounts(Model):
    """How many tests ended in which way; `total` is all of them, `scope` the tests that are meant (all where empty).

    `part` are words that make it a statement about some of them only, nobody knows which.
    """

    __test__ = False

    kind: Literal["tests"] = "tests"
    counts: Annotated[dict[str, int], Field(min_length=1)]
    total: int | None = None
    scope: str = ""
    part: str = ""


class AllPassed(Model):
    """Every test passed."""

    kind: Literal["all passed"] = "all passed"
    scope: str = ""
    part: str = ""


class TestEnd(Model):
    """How one test ended; `test` is its id or the end of it."""

    __test__ = False

    kind: Literal["test end"] = "test end"
    test: str
    outcome: str


class ExitCode(Model):
    """The exit code of the test run."""

    kind: Literal["exit code"] = "exit code"
    value: int
    scope: str = ""


class Duration(Model):
    """How long the test run took."""

    kind: Literal["duration"] = "duration"
    seconds: float


class Number(Model):
    """A number that only a measurement can give: a speedup (`ratio`), a `reduction`, a `difference`, a `value`.

    `low` and `high` are the ends of what was said, by the digits that it was said with. `of`, `arms`, `source` and `on`
    name the metric, the arms, the measurement and the kind of device, where they were said; `about` is the topic
    otherwise. `part` marks a number about a part of the whole, `guessed` one that calls itself a projection.
    """

    kind: Literal["number"] = "number"
    what: Literal["ratio", "reduction", "difference", "value"]
    about: str = ""
    low: float
    high: float
    of: str = ""
    arms: tuple[str, ...] = ()
    source: str = ""
    on: str = "any"
    part: bool = False
    guessed: bool = False


class Place(Model):
    """Lines of a file and what is said to stand there: quoted code, a symbol, or only words (then it is empty).

    `quote` are pieces of code that follow one another, `symbol` a name that is defined or used there (only defined
    where `defines`), `hint` a name that counts only where the file defines it.
    """

    kind: Literal["place"] = "place"
    path: str
    first: int = Field(ge=1)
    last: int = Field(ge=1)
    quote: tuple[str, ...] = ()
    symbol: str = ""
    hint: str = ""
    more: tuple[tuple[int, int], ...] = ()
    defines: bool = False

    @property
    def lines(self) -> tuple[tuple[int, int], ...]:
        """Return every range that is named."""
        return ((self.first, self.last), *self.more)


class Presence(Model):
    """A file that is there, or a symbol (`package.module:name`) that is defined."""

    kind: Literal["presence"] = "presence"
    path: str = ""
    symbol: str = ""


class Length(Model):
    """The number of lines of a file."""

    kind: Literal["length"] = "length"
    path: str
    lines: int


class Sum(Model):
    """Parts and the total that they are said to add up to; `of` are the points possible, where they are said."""

    kind: Literal["sum"] = "sum"
    title: str
    parts: tuple[float, ...]
    total: float
    of_parts: tuple[float, ...] = ()
    of_total: float | None = None


class Share(Model):
    """A count of a whole, said as a percentage too; `digits` are the decimals that were written."""

    kind: Literal["share"] = "share"
    count: float
    whole: float
    percent: Percent
    digits: int = 0
    roughly: bool = False


class Change(Model):
    """A number before and after, and the reduction in percent that is said of them."""

    kind: Literal["change"] = "change"
    before: float
    after: float
    percent: Percent
    digits: int = 0
    roughly: bool = False


class Tally(Model):
    """A number in a heading, and the entries of the list or table under it."""

    kind: Literal["tally"] = "tally"
    title: str
    said: int
    listed: int


class Coverage(Model):
    """The share of the code that tests run: of lines, or with `at_least` of the implementation's public functions."""

    kind: Literal["coverage"] = "coverage"
    percent: Percent
    digits: int = 0
    at_least: bool = False


class Verdict(Model):
    """The decision of a gate or of the task (`gate` empty), and the score that goes with it."""

    kind: Literal["verdict"] = "verdict"
    gate: str = ""
    decision: Decision | None = None
    score: int | None = None


class CriterionStatus(Model):
    """Where a criterion is said to stand."""

    kind: Literal["criterion"] = "criterion"
    criterion: str
    met: bool


class Clash(Model):
    """Two statements of one report that cannot both be true."""

    kind: Literal["clash"] = "clash"
    other: str
    other_line: int
    reason: str


class Unread(Model):
    """A sentence of a claims file in which nothing was found that can be checked."""

    kind: Literal["unread"] = "unread"


Said = Annotated[
    TestCounts | AllPassed | TestEnd | ExitCode | Duration | Number | Place | Presence | Length | Sum | Share | Change
    | Tally | Coverage | Verdict | CriterionStatus | Clash | Unread,
    Field(discriminator="kind"),
]  # fmt: skip


class Claim(Model):
    """One claim: where it stands, the very text, and what it says."""

    at: Location
    text: str
    said: Said
    level: Level = Level.ADVISORY


class Ruling(Model):
    """What came of one claim: its standing, and the evidence that says so."""

    claim: Claim
    standing: Standing
    expected: str
    seen: str
    where: Location | None = None
