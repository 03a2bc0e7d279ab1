"""Data that tests read and that the commit does not have: elsewhere, the same commit has another verdict."""

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from gates.context import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.tests.test_records import Event
from gates.project.history import History
from gates.task.task import Task

HIDDEN = (".", "__")  # caches, as of pytest and Python


def untracked_data(events: Iterable[Event], task: Task, context: Context) -> tuple[str, ...]:
    """Return the files beside the task's tests that were read, lay there before the run, and are not committed."""
    events = list(events)
    begun = min((event["time"] for event in events if event["event"] == "start"), default=None)
    read = {path for event in events if event["event"] == "read" for path in event["paths"]}
    tests = [context.root / path.split("::")[0] for path in task.tests]
    folders = [path if path.is_dir() else path.parent for path in tests]
    inside = sorted(path for path in map(Path, read) if any(path.is_relative_to(folder) for folder in folders))
    if begun is None or not inside:
        return ()
    try:
        history = History(context.root)
        commit = history.commit("HEAD")
        tree = history.tree(commit) if commit else None
    except EvidenceUnavailable:
        return ()
    return tuple(shown for path in inside if tree is not None and (shown := _untracked(path, tree, begun, context)))


def _untracked(path: Path, tree: Iterable[str], begun: float, context: Context) -> str:
    """Return a file as reports name it, where the commit has neither it nor the submodule that it lies in."""
    shown = PurePosixPath(context.shown(path))
    known = any(str(part) in tree for part in (shown, *shown.parents))
    if known or any(part.startswith(HIDDEN) for part in shown.parts) or not path.is_file():
        return ""
    return "" if path.stat().st_ctime >= begun else str(shown)
