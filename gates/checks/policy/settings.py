"""Two states of what configures the gates, pytest and coverage: what is another now."""

import configparser
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from gates.checks.policy.tests import Move, Part, moved
from gates.model import Location

PYTEST, COVERAGE = {"pytest", "tool:pytest", "tool.pytest", "tool.pytest.ini_options"}, ("coverage:", "tool.coverage.")
PYTEST_FILES = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg")
WATCHED = ("pyproject.toml", *PYTEST_FILES, ".coveragerc")
GATES = ("tasks", "python", "keep_going", "goalposts", "rules", "evidence_signers")  # of its own settings; of others:
HARMLESS = ("markers", "minversion", "required_plugins", "cache_dir", "log_")
Files = Mapping[str, bytes]
Table = dict[str, Any]


def compare(before: Files, after: Files) -> Iterator[Move]:
    """Yield each setting of what is seen of the tests and lets them pass that is another now, file by file."""
    bad = {*unreadable(before), *unreadable(after)}  # these are named as not compared
    for path in [each for each in WATCHED if each not in bad]:
        old, new = (_settings(path, files[path]) if path in files else None for files in (before, after))
        if path != "pyproject.toml" and (old is None) != (new is None) and (old or new or path.endswith("pytest.ini")):
            state = ("none", "there") if old is None else ("there", "none")  # the first file with settings alone counts
            yield moved(Part.SETTINGS, f"the settings in {path}", *state, Location(path=path))
        for name in sorted({**(old or {}), **(new or {})}):
            was, now = (_words(side[name]) if side and name in side else "default" for side in (old, new))
            if was != now:
                yield moved(Part.SETTINGS, name, was, now, Location(path=path))


def unreadable(files: Files) -> dict[str, str]:
    """Return the files of settings that cannot be read, and why."""
    found = {}
    for path, content in files.items():
        try:
            _settings(path, content)
        except (ValueError, configparser.Error) as error:
            found[path] = " ".join(str(error).split())[:200]
    return found


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


def _words(value: object) -> str:
    """Return a value as one line, whichever way its file writes it."""
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return " ".join(text.lower().split() if isinstance(value, bool) else text.split())
