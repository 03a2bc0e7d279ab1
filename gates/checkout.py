"""A revision laid out in a folder of its own, by a repository of its own that borrows the project's objects.

Nothing is written into the project's repository: no work tree is registered, no index or branch is touched, no hook is
run. The folder has a `.git`, so that what asks git for a version finds one.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from gates.errors import EvidenceUnavailable
from gates.history import run_git

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
    objects = Path(_ask(repository, "rev-parse", "--path-format=absolute", "--git-path", "objects"))
    common = Path(_ask(repository, "rev-parse", "--path-format=absolute", "--git-common-dir"))
    target.mkdir(parents=True, exist_ok=True)
    form = "sha256" if len(commit) == 64 else "sha1"
    _ask(target, "init", "--quiet", "--template=", f"--object-format={form}", ".")
    own = target / ".git"
    (own / "objects" / "info").mkdir(parents=True, exist_ok=True)
    (own / "objects" / "info" / "alternates").write_bytes(os.fsencode(objects) + b"\n")
    if (common / "shallow").is_file():
        (own / "shallow").write_bytes((common / "shallow").read_bytes())
    if (common / "lfs").is_dir():
        _ask(target, "config", "lfs.storage", str(common / "lfs"))
    (own / "packed-refs").write_text(_tags(repository), encoding="utf-8")
    _ask(target, "checkout", "--quiet", "--force", "--detach", commit)
    for path, pinned in _submodules(target, commit):
        clone = repository / path
        if deep and (clone / ".git").exists() and _has(clone, pinned):
            yield from (f"{path}/{inner}" for inner in _laid_out(clone, pinned, target / path, deep - 1))
        else:
            yield path


def _tags(repository: Path) -> str:
    """Return the tags as a file of packed references: versions are often derived from them."""
    told = _ask(repository, "for-each-ref", "--sort=refname", "--format=%(objectname) %(refname)", "refs/tags")
    return "".join(f"{line}\n" for line in told.splitlines())


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
        raise EvidenceUnavailable(f"`git {words[0]}` cannot lay the baseline out: {said[-1] if said else 'no word'}")
    return os.fsdecode(done.stdout).strip("\n")


def _run(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    return run_git(folder, words, options=OWN, timeout_s=TIMEOUT_S)
