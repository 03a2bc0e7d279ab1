"""Whether the files of a task are those of the commit, by their contents: what git was told of them has no say.

`git status` goes by times and sizes, and leaves out what it was told to take for unchanged (`--assume-unchanged`,
`--skip-worktree`, `core.trustctime`, a file monitor).
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from gates.errors import EvidenceUnavailable
from gates.project.history import Blob, History, run_git

CHUNK = 1024 * 1024
TIMEOUT_S = 300


def unlike_head(root: Path, paths: Iterable[str]) -> tuple[str, ...]:
    """Return the committed files under some paths that are gone or have another content; nothing without a commit."""
    try:
        history = History(root)
        head = history.commit("HEAD")
        files = {} if head is None else history.tree(head)
    except EvidenceUnavailable:
        return ()
    asked = [os.path.normpath(path.split("::")[0]) for path in paths]
    return tuple(sorted({*_unlike(history, root, {p: b for p, b in files.items() if _is_among(p, asked)}),
                         *_in_submodules(root, files, asked)}))  # fmt: skip


def _is_among(path: str, asked: Iterable[str]) -> bool:
    return any(one in {".", path} or path.startswith(f"{one}/") for one in asked)


def _unlike(history: History, root: Path, files: Mapping[str, Blob]) -> Iterator[str]:
    """Yield the files that have not the content of the commit, neither as they are nor as git would put them in."""
    other = {}
    for path, blob in files.items():
        if blob.plain or blob.link:
            found = _name(root / path, blob)
            if found is None or (found != blob.oid and blob.link):
                yield path
            elif found != blob.oid:
                other[path] = blob
    filtered = _filtered(history, list(other))
    yield from (path for path, blob in other.items() if filtered.get(path, blob.oid) != blob.oid)


def _name(path: Path, blob: Blob) -> str | None:
    """Return the name that git gives the content of a file, or the target of a link; `None` where there is none."""
    digest = hashlib.sha256() if len(blob.oid) == 64 else hashlib.sha1(usedforsecurity=False)
    try:
        if path.is_symlink():
            target = os.fsencode(path.readlink())
            digest.update(b"blob %d\0%s" % (len(target), target))
            return digest.hexdigest()
        with path.open("rb") as file:
            digest.update(b"blob %d\0" % os.fstat(file.fileno()).st_size)
            while chunk := file.read(CHUNK):
                digest.update(chunk)
    except OSError:
        return None
    return digest.hexdigest()


def _filtered(history: History, paths: list[str]) -> dict[str, str]:
    """Return the names of files as git would add them: with its line ends, encodings and filters, such as Git LFS.

    Where a filter does not work here, nothing is known of them.
    """
    plain = [path for path in paths if "\n" not in path]
    if not plain:
        return {}
    given = b"".join(os.fsencode(f"{history.prefix}{path}\n") for path in plain)
    try:
        done = run_git(history.top, ("hash-object", "--stdin-paths"), given=given, timeout_s=TIMEOUT_S)
    except EvidenceUnavailable:
        return {}
    names = done.stdout.decode("ascii", "replace").split()
    return dict(zip(plain, names, strict=True)) if done.returncode == 0 and len(names) == len(plain) else {}


def _in_submodules(root: Path, files: Mapping[str, Blob], asked: list[str]) -> Iterator[str]:
    """Yield what differs in the submodules that some paths lie in or hold, as far as these are there."""
    for folder, blob in files.items():
        if blob.plain or blob.link or not (root / folder / ".git").exists():
            continue
        inner = [path[len(folder) + 1 :] for path in asked if path.startswith(f"{folder}/")]
        if _is_among(folder, asked):
            inner = ["."]
        if not inner:
            continue
        try:
            moved = History(root / folder).commit("HEAD") != blob.oid
        except EvidenceUnavailable:
            continue
        if moved:
            yield folder
        yield from (f"{folder}/{path}" for path in unlike_head(root / folder, inner))
