"""What somebody said, in a form that can be checked, and what came of it."""

from enum import StrEnum

from pydantic import Field

from gates.model import Location, Model


class Standing(StrEnum):
    """What the evidence says to a claim."""

    CONFIRMED = "confirmed"
    CONTRADICTED = "contradicted"
    UNSUPPORTED = "unsupported"


class Answer(Model):
    """How a claim stands, what it says, and what was seen instead."""

    standing: Standing
    expected: str
    seen: str
    where: Location | None = None


def answer(good: bool | None, expected: str, seen: str, where: Location | None = None) -> Answer:
    """Say that what was seen agrees with a claim, cannot be if it is true, or (`None`) does not settle it."""
    standing = {True: Standing.CONFIRMED, False: Standing.CONTRADICTED, None: Standing.UNSUPPORTED}[good]
    return Answer(standing=standing, expected=expected, seen=seen, where=where)


class Said(Model):
    """What a statement says of a test run; `part` are words that make it one about tests that no run knows.

    `counts` are outcomes and how many tests ended so, `total` all tests; `test` is one test and `outcome` its end.
    """

    counts: dict[str, int] = Field(default_factory=dict)
    all_passed: bool = False
    test: str = ""
    outcome: str = ""
    exit_code: int | None = None
    part: str = ""


class Span(Model):
    """Columns of a line of a report whose numbers a claim states."""

    line: int
    start: int = 0
    end: int = 10**9


class Claim(Model):
    """One claim: where it stands, the very text, and where its numbers stand.

    `known` is the answer of files and arithmetic; without one `said` asks the test run.
    """

    at: Location
    text: str
    known: Answer | None = None
    said: Said | None = None
    covers: tuple[Span, ...] = ()
