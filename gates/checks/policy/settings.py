"""Two states of what configures the gates, pytest and coverage: what is another now."""

import configparser
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gates.checks.policy.change import Move, Part, moved
from gates.model import Location

PYTEST = (  # the files that pytest takes its settings from: the first that has some alone
    *((path, "pytest") for path in ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini")),
    *(("pyproject.toml", section) for section in ("tool.pytest", "tool.pytest.ini_options")),
    ("tox.ini", "pytest"),
    ("setup.cfg", "tool:pytest"),
)
COVERAGE = (
    (".coveragerc", ""),
    ("setup.cfg", "coverage:"),
    ("tox.ini", "coverage:"),
    ("pyproject.toml", "tool.coverage."),
)
WATCHED = tuple(dict.fromkeys(path for path, _ in (*PYTEST, *COVERAGE)))
GATES = ("tasks", "python", "keep_going", "goalposts", "rules", "evidence_signers")
COLLECTING = ("addopts", "filterwarnings", "xfail_strict", "testpaths", "python_files", "python_classes",
              "python_functions", "norecursedirs")  # fmt: skip
MEASURING = ("omit", "include", "exclude_lines", "exclude_also", "exclude_other_lines", "partial_branches",
             "partial_also", "source", "source_pkgs", "source_dirs", "branch", "fail_under")  # fmt: skip

Files = Mapping[str, bytes]
Table = dict[str, Any]


def compare(before: Files, after: Files) -> Iterator[Move]:
    """Yield each setting of what is seen of the tests and lets them pass that is another now."""
    before = {path: text for path, text in before.items() if path not in unreadable(after)}
    path, old_path = _pytest(after)[0], _pytest(before)[0]
    if old_path != path and _pytest(before)[1]:
        yield _moved(path, "the file with pytest's settings", old_path, path)
    yield from _changed("pyproject.toml", "[tool.gates]", GATES, _gates(before), _gates(after))
    yield from _changed(path, "pytest", COLLECTING, _pytest(before)[1], _pytest(after)[1])
    where, measured = _coverage(after)
    yield from _changed(where, "coverage", MEASURING, _coverage(before)[1], measured)


def _changed(path: str, what: str, keys: Iterable[str], old: Table, new: Table) -> Iterator[Move]:
    for key in keys:
        if _words(old.get(key)) != _words(new.get(key)):
            before, after = (_words(one[key]) if key in one else "default" for one in (old, new))
            yield _moved(path, f"{what} {key}", before, after)


def unreadable(files: Files) -> dict[str, str]:
    """Return the files of settings that cannot be read, and why."""
    found = {}
    for path, content in files.items():
        try:
            _tables(path, content)
        except (ValueError, configparser.Error) as error:
            found[path] = " ".join(str(error).split())[:200]
    return found


def _pytest(files: Files) -> tuple[str, Table]:
    """Return the file that pytest takes its settings from, and what it says."""
    for path, section in PYTEST:
        tables = _readable(path, files.get(path))
        found = {k: v for k, v in tables.get(section, {}).items() if k != "ini_options"}
        if found or (path.endswith("pytest.ini") and path in files):
            return path, found
    return "pyproject.toml", {}


def _coverage(files: Files) -> tuple[str, Table]:
    for path, prefix in COVERAGE:
        tables = _readable(path, files.get(path))
        found = {**tables.get(f"{prefix}run", {}), **tables.get(f"{prefix}report", {})}
        if found:
            return path, found
    return "pyproject.toml", {}


def _gates(files: Files) -> Table:
    return _readable("pyproject.toml", files.get("pyproject.toml")).get("tool.gates", {})


def _readable(path: str, content: bytes | None) -> dict[str, Table]:
    """Return the tables of a file; one that cannot be read has none, and is named elsewhere."""
    try:
        return _tables(path, content or b"")
    except (ValueError, configparser.Error):
        return {}


def _tables(path: str, content: bytes) -> dict[str, Table]:
    """Return the tables of a file by their dotted names."""
    text = content.decode("utf-8-sig")
    if path.endswith(".toml"):
        return dict(_flattened(tomllib.loads(text), ""))
    parser = configparser.RawConfigParser()
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections()}


def _flattened(table: Table, prefix: str) -> Iterator[tuple[str, Table]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield f"{prefix}{key}", value
            yield from _flattened(value, f"{prefix}{key}.")


def _words(value: object) -> str:
    """Return a value as one line, whichever way its file writes it."""
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return " ".join(text.lower().split() if isinstance(value, bool) else text.split())


def _moved(path: str, what: str, before: object, after: object) -> Move:
    return moved(Part.SETTINGS, what, before, after, Location(path=path))
