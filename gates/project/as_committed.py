"""Whether the files of a task are those of the commit, by their contents: what git was told of them has no say.

`git status` goes by times and sizes, and leaves out what it was told to take for unchanged (`--assume-unchanged`,
`--skip-worktree`, `core.trustctime`, a file monitor).
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from gates.errors import EvidenceUnavailable
from gates.project.files import is_among
from gates.project.history import Blob, History, name_of, run_git

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
    return tuple(sorted({*_unlike(history, root, {p: b for p, b in files.items() if is_among(p, asked)}),
                         *_in_submodules(root, files, asked)}))  # fmt: skip


def _unlike(history: History, root: Path, files: Mapping[str, Blob]) -> Iterator[str]:
    """Yield the files that have not the content of the commit, neither as they are nor as git would put them in."""
    other = {}
    for path, blob in files.items():
        if blob.plain or blob.link:
            found = name_of(root / path, blob.oid)
            if found is None or (found != blob.oid and blob.link):
                yield path
            elif found != blob.oid:
                other[path] = blob
    filtered = _filtered(history, list(other))
    yield from (path for path, blob in other.items() if filtered.get(path, blob.oid) != blob.oid)


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
        if is_among(folder, asked):
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
