"""One goalpost that was moved."""

from enum import StrEnum

from gates.model import Location, Model
from gates.words import printable

LONGEST = 200


class Part(StrEnum):
    """What a goalpost belongs to: the bar itself, how it is measured, the tests, or the settings."""

    BAR = "bar"
    WAIVER = "waiver"
    CHANGED = "changed"
    TESTS = "tests"
    SETTINGS = "settings"


class Move(Model):
    """What stood where before and stands where now."""

    part: Part
    what: str
    before: str
    after: str
    location: Location | None = None

    def __str__(self) -> str:
        return f"{self.what}: {self.before} -> {self.after}"


def moved(part: Part, what: str, before: object, after: object, place: Location | None) -> Move:
    """Make a move of values of any kind, in one line that is no longer than people read."""
    location = place and place.model_copy(update={"path": printable(place.path)})
    return Move(part=part, what=shown(what), before=shown(before), after=shown(after), location=location)


def shown(value: object) -> str:
    """Return a value in one line, cut where it is long."""
    if value is None:
        return "none"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    line = printable(" ".join(text.split()))
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."
