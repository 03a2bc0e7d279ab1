"""Two states of what configures the gates, pytest and coverage: everything that lets less be seen."""

import configparser
import shlex
import tomllib
from collections.abc import Iterator, Mapping
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
NARROWING = (
    {"-k", "-m", "-p", "-x", "-W", "--deselect", "--ignore", "--ignore-glob", "--maxfail", "--exitfirst"}
    | {"--noconftest", "--lf", "--last-failed", "--sw", "--stepwise", "--co", "--collect-only"}
    | {"--disable-warnings", "--pythonwarnings"}
)
KEEPING = frozenset({"--strict-markers", "--strict-config", "--strict", "--cov-fail-under"})
WEAKER_WARNINGS = ("ignore", "default", "once", "module", "always")
COLLECTING = ("python_files", "python_classes", "python_functions", "norecursedirs")
HIDING = ("omit", "exclude_lines", "exclude_also", "exclude_other_lines", "partial_branches", "partial_also")
MEASURED = ("source", "source_pkgs", "source_dirs")
Files = Mapping[str, bytes]
Table = dict[str, Any]


def compare(before: Files, after: Files) -> Iterator[Move]:
    """Yield what the settings let pass or leave out, and did not before."""
    old, new = _gates(before), _gates(after)
    for key in GATES:
        if old.get(key) != new.get(key):
            yield _moved("pyproject.toml", f"[tool.gates] {key}", old.get(key, "default"), new.get(key, "default"))
    yield from _pytest(*pytest_settings(before), *pytest_settings(after))
    yield from _coverage(before, after)


def unreadable(files: Files) -> Iterator[str]:
    """Name the files of settings that cannot be read."""
    for path, content in files.items():
        try:
            _tables(path, content)
        except (ValueError, configparser.Error) as error:
            yield f"{path}: {' '.join(str(error).split())[:200]}"


def pytest_settings(files: Files) -> tuple[str, Table]:
    """Return the file that pytest takes its settings from, and what it says."""
    for path, section in PYTEST:
        tables = _readable(path, files.get(path))
        found = {k: v for k, v in tables.get(section, {}).items() if k != "ini_options"}
        if found or (path.endswith("pytest.ini") and path in files):
            return path, found
    return "pyproject.toml", {}


def _pytest(old_path: str, old: Table, path: str, new: Table) -> Iterator[Move]:
    """Compare pytest's settings: options that leave tests out, strictness, warnings, and where tests are looked for."""
    if old_path != path and old:
        yield _moved(path, "the file with pytest's settings", old_path, path)
    was, now = options(old.get("addopts")), options(new.get("addopts"))
    yield from _gained(path, "pytest addopts", was, [one for one in now if _head(one) in NARROWING])
    yield from _lost(path, "pytest addopts", [one for one in was if _head(one) in KEEPING], now)
    was, now = _lines(old.get("filterwarnings")), _lines(new.get("filterwarnings"))
    yield from _lost(path, "pytest filterwarnings", [line for line in was if line.startswith("error")], now)
    yield from _gained(path, "pytest filterwarnings", was, [line for line in now if line.startswith(WEAKER_WARNINGS)])
    yield from _turned_off(path, "pytest xfail_strict", old, new)
    if folders := _words(new.get("testpaths")):
        yield from _lost(path, "pytest testpaths", _words(old.get("testpaths")), folders)
    for key in COLLECTING:
        if old.get(key) != new.get(key):
            yield _moved(path, f"pytest {key}", old.get(key, "default"), new.get(key, "default"))


def _gained(path: str, what: str, was: list[str], now: list[str]) -> Iterator[Move]:
    """Yield what lets less be seen and was not there before."""
    yield from (_moved(path, what, "without it", one) for one in now if one not in was)


def _lost(path: str, what: str, was: list[str], now: list[str]) -> Iterator[Move]:
    """Yield what asked for more and is gone."""
    yield from (_moved(path, what, one, "removed") for one in was if one not in now)


def _turned_off(path: str, what: str, old: Table, new: Table) -> Iterator[Move]:
    key = what.split()[-1]
    if _is_true(old.get(key)) and not _is_true(new.get(key)):
        yield _moved(path, what, "true", "false")


def _head(option: str) -> str:
    """Return an option without its value."""
    return option.split("=")[0].split()[0] if option.startswith("--") else option[:2]


def _coverage(before: Files, after: Files) -> Iterator[Move]:
    """Compare what coverage leaves out, and the least that it asks for."""
    (_, old), (path, new) = _coverage_settings(before), _coverage_settings(after)
    for key in HIDING:
        yield from _gained(path, f"coverage {key}", _lines(old.get(key)), _lines(new.get(key)))
    for key in MEASURED:
        if new.get(key):
            yield from _lost(path, f"coverage {key}", _items(old.get(key)), _items(new.get(key)))
    if new.get("include") and not old.get("include"):
        yield _moved(path, "coverage include", "everything", " ".join(_items(new.get("include"))))
    yield from _turned_off(path, "coverage branch", old, new)
    least, now = _number(old.get("fail_under")), _number(new.get("fail_under"))
    if least is not None and (now or 0) < least:
        yield _moved(path, "coverage fail_under", least, "removed" if now is None else now)


def _coverage_settings(files: Files) -> tuple[str, Table]:
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


def options(value: object) -> list[str]:
    """Return pytest's options, each with the word that belongs to it."""
    try:
        words = (
            [str(word) for word in value] if isinstance(value, list) else shlex.split(str(value or ""), comments=True)
        )
    except ValueError:
        words = str(value).split()
    options: list[str] = []
    for word in words:
        if options and not word.startswith("-") and " " not in options[-1] and "=" not in options[-1]:
            options[-1] += f" {word}"
        else:
            options.append(word)
    return options


def _lines(value: object) -> list[str]:
    items = value if isinstance(value, list) else str(value or "").splitlines()
    return [str(item).strip() for item in items if str(item).strip()]


def _items(value: object) -> list[str]:
    """Return the items of a list that coverage reads from lines or between commas."""
    return [item.strip() for line in _lines(value) for item in line.split(",") if item.strip()]


def _words(value: object) -> list[str]:
    return [str(word) for word in value] if isinstance(value, list) else str(value or "").split()


def _is_true(value: object) -> bool:
    return str(value).strip().lower() in {"true", "1", "yes", "on"}


def _number(value: object) -> float | None:
    try:
        return None if value is None else float(str(value))
    except ValueError:
        return None


def _moved(path: str, what: str, before: object, after: object) -> Move:
    return moved(Part.SETTINGS, what, before, after, Location(path=path))
