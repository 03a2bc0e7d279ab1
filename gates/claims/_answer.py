"""The answer to one claim."""

from dataclasses import dataclass

from gates.claims.claim import Standing
from gates.model import Location


@dataclass(frozen=True)
class Answer:
    """How a claim stands, what it says, and what was seen instead."""

    standing: Standing
    expected: str
    seen: str
    where: Location | None = None


def confirmed(expected: str, seen: str, where: Location | None = None) -> Answer:
    """Say that what was seen agrees with the claim."""
    return Answer(Standing.CONFIRMED, expected, seen, where)


def contradicted(expected: str, seen: str, where: Location | None = None) -> Answer:
    """Say that what was seen cannot be, if the claim is true."""
    return Answer(Standing.CONTRADICTED, expected, seen, where)


def unsupported(expected: str, seen: str, where: Location | None = None) -> Answer:
    """Say that nothing was seen that settles the claim."""
    return Answer(Standing.UNSUPPORTED, expected, seen, where)


def percent_text(percent: float, digits: int) -> str:
    """Return a percentage with the decimals that it was written with."""
    return f"{percent:.{digits}f} %"
