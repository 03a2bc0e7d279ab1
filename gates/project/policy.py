"""The policy of another revision, laid out as it lies there: what judges a change must not be what the change says."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from gates import config
from gates.errors import EvidenceUnavailable, UsageError
from gates.model import PolicyRevision
from gates.project.files import is_among
from gates.project.history import Blob, History
from gates.task import loading
from gates.task.task import Task
from gates.words import printable

SETTINGS, TEMPLATES = "pyproject.toml", "reports/templates"


class Policy(NamedTuple):
    """Where the policy's files lie, what its settings are, and which revision it is of, if not of the work tree."""

    root: Path
    settings: config.Settings
    at: PolicyRevision | None = None


def found_at(root: Path, revision: str, option: str) -> tuple[History, str]:
    """Return the history, and the commit of a revision that was asked for; raise `UsageError` where there is none."""
    try:
        history = History(root)
        if commit := history.commit(revision):
            history.tree(commit)
    except EvidenceUnavailable as error:
        raise UsageError(f"{option} {revision}: {error}") from error
    if commit is None:
        raise UsageError(f"{option} {revision}: there is no such revision; fetch it, or name another")
    return history, commit


@contextmanager
def judging(root: Path, settings: config.Settings, revision: str | None, *more: str) -> Iterator[Policy]:
    """Yield the policy that judges: the project's own, or that of a revision, laid out with what lies under `more`."""
    if revision is None:
        yield Policy(root, settings)
        return
    history, commit = found_at(root, revision, "--policy-from")
    tree = history.tree(commit)
    with tempfile.TemporaryDirectory(prefix="gates-policy-") as folder:
        home = Path(folder).resolve()
        _lay_out(history, {SETTINGS: tree[SETTINGS]} if SETTINGS in tree else {}, home)
        try:
            settings = config.load(home)
        except UsageError as error:
            raise UsageError(f"at {revision}: {str(error).replace(f'{home}/', '')}") from error
        folders = tuple(PurePosixPath(each).as_posix() for each in (settings.tasks, settings.rules, TEMPLATES, *more))
        if astray := [path for path in folders if path in tree and not tree[path].plain]:
            why = "is a link or a submodule there, which is not followed"
            raise UsageError(f"--policy-from {revision}: {astray[0]} {why}")
        _lay_out(history, {path: blob for path, blob in tree.items() if blob.plain and is_among(path, folders)}, home)
        yield Policy(home, settings, PolicyRevision(revision=printable(revision), commit=commit))


class TaskAtBase(NamedTuple):
    """A task as a commit has it, the settings there, and why it could not be read, if so."""

    task: Task | None
    settings: config.Settings
    unread: str = ""


@lru_cache(maxsize=8)  # several checks of a run ask, and a commit stays as it is
def task_at_base(name: str, path_now: str, root: Path, commit: str) -> TaskAtBase:
    """Find the task of the same id at a commit; then the one of the same path."""
    try:
        with judging(root, config.Settings(), commit, path_now) as base:
            try:
                path = loading.find(name, base.root / base.settings.tasks, base.root)
            except UsageError:
                path = base.root / path_now
            return TaskAtBase(loading.load(path, base.root) if path.is_file() else None, base.settings)
    except UsageError as error:
        if isinstance(error.__cause__, EvidenceUnavailable):
            raise error.__cause__ from error
        said = str(error).splitlines()[0].removeprefix(f"--policy-from {commit}: ")
        return TaskAtBase(None, config.Settings(), f"{said} (at the base)")


def _lay_out(history: History, blobs: dict[str, Blob], home: Path) -> None:
    """Write files where they lie in the revision; a link, or a file too large for any policy, is left out."""
    try:
        contents = history.read(blobs.values())
    except EvidenceUnavailable as error:
        raise UsageError(str(error)) from error
    for path, blob in blobs.items():
        if blob.oid in contents:
            target = home / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(contents[blob.oid])
