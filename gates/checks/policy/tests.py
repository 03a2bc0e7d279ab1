"""Two states of the tests and settings beside a task: what is gone, skipped or another now, as moves of the bar."""

import ast
import configparser
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gates.code.syntax import parsed_definitions
from gates.evidence.tests.bound_tests import written_tests
from gates.model import Location, Model
from gates.words import first_of, printable

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


NAMED = 5
Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Fate:
    """What became of files and tests: the files that are gone, and by their old node ids where tests are now."""

    gone: frozenset[str] = frozenset()
    tests: Mapping[str, str | None] = field(default_factory=dict)

    def is_found_again(self, path: str, bound: Callable[[str], bool]) -> bool:
        """Return whether all tests that a path named are still there, and bound by another path."""
        named = path.split("[")[0]
        found = [now for was, now in self.tests.items() if was == named or was.startswith(f"{named}::")]
        return bool(found) and all(now is not None and bound(now) for now in found)

    def is_gone(self, command: Iterable[str]) -> bool:
        """Return whether a command ran a file or a module that does not exist any more."""
        ends = [end for word in command for end in (word, f"{word.replace('.', '/')}.py")]
        ends += [f"{word.replace('.', '/')}/__main__.py" for word in command]
        return any(f"/{path}".endswith(f"/{end}") for end in ends for path in self.gone)


NOTHING = Fate()


def compare(before: Files, after: Files, fate: Fate) -> Iterator[Move]:
    """Yield the tests that are gone or skipped now, then each file that changed: of one of tests, which of them."""
    old, new = written_tests(before), written_tests(after)
    was, now = dict(_skips(before)), dict(_skips(after))
    for test, place in fate.tests.items():
        for mark in sorted(now.get(place or "", frozenset()) - was[test]):
            where = Location(path=str(place).partition("::")[0])
            yield moved(Part.TESTS, f"test {test}", "runs", mark, where)
        if place is None:
            yield moved(Part.TESTS, f"test {test}", "there", "deleted", None)
    for path, content in before.items():
        own = [test for test in old if test.startswith(f"{path}::")]
        changed = [t for t in own if new.get(t, old[t]) != old[t] and now.get(t, was[t]) <= was[t]]
        if changed:
            names = first_of([test.partition("::")[2] for test in changed], NAMED)
            yield moved(Part.CHANGED, f"tests of {path}", "those of the base", f"{names} changed", Location(path=path))
        elif not own and after.get(path, b"").splitlines() != content.splitlines():
            state = "changed" if path in after else "deleted"
            yield moved(Part.CHANGED, f"file {path}", "that of the base", state, Location(path=path))


def _skips(files: Files) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the marks of each definition that leave it out, by its node id."""
    for path, content in files.items():
        for name, node in parsed_definitions(content):
            marks = map(ast.unparse, node.decorator_list)
            yield f"{path}::{name.replace('.', '::')}", frozenset(m for m in marks if "skip" in m or "xfail" in m)


PYTEST, COVERAGE = {"pytest", "tool:pytest", "tool.pytest", "tool.pytest.ini_options"}, ("coverage:", "tool.coverage.")
PYTEST_FILES = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg")
WATCHED = ("pyproject.toml", *PYTEST_FILES, ".coveragerc")
GATES = ("tasks", "python", "keep_going", "goalposts", "rules", "evidence_signers")  # of its own settings; of others:
HARMLESS = ("markers", "minversion", "required_plugins", "cache_dir", "log_")
Table = dict[str, Any]


def compare_settings(before: Files, after: Files, unread: list[str]) -> Iterator[Move]:
    """Yield each setting of what is seen of the tests and lets them pass that is another now, file by file.

    A file of settings that cannot be read is added to `unread`.
    """
    for path in WATCHED:
        sides: list[Table | None] = []
        for when, files in (("at the base", before), ("now", after)):
            try:
                sides.append(_settings(path, files[path]) if path in files else None)
            except (ValueError, configparser.Error) as error:
                unread.append(f"{path}: {' '.join(str(error).split())[:200]} {when}")
        if len(sides) < 2:
            continue
        old, new = sides
        if path != "pyproject.toml" and (old is None) != (new is None) and (old or new or path.endswith("pytest.ini")):
            state = ("none", "there") if old is None else ("there", "none")  # the first file with settings alone counts
            yield moved(Part.SETTINGS, f"the settings in {path}", *state, Location(path=path))
        for name in sorted({**(old or {}), **(new or {})}):
            was, now = (_shown_value(side[name]) if side and name in side else "default" for side in sides)
            if was != now:
                yield moved(Part.SETTINGS, name, was, now, Location(path=path))


def _settings(path: str, content: bytes) -> Table:
    """Return the settings of a file that are compared, each by what it belongs to and its own name."""
    text = content.decode("utf-8-sig")
    if path.endswith(".toml"):
        tables = dict(_flattened(tomllib.loads(text), ""))
    else:
        parser = configparser.RawConfigParser()
        parser.read_string(text)
        tables = {name: dict(parser[name]) for name in parser.sections()}
    found: Table = {}
    for kind, table in ((_kind(path, name), table) for name, table in tables.items()):
        keys = table.keys() & {*GATES} if kind == "gates" else table if kind else ()
        name = "[tool.gates]" if kind == "gates" else kind
        found |= {f"{name} {key}": table[key] for key in keys if not key.startswith(HARMLESS)}
    return found


def _kind(path: str, section: str) -> str:
    if section in PYTEST or section == "tool.gates":
        return section.partition(".")[2] if section == "tool.gates" else "pytest"
    return "coverage" if path == ".coveragerc" or section.startswith(COVERAGE) else ""


def _flattened(table: Table, prefix: str) -> Iterator[tuple[str, Table]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield f"{prefix}{key}", {name: own for name, own in value.items() if not isinstance(own, dict)}
            yield from _flattened(value, f"{prefix}{key}.")


def _shown_value(value: object) -> str:
    """Return a value as one line, whichever way its file writes it."""
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return " ".join(text.lower().split() if isinstance(value, bool) else text.split())
