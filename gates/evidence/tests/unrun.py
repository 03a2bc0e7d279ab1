"""The tests that a marker, written anywhere in the project, gives to a criterion of a task, and that did not run."""

import os
from collections.abc import Iterator
from pathlib import Path

from gates.code.sources import Sources
from gates.code.syntax import Unparsed
from gates.context import Context
from gates.evidence.tests.marked import WrittenTest, written_in
from gates.evidence.tests.test_records import ELSEWHERE, Event, Unrun
from gates.project.files import is_aside
from gates.task.task import Task

MARKER = b"criterion"


def unrun(events: list[Event], context: Context, task: Task) -> Iterator[Unrun]:
    """Yield each that was neither planned nor deselected; where a file could not be read, pytest says so itself."""
    told = [event for event in events if event["event"] in {"planned", "deselected"}]
    names = {(os.path.realpath(event["file"]), *event["chain"], event["name"]) for event in told}
    lines = {(os.path.realpath(context.root / event["path"]), event["line"]) for event in told}
    why = _Reasons(events, context, task)
    sources = Sources(context.root)
    for path in _marking(context.root, task):
        file = os.path.realpath(path)
        for test in _tests_in(path, sources):
            criteria = tuple(dict.fromkeys(_criteria_of(test, task)))
            first, last = test.location.line or 1, test.location.last_line or 1
            if not criteria or test.promise or (file, *test.id.split("::")[1:]) in names:
                continue
            if any((file, line) in lines for line in range(first, last + 1)):
                continue  # another class inherits it
            if reason := why.of(test, path):
                yield Unrun(id=test.id, location=test.location, criteria=criteria, why=reason)


class _Reasons:
    """Why tests did not run, as far as the run tells."""

    def __init__(self, events: list[Event], context: Context, task: Task) -> None:
        self._context = context
        self._task = task
        self._failed = {event["id"].split("::")[0] for event in events if event["event"] == "collect_failed"}
        self._skipped = {event["id"]: event["message"] for event in events if event["event"] == "collect_skipped"}
        self._heard = {event["id"].split("::")[0] for event in events if event.get("id")}

    def of(self, test: WrittenTest, path: Path) -> str:
        """Return why, or nothing where something else says so."""
        shown = self._context.shown(path)
        if shown in self._failed:
            return ""
        if not self._is_asked_for(test.id, path):
            return "" if self._task.only else ELSEWHERE
        if shown in self._skipped:
            return f"skipped as a whole: {self._skipped[shown]}"
        return "never planned" if shown in self._heard else "never collected"

    def _is_asked_for(self, test_id: str, path: Path) -> bool:
        for asked in self._task.tests:
            file, _, name = asked.rstrip("/").partition("::")
            if name and (test_id == asked or test_id.startswith(f"{asked}::")):
                return True
            if not name and path.is_relative_to((self._context.root / file).resolve()):
                return True
            if not name and path.is_relative_to(self._context.root / file):
                return True
        return False


def _criteria_of(test: WrittenTest, task: Task) -> Iterator[str]:
    for marker in test.markers:
        named, _, criterion = (marker.names or "").partition("/")
        if named == task.id and not marker.written and any(one.id == criterion for one in task.criteria):
            yield f"{task.id}/{criterion}"


def _tests_in(path: Path, sources: Sources) -> list[WrittenTest]:
    try:
        return [*written_in(sources.module(path, ""))]
    except (Unparsed, RecursionError):
        return []


def _marking(root: Path, task: Task) -> Iterator[Path]:
    """Yield the Python files of the project that speak of criteria, those of other projects inside of it left out."""
    for here, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not is_aside(name) and not _is_other(Path(here, name), task))
        for name in sorted(names):
            path = Path(here, name)
            if name.endswith(".py") and not is_aside(name) and path.is_file() and MARKER in path.read_bytes():
                yield path


def _is_other(folder: Path, task: Task) -> bool:
    """Return whether a folder is an environment, a checkout or a project of its own."""
    return any((folder / name).exists() for name in ("pyvenv.cfg", "conda-meta", ".git", task.path)) or (
        folder.name in {"node_modules", "site-packages"}
    )
