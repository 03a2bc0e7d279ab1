"""The baseline of a regression: which revision it is, and what the candidate changed since."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gates.context import Context
from gates.measuring.taken import frozen_digest
from gates.project.files import files_of, is_among
from gates.project.history import Blob, History, name_of
from gates.project.two_states import base_of
from gates.task.task import Task

PROSE = (".md", ".rst")


@dataclass(frozen=True)
class Baseline:
    """A revision, the files of the project that differ from it here, and whether it has the task's implementation.

    `code` is the digest of that: another commit with the same is no other baseline.
    """

    name: str
    commit: str
    changed: tuple[str, ...]
    implemented: bool
    code: str


def find(task: Task, history: History, context: Context) -> Baseline:
    """Return the merge base with the base branch; on that branch itself, with nothing changed, the commit before."""
    found = base_of(history, context.base)
    baseline = _compared(task, history, context, found.name, found.commit)
    if not baseline.changed and found.before and not context.base:
        return _compared(task, history, context, f"{found.name}~1", found.before)
    return baseline


def _compared(task: Task, history: History, context: Context, name: str, commit: str) -> Baseline:
    tree = history.tree(commit)
    code = sorted((path, blob.oid) for path, blob in tree.items() if is_among(path, task.implementation))
    return Baseline(
        name=name, commit=commit, changed=tuple(sorted(set(_changed(task, tree, context.root)))),
        implemented=bool(code), code=frozen_digest(code),
    )  # fmt: skip


def _changed(task: Task, tree: dict[str, Blob], root: Path) -> Iterator[str]:
    """Yield what may make a difference: all but tests, prose and the task's own file."""
    for path, blob in tree.items():
        if not _is_idle(path, task) and not _is_same(root / path, blob):
            yield path
    for file in files_of(task.implementation, root):
        if (path := file.relative_to(root).as_posix()) not in tree and not _is_idle(path, task):
            yield path


def _is_idle(path: str, task: Task) -> bool:
    if is_among(path, task.implementation):
        return False
    return path.endswith(PROSE) or path == task.path or is_among(path, task.tests)


def _is_same(path: Path, blob: Blob) -> bool:
    """Return whether a file here has the content of a blob; of a submodule that is never known."""
    return (blob.plain or blob.link) and blob.link == path.is_symlink() and name_of(path, blob.oid) == blob.oid
