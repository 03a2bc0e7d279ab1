"""Faults as they are made and as a task declares them: each a whole text of one file, none twice."""

import ast
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from gates.model import Location
from gates.project.files import files_of
from gates.proving.proof import Source
from gates.proving.source import Text, compiles, parsed
from gates.task import yaml_source
from gates.task.bindings import DeclaredFault
from gates.task.shape import is_typed
from gates.task.task import Criterion, Task
from gates.task.yaml_source import Problem, SourceError


@dataclass(frozen=True)
class Change:
    """A file with a change, before anybody has looked whether it is one: the lines it speaks of, and the new text."""

    source: Source
    title: str
    file: Text
    first: int
    last: int
    text: str


@dataclass(frozen=True)
class Fault:
    """A change that is one, with a name that stays the same as long as the file does."""

    id: str
    source: Source
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
        return Fault(form, change.source, change.title, place, change.text, change.file.diff(change.text))


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


def declared(criterion: Criterion, root: Path) -> list[Change]:
    """Return the declared faults of a criterion, which must have been checked."""
    return [change for fault in criterion.faults if isinstance(change := _change(fault, root), Change)]


def check_declared(task: Task, path: Path, root: Path) -> None:
    """Raise `SourceError` with the place of each declared fault that cannot be put in as it is written."""
    faults = [(i, j, fault) for i, c in enumerate(task.criteria) for j, fault in enumerate(c.faults)]
    inside = set(files_of(task.implementation, root))
    wrong = [(i, j, *found) for i, j, fault in faults for found in _wrong(fault, root, inside)]
    if not wrong:
        return
    document = yaml_source.read(path, task.path, is_typed)
    problems = [Problem(*document.place(("criteria", i, "faults", j, key)), message) for i, j, key, message in wrong]
    raise SourceError(task.path, document.text, problems)


def _wrong(fault: DeclaredFault, root: Path, inside: set[Path]) -> Iterator[tuple[str, str]]:
    """Yield the key of a fault that is wrong, and what is wrong with it."""
    if root / fault.in_ not in inside:
        there = "lies outside of the implementation" if (root / fault.in_).is_file() else "does not exist"
        yield "in", f"{fault.in_!r} {there}; name a file of the implementation"
        return
    change = _change(fault, root)
    if isinstance(change, str):
        yield "replace", change
    elif change.text == change.file.text:
        yield "by", f"{fault.by!r} is what stands there already"
    elif change.file.path.endswith(".py") and not compiles(change.text):
        yield "by", f"{fault.in_}:{change.first} does not compile with {fault.by!r} in place of {fault.replace!r}"


def _change(fault: DeclaredFault, root: Path) -> Change | str:
    """Return a fault put in, or why it cannot be."""
    try:
        file = Text.read(root, fault.in_)
    except (OSError, UnicodeDecodeError, SyntaxError) as error:
        return f"{fault.in_} cannot be taken for a fault: {error}"
    places = [i for i in range(len(file.text)) if file.text.startswith(fault.replace, i)]
    lines = ", ".join(str(file.text.count("\n", 0, place) + 1) for place in places[:5])
    if not places:
        return f"{fault.replace!r} does not occur in {fault.in_}; copy the text as it stands there"
    if fault.nth is None and len(places) > 1:
        return f"{fault.replace!r} occurs {len(places)} times in {fault.in_} (line {lines}); say which with 'nth'"
    if (fault.nth or 1) > len(places):
        return f"{fault.replace!r} occurs {len(places)} times in {fault.in_} (line {lines}), found nth: {fault.nth}"
    at = places[(fault.nth or 1) - 1]
    first = file.text.count("\n", 0, at) + 1
    text = file.text[:at] + fault.by + file.text[at + len(fault.replace) :]
    return Change(Source.DECLARED, fault.name, file, first, first + fault.replace.rstrip("\n").count("\n"), text)
