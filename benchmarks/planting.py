"""Small training projects, sound or with one defect planted: each shape is a YAML file of files and edits."""

import functools
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "cases" / "planted"
SETS = ("tuned", "held_out", "fresh", "last")
NEAR = 3
MARK = "# <-"


@dataclass(frozen=True)
class Place:
    """A line where a defect may be reported."""

    path: str
    line: int

    def near(self, path: str, line: int) -> bool:
        """Return whether a finding is close enough to be about this place."""
        return path == self.path and abs(line - self.line) <= NEAR


@dataclass(frozen=True)
class Case:
    """A project, what is wrong with it (nothing, where `rules` is empty), and where."""

    kind: str
    shape: str
    what: str
    files: dict[str, str]
    rules: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()

    @property
    def id(self) -> str:
        """Return a name to be told by."""
        return f"{self.shape}: {self.rules[0] + ': ' if self.rules else 'sound: '}{self.what}"

    def write(self, folder: Path) -> None:
        """Write the project into a folder."""
        for path, text in self.files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")


@functools.cache
def planted(kind: str) -> tuple[Case, ...]:
    """Return the projects with a defect, of the tuned or of the held-out set."""
    return tuple(case for case in _cases(kind) if case.rules)


@functools.cache
def sound(kind: str) -> tuple[Case, ...]:
    """Return the projects without a defect, of the tuned or of the held-out set."""
    return tuple(case for case in _cases(kind) if not case.rules)


def _cases(kind: str) -> Iterator[Case]:
    for path in sorted((FOLDER / kind).glob("*.yaml")):
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        for entry in (*data.get("clean", ()), *data.get("planted", ())):
            try:
                yield _case(kind, path.stem, data.get("files", {}), entry)
            except ValueError as error:
                raise ValueError(f"{path.name}: {entry['what']!r}: {error}") from error


def _case(kind: str, shape: str, base: dict[str, str], entry: dict[str, Any]) -> Case:
    files = dict(entry.get("files", base))
    default = entry.get("file", next(iter(files)))
    edits = entry.get("edits", [entry] if "old" in entry else [])
    for edit in edits:
        path = edit.get("file", default)
        files[path] = replaced(files[path], edit["old"], edit["new"])
    wanted = {line.strip() for key in ("also", "at") for line in _listed(entry.get(key, []))}
    places = tuple(_places(files, wanted))
    rules = (*_listed(entry.get("rule", [])), *entry.get("rules", ()))
    if bool(rules) != bool(places):
        raise ValueError("a defect has a marked line, and only a defect")
    clean = {path: "".join(_unmarked(line) for line in text.splitlines(True)) for path, text in files.items()}
    return Case(kind, shape, entry["what"], clean, rules, places)


def _places(files: dict[str, str], wanted: set[str]) -> Iterator[Place]:
    for path, text in files.items():
        for number, line in enumerate(text.splitlines(), 1):
            if MARK in line or line.strip() in wanted:
                yield Place(path, number)


def _unmarked(line: str) -> str:
    """Return a line without the mark; a line that is nothing but the mark becomes empty."""
    head = line.split(MARK)[0].rstrip() if MARK in line else line.rstrip("\n")
    return ("" if head.strip() == "#" else head) + "\n"


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def replaced(text: str, old: str, new: str) -> str:
    """Replace a run of lines, wherever it is indented to; it must occur once."""
    lines, wanted = text.splitlines(), old.splitlines()
    found = [
        start
        for start in range(len(lines) - len(wanted) + 1)
        if textwrap.dedent("\n".join(lines[start : start + len(wanted)])) == textwrap.dedent("\n".join(wanted))
    ]
    if len(found) != 1:
        raise ValueError(f"{old.splitlines()[0]!r} occurs {len(found)} times")
    start = found[0]
    run = lines[start : start + len(wanted)]
    indent = min((line[: len(line) - len(line.lstrip())] for line in run if line.strip()), key=len)
    margin = min(len(line) - len(line.lstrip()) for line in wanted if line.strip())
    fresh = [indent + line[margin:] if line.strip() else "" for line in new.splitlines()]
    return "\n".join([*lines[:start], *fresh, *lines[start + len(wanted) :]]) + "\n"
