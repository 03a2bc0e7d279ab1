"""Folders with a repository of their own that borrows the project's objects: a revision laid out, a copy's history.

Nothing is written into the project's repository: no work tree is registered, no index or branch is touched, no hook is
run. The folder has a `.git`, so that what asks git for a version finds one.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from gates.errors import EvidenceUnavailable
from gates.project.history import run_git

TIMEOUT_S = 300
SUBMODULE = b"160000"
DEEPEST = 5
OWN = ("-c", "gc.auto=0", "-c", "core.autocrlf=input", "-c", "advice.detachedHead=false")


def lay_out(repository: Path, commit: str, target: Path) -> tuple[str, ...]:
    """Lay out a commit of a repository; return the submodules that are not here and so are empty folders.

    A submodule is laid out from the project's own clone of it. Raises `EvidenceUnavailable` with what git says.
    """
    return tuple(_laid_out(repository, commit, target, DEEPEST))


def _laid_out(repository: Path, commit: str, target: Path, deep: int) -> Iterator[str]:
    _borrow(repository, target, "refs/tags")
    _ask(target, "checkout", "--quiet", "--force", "--detach", commit)
    for path, pinned in _submodules(target, commit):
        clone = repository / path
        if deep and (clone / ".git").exists() and _has(clone, pinned):
            yield from (f"{path}/{inner}" for inner in _laid_out(clone, pinned, target / path, deep - 1))
        else:
            yield path


def give_history(repository: Path, copy: Path) -> None:
    """Give a copy of a work tree the history of its repository: branches, tags, HEAD and index, and no remote.

    A folder that is no top of a work tree has none to give. Raises `EvidenceUnavailable` with what git says.
    """
    if not (repository / ".git").exists() or _run(repository, "rev-parse", "--show-prefix").stdout.strip():
        return
    _borrow(repository, copy, "refs")
    head = _run(repository, "symbolic-ref", "--quiet", "HEAD").stdout
    if head:
        _ask(copy, "symbolic-ref", "HEAD", os.fsdecode(head).strip())
    else:
        (copy / ".git" / "HEAD").write_text(_ask(repository, "rev-parse", "HEAD") + "\n", encoding="utf-8")
    index = _run(repository, "ls-files", "--stage", "-z").stdout
    run_git(copy, ("update-index", "-z", "--index-info"), options=OWN, given=index, timeout_s=TIMEOUT_S)


def _borrow(repository: Path, target: Path, refs: str) -> None:
    """Make a repository that has the project's objects and some of its references, packed into one file."""
    objects = Path(_ask(repository, "rev-parse", "--path-format=absolute", "--git-path", "objects"))
    common = Path(_ask(repository, "rev-parse", "--path-format=absolute", "--git-common-dir"))
    form = _ask(repository, "rev-parse", "--show-object-format")
    target.mkdir(parents=True, exist_ok=True)
    _ask(target, "init", "--quiet", "--template=", f"--object-format={form}", ".")
    own = target / ".git"
    (own / "objects" / "info").mkdir(parents=True, exist_ok=True)
    (own / "objects" / "info" / "alternates").write_bytes(os.fsencode(objects) + b"\n")
    if (common / "shallow").is_file():
        (own / "shallow").write_bytes((common / "shallow").read_bytes())
    if (common / "lfs").is_dir():
        _ask(target, "config", "lfs.storage", str(common / "lfs"))
    told = _ask(repository, "for-each-ref", "--sort=refname", "--format=%(objectname) %(refname)", refs)
    (own / "packed-refs").write_text("".join(f"{line}\n" for line in told.splitlines()), encoding="utf-8")


def _submodules(folder: Path, commit: str) -> Iterator[tuple[str, str]]:
    for row in _run(folder, "ls-tree", "-r", "-z", "--full-tree", commit).stdout.split(b"\0"):
        head, _, path = row.partition(b"\t")
        if head.startswith(SUBMODULE):
            yield os.fsdecode(path), head.split(b" ")[2].decode()


def _has(repository: Path, commit: str) -> bool:
    return _run(repository, "cat-file", "-e", f"{commit}^{{commit}}").returncode == 0


def _ask(folder: Path, *words: str) -> str:
    done = _run(folder, *words)
    if done.returncode != 0:
        said = [line for line in done.stderr.decode(errors="backslashreplace").splitlines() if line.strip()]
        raise EvidenceUnavailable(f"`git {words[0]}` cannot lay out a copy: {said[-1] if said else 'no word'}")
    return os.fsdecode(done.stdout).strip("\n")


def _run(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    return run_git(folder, words, options=OWN, timeout_s=TIMEOUT_S)
