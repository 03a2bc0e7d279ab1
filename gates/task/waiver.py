"""Waivers: what a task lets pass for a while, who answers for it, and until which day."""

import re
from datetime import date, timedelta
from enum import StrEnum
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from gates.task.types import Located, Name, Text

WARNING = timedelta(days=14)
LONGEST = timedelta(days=366)
NEVER = frozenset({"EX001", "BL003", "BL004", "BL011", "BL012"})
ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def _day(value: object) -> object:
    if isinstance(value, date):
        return value
    if not isinstance(value, str) or not ISO_DAY.fullmatch(value):
        raise ValueError(f"expected a day such as 2026-12-31, found {value!r}")
    try:
        return date.fromisoformat(value)
    except ValueError as error:
        raise ValueError(f"expected a day of the calendar such as 2026-12-31, found {value!r}") from error


class Standing(StrEnum):
    """Whether a waiver works on a day, and if not, why."""

    IN_FORCE = "in force"
    ENDS_SOON = "ends soon"
    ENDED = "ended"
    TOO_LONG = "too long"


class Waiver(Located):
    """What is let pass of one criterion, all of it or one rule; it works until the day before `expires`."""

    criterion: Name
    rule: Annotated[str, Field(pattern=r"^[A-Z]{2}[0-9]{3}$")] | None = None
    reason: Text
    owner: Text
    expires: Annotated[date, BeforeValidator(_day)]

    @model_validator(mode="after")
    def _may_be_waived(self) -> Self:
        if self.rule and not may_be_waived(self.rule):
            raise ValueError(f"{self.rule} can't be waived: it says whether the rest can be believed")
        return self

    def standing(self, today: date) -> Standing:
        """Return whether the waiver works on a day; one for longer than a year does not until its last year."""
        if self.expires <= today:
            return Standing.ENDED
        if self.expires - today > LONGEST:
            return Standing.TOO_LONG
        return Standing.ENDS_SOON if self.expires - today <= WARNING else Standing.IN_FORCE

    def works(self, today: date) -> bool:
        """Return whether the waiver works on a day."""
        return self.standing(today) in {Standing.IN_FORCE, Standing.ENDS_SOON}

    @property
    def name(self) -> str:
        """Return what the waiver is called in reports, such as `AC5 PF001`."""
        return f"{self.criterion} {self.rule}" if self.rule else self.criterion

    @property
    def title(self) -> str:
        """Return the waiver with who answers for it, as sentences about it begin."""
        return f"Waiver of {self.name} (owner {self.owner})"


def may_be_waived(rule: str) -> bool:
    """Return whether a rule can be waived: never one of the run itself, of belief, of the bar, or of waivers."""
    return rule not in NEVER and not rule.startswith("GT")
