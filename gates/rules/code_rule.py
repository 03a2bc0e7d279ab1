"""What every code rule has: its words, its examples, and the function that looks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gates.model import Severity
from gates.syntax import SourceModule


@dataclass(frozen=True)
class Site:
    """A place that a rule speaks of, and whether it is as it should be."""

    line: int
    last_line: int
    ok: bool
    message: str


@dataclass(frozen=True)
class CodeRule:
    """A rule on source code; `good` and `bad` are examples that its test runs."""

    id: str
    severity: Severity
    problem: str
    impact: str
    fix: str
    good: str
    bad: str
    look: Callable[[SourceModule], Iterator[Site]]
