"""Which state of the project is judged, and on which machine."""

import hashlib
import os
import platform
import re
import sys
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import psutil

from gates import __version__
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.model import FileDigest, Revision
from gates.project.files import files_of
from gates.project.history import run_git
from gates.task.task import Task
from gates.words import printable

SUBMODULE = "160000 "
REMOTE = re.compile(
    r"(?:(?P<scheme>https?|ssh|git)://)?(?:[^@/\s]+@)?(?P<host>[A-Za-z0-9.-]+)(?P<port>:\d+)?"
    r"(?(scheme)/|:(?!/))(?P<path>[^\s]+)"
)


def observe(task: Task, context: Context) -> Revision:
    """Return the commit, whether the work tree differs from it, and a digest of the task's files."""
    paths = (*task.implementation, *task.tests, task.path)
    files = tuple(digest_file(path, context.root) for path in files_of(paths, context.root))
    whole = hashlib.sha256("".join(f"{file.path}\0{file.sha256}\n" for file in files).encode())
    commit = git(context.root, "rev-parse", "HEAD")
    status = _status(context.root) if commit else None
    web, dirty = _web(context.root) if status == "" else None, None if status is None else bool(status)
    return Revision(commit=commit, dirty=dirty, digest=whole.hexdigest(), files=files, web=web)


def web_of(root: Path) -> str | None:
    """Return where the files of the present commit can be read; nowhere, while the work tree differs from it."""
    return _web(root) if _status(root) == "" else None


def _web(root: Path) -> str | None:
    """Return the address that a path of the commit follows; nothing where some files are of submodules."""
    commit, remote = git(root, "rev-parse", "HEAD"), git(root, "remote", "get-url", "origin")
    files = git(root, "ls-files", "--stage", "-z") if remote and commit else None
    if not remote or not commit or files is None or any(row.startswith(SUBMODULE) for row in files.split("\0")):
        return None
    return address_of(remote, commit, git(root, "rev-parse", "--show-prefix") or "")


def unlike_commit(root: Path) -> dict[str, tuple[int, int]]:
    """Return when each file, or new folder, that is not as in the commit was written, and its size; 0 of none."""
    found, lines = {}, (_status(root) or "").split("\0")
    above = git(root, "rev-parse", "--show-prefix") if any(lines) else None
    for path in (line[3:].removeprefix(above or "") for line in lines if line[3:]):
        found[printable(path)] = (0, 0)
        with suppress(OSError):
            seen = (root / path).lstat()
            found[printable(path)] = (seen.st_mtime_ns, seen.st_size)
    return found


def _status(root: Path) -> str | None:
    return git(root, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal")


def digest_file(path: Path, base: Path) -> FileDigest:
    """Return a file's path relative to a folder, its SHA-256 and its size."""
    with path.open("rb") as file:
        digest, size = hashlib.file_digest(file, "sha256").hexdigest(), file.tell()
    return FileDigest(path=printable(path.relative_to(base).as_posix()), sha256=digest, bytes=size)


def digest_folder(folder: Path) -> tuple[FileDigest, ...]:
    """Return the digest of every file in a folder, in the order of their paths."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())
    return tuple(digest_file(path, folder) for path in files)


def environment(context: Context) -> dict[str, str]:
    """Return the machine and the versions that the run took place on."""
    return {
        "gates": __version__,
        "interpreter": "the one that runs gates" if context.python == sys.executable else context.python,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": processor(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "memory": f"{psutil.virtual_memory().total / 1024**3:.0f} GiB",
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
    with suppress(EvidenceUnavailable):
        done = run_git(root, *words)
        return os.fsdecode(done.stdout).rstrip() if done.returncode == 0 else None  # a status begins with a blank
    return None


def address_of(remote: str, commit: str, prefix: str = "") -> str | None:
    """Return the address for a remote such as `git@host:owner/name.git`; a name and password in it are left out."""
    if (found := REMOTE.fullmatch(remote)) is None:
        return None
    port = found["port"] or "" if found["scheme"] in {"http", "https"} else ""
    host, path = found["host"] + port, found["path"].strip("/").removesuffix(".git")
    middle = "/-/blob/" if "gitlab" in host else "/src/" if "bitbucket" in host else "/blob/"
    return f"https://{host}/{quote(path)}{middle}{commit}/{quote(prefix)}" if "/" in path else None
