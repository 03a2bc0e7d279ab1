"""Which state of the project is judged, and on which machine."""

import hashlib
import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, urlsplit

import psutil

from gates import __version__
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.model import FileDigest, Revision
from gates.project.files import files_of
from gates.project.history import History, run_git
from gates.task.task import Task
from gates.words import printable

SUBMODULE = "160000 "
SCP = re.compile(r"(?:[^@/\s]+@)?(?P<host>[A-Za-z0-9.-]+):(?!/)(?P<path>[^\s]+)")
HOST = re.compile(r"[A-Za-z0-9.-]+(?::[0-9]+)?")


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
        digest=whole.hexdigest(), files=files, web=web,
    )  # fmt: skip


def _hidden(root: Path, paths: tuple[str, ...], status: str) -> tuple[str, ...]:
    """Return the files of a task that differ from the commit, and of which git's status says nothing."""
    prefix = git(root, "rev-parse", "--show-prefix") or ""
    told = {row[3:] for row in status.split("\0")} | set(status.split("\0"))  # what was renamed has a row of its own
    return tuple(printable(path) for path in unlike_head(root, paths) if f"{prefix}{path}" not in told)


def web_of(root: Path) -> str | None:
    """Return where the files of the present commit can be read; nowhere, while the work tree differs from it."""
    return _web(root) if _status(root) == "" else None


def _web(root: Path) -> str | None:
    """Return the address that a path of the commit follows; nothing where some files are of submodules."""
    commit, remote = git(root, "rev-parse", "HEAD"), git(root, "remote", "get-url", "origin")
    prefix, files = git(root, "rev-parse", "--show-prefix"), _said(root, "ls-files", "--stage", "-z")
    mixed = files is None or any(row.startswith(SUBMODULE) for row in files.split("\0"))
    return address_of(remote, commit, prefix or "") if remote and commit and not mixed else None


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


def address_of(remote: str, commit: str, prefix: str = "") -> str | None:
    """Return the address for a remote such as `git@host:owner/name.git`; a name and password in it are left out."""
    found = _host_and_path(remote)
    if found is None:
        return None
    host, path = found
    path = path.strip("/").removesuffix(".git")
    if not HOST.fullmatch(host) or path.count("/") < 1:
        return None
    middle = "/-/blob/" if "gitlab" in host else "/src/" if "bitbucket" in host else "/blob/"
    return f"https://{host}/{quote(path)}{middle}{commit}/{quote(prefix)}"


def _host_and_path(remote: str) -> tuple[str, str] | None:
    if "://" in remote:
        try:
            parts = urlsplit(remote)
            port = f":{parts.port}" if parts.port and parts.scheme in {"http", "https"} else ""
        except ValueError:
            return None
        if parts.scheme not in {"http", "https", "ssh", "git"} or not parts.hostname:
            return None
        return parts.hostname + port, parts.path
    scp = SCP.fullmatch(remote)
    return (scp["host"], scp["path"]) if scp else None
