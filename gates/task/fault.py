"""The parts of a task file on proof: faults that a criterion's evidence must notice, and how many of them."""

from typing import Annotated

from pydantic import Field

from gates.task.types import InsidePath, Located, Text


class DeclaredFault(Located):
    """A fault that violates a criterion: a text of one file, replaced by another.

    The text must stand there exactly once, or `nth` says which one is meant, counted from 1.
    """

    replace: Text
    by: str
    in_: InsidePath = Field(alias="in")
    nth: Annotated[int, Field(ge=1)] | None = None

    @property
    def name(self) -> str:
        """Return what the fault does, in words."""
        which = f" (number {self.nth})" if self.nth else ""
        return f"{_short(self.replace)!r}{which} replaced by {_short(self.by)!r}"


class ProofTarget(Located):
    """The share of the faults that the evidence of each criterion must notice."""

    killed_at_least: Annotated[float, Field(gt=0, le=1)] = 0.8


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."
