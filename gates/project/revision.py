"""Which state of the project is judged, and on which machine."""

import hashlib
import os
import platform
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from gates import __version__
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.model import FileDigest, Revision
from gates.project.files import files_of
from gates.project.history import History, run_git
from gates.project.permalinks import Web, base_of
from gates.task.task import Task
from gates.words import printable

SUBMODULE = b"160000 "


def observe(task: Task, context: Context) -> Revision:
    """Return the commit, whether the work tree differs from it, and a digest of the task's files."""
    paths = (*task.implementation, *task.tests, task.path)
    files = tuple(digest_file(path, context.root) for path in files_of(paths, context.root))
    whole = hashlib.sha256("".join(f"{file.path}\0{file.sha256}\n" for file in files).encode())
    commit = git(context.root, "rev-parse", "HEAD")
    status = _status(context.root) if commit else None
    hidden = () if status is None else _hidden(context.root, paths, status)
    web = _web(context.root) if status == "" and not hidden else None
    return Revision(
        commit=commit, dirty=None if status is None else bool(status or hidden), hidden=hidden,
        digest=whole.hexdigest(), files=files, web=web.base if web else None,
        submodules=dict(web.submodules) if web else {},
    )  # fmt: skip


def _hidden(root: Path, paths: tuple[str, ...], status: str) -> tuple[str, ...]:
    """Return the files of a task that differ from the commit, and of which git's status says nothing."""
    prefix = git(root, "rev-parse", "--show-prefix") or ""
    told = {row[3:] for row in status.split("\0")} | set(status.split("\0"))  # what was renamed has a row of its own
    return tuple(printable(path) for path in unlike_head(root, paths) if f"{prefix}{path}" not in told)


def web_of(root: Path) -> Web | None:
    """Return where the files of the present commit can be read; nowhere, while the work tree differs from it."""
    return _web(root) if _status(root) == "" else None


def _web(root: Path) -> Web | None:
    commit, remote = git(root, "rev-parse", "HEAD"), git(root, "remote", "get-url", "origin")
    prefix = git(root, "rev-parse", "--show-prefix")
    base = base_of(remote, commit, prefix or "") if remote and commit else None
    return None if base is None else Web(base, _submodules(root))


def _submodules(root: Path) -> dict[str, str | None]:
    """Return where the files under each submodule's folder can be read; a submodule is a repository of its own."""
    found: dict[str, str | None] = {}
    for folder in _submodule_folders(root):
        web = web_of(root / folder) if (root / folder / ".git").exists() else None
        found[folder] = web.base if web else None
        found |= {f"{folder}/{inner}": base for inner, base in (web.submodules if web else {}).items()}
    return found


def _submodule_folders(root: Path) -> list[str]:
    try:
        told = run_git(root, ("ls-files", "--stage", "-z")).stdout
    except EvidenceUnavailable:
        return []
    rows = (row.partition(b"\t") for row in told.split(b"\0") if row.startswith(SUBMODULE))
    return [printable(os.fsdecode(path)) for _, _, path in rows]


def _status(root: Path) -> str | None:
    return _said(root, "status", "--porcelain", "-z", "--untracked-files=normal")


def digest_file(path: Path, base: Path) -> FileDigest:
    """Return a file's path relative to a folder, its SHA-256 and its size."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = file.tell()
    return FileDigest(path=printable(path.relative_to(base).as_posix()), sha256=digest, bytes=size)


def digest_folder(folder: Path) -> tuple[FileDigest, ...]:
    """Return the digest of every file in a folder, in the order of their paths."""
    return tuple(
        digest_file(path, folder) for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()
    )


def environment(context: Context) -> dict[str, str]:
    """Return the machine and the versions that the run took place on."""
    memory = psutil.virtual_memory().total / 1024**3
    return {
        "gates": __version__,
        "interpreter": "the one that runs gates" if context.python == sys.executable else context.python,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": processor(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "memory": f"{memory:.0f} GiB",
    }


def processor() -> str:
    """Return the processor's name as the system gives it."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def git(root: Path, *words: str) -> str | None:
    """Return what git prints, or `None` where there is no git, no repository or no commit."""
    said = _said(root, *words)
    return None if said is None else said.strip()


def _said(root: Path, *words: str) -> str | None:
    try:
        done = run_git(root, words)
    except EvidenceUnavailable:
        return None
    return os.fsdecode(done.stdout) if done.returncode == 0 else None


TIMEOUT_S = 300


def unlike_head(root: Path, paths: Iterable[str]) -> tuple[str, ...]:
    """Return the committed files under some paths that are gone or have another content; nothing without a commit.

    Git is asked with an index made anew: no flag in it, and no time of a file, keeps git from reading what is there.
    """
    asked = [os.path.normpath(path.split("::")[0]) for path in paths]
    with tempfile.TemporaryDirectory() as folder, suppress(EvidenceUnavailable):
        index, prefix = Path(folder, "index"), History(root).prefix
        if run_git(root, ("read-tree", "--no-sparse-checkout", "HEAD"), index=index).returncode == 0:
            words = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=no", "--", *asked)
            rows = os.fsdecode(run_git(root, words, index=index, timeout_s=TIMEOUT_S).stdout).split("\0")
            return tuple(sorted(row[3:].removeprefix(prefix) for row in rows if row))
    return ()
