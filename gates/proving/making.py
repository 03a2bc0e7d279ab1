"""Faults as they are made: each a whole text of one file, none twice."""

import ast
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest

from gates.model import Location
from gates.proving.source import Text, compiles, parsed


@dataclass(frozen=True)
class Change:
    """A file with a change, before anybody has looked whether it is one: the lines it speaks of, and the new text."""

    title: str
    file: Text
    first: int
    last: int
    text: str


@dataclass(frozen=True)
class Fault:
    """A change that is one, with a name that stays the same as long as the file does."""

    id: str
    title: str
    location: Location
    text: str
    diff: str


@dataclass
class Maker:
    """Makes the faults of one criterion."""

    seen: set[str] = field(default_factory=set)

    def make(self, changes: Iterable[Change], most: int | None = None) -> tuple[list[Fault], int]:
        """Return the changes that are faults, so many at most, and how many changes were left."""
        made: list[Fault] = []
        left = 0
        for change in changes:
            if most is not None and len(made) >= most:
                left += 1
            elif fault := self.one(change):
                made.append(fault)
        return made, left

    def one(self, change: Change) -> Fault | None:
        """Return a change as a fault; `None` for what means the same as before, or as another fault, or nothing."""
        before, after = change.file.text, change.text
        if change.file.path.endswith(".py"):
            if not compiles(after):
                return None
            before, after = change.file.form, _form(after)
        form = _digest(change.file.path, after)
        if form in self.seen or before == after:
            return None
        self.seen.add(form)
        place = Location(path=change.file.path, line=change.first, last_line=change.last)
        return Fault(form, change.title, place, change.text, change.file.diff(change.text))


def spread(seed: str, changes: Iterator[Change]) -> Iterator[Change]:
    """Yield changes in an order that is the same each time and goes through all lines before it comes back to one."""
    by_line: dict[tuple[str, int], list[tuple[str, Change]]] = defaultdict(list)
    for change in changes:
        key = f"{seed}\0{change.file.path}\0{change.first}\0{change.title}"
        by_line[change.file.path, change.first].append(
            (hashlib.sha256(key.encode("utf-8", "replace")).hexdigest(), change)
        )
    lines = [sorted(each, key=lambda pair: pair[0]) for each in by_line.values()]
    for turn in zip_longest(*sorted(lines, key=lambda each: each[0][0])):
        yield from (pair[1] for pair in turn if pair)


def _form(text: str) -> str:
    return ast.dump(parsed(text))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:16]
