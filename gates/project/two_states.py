"""The project as the base has it and as it lies in the work tree: which revision that is, and what differs."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from gates.errors import EvidenceUnavailable
from gates.project.files import files_of, is_under
from gates.project.history import MAX_BLOB_BYTES, Blob, History, object_name

ORIGIN, OWN = "refs/remotes/origin", "refs/heads"
GUESSES = (f"{ORIGIN}/HEAD", f"{ORIGIN}/main", f"{ORIGIN}/master", f"{OWN}/main", f"{OWN}/master")
REMEDY = "fetch it (`git fetch --unshallow`, or fetch-depth: 0 in the checkout), or name another with --base"


@dataclass(frozen=True)
class Base:
    """The revision compared with: its name and its commit."""

    name: str
    commit: str


def base_of(history: History, asked: str | None) -> Base:
    """Return the merge base of HEAD and the base branch; raise `EvidenceUnavailable` with what to do where none is."""
    head = history.commit("HEAD")
    if head is None:
        raise EvidenceUnavailable("the repository has no commit yet, so there is no earlier bar")
    name, tip = _tip(history, asked)
    base = history.merge_base(head, tip)
    if base is None:
        cut = "the history is shallow" if history.shallow else "they have no common commit"
        raise EvidenceUnavailable(f"HEAD and {name} have no merge base: {cut}; {REMEDY}")
    if base == head and name == "HEAD" and history.shallow:  # where it came from is not here
        raise EvidenceUnavailable(f"the history is shallow and lacks what came before HEAD; {REMEDY}")
    return Base(name, base)


def _tip(history: History, asked: str | None) -> tuple[str, str]:
    """Return the name and the commit of the base branch; one that was named must be there."""
    target = os.environ.get("GITHUB_BASE_REF", "")
    named = (asked,) if asked else (f"refs/remotes/origin/{target}", f"refs/heads/{target}") if target else ()
    for name in named:
        if commit := history.commit(name):
            return _short(name), commit
    if named:
        raise EvidenceUnavailable(f"there is no revision {asked or target!r} to compare with; {REMEDY}")
    there = history.refs(GUESSES)
    for name in GUESSES:
        if name in there:
            return _short(name), there[name]
    head = history.commit("HEAD")
    assert head is not None
    return "HEAD", head


def _short(name: str) -> str:
    return name.removeprefix("refs/remotes/").removeprefix("refs/heads/")


class TwoStates:
    """A commit and the work tree, by path relative to the project."""

    def __init__(self, history: History, commit: str, root: Path) -> None:
        self._history = history
        self._commit = commit
        self._root = root
        self._prefix = history.prefix
        self._tree = history.tree(commit, self._prefix)
        self.skipped: list[str] = []
        self._same: dict[str, bool] = {}

    def has(self, path: str) -> bool:
        """Return whether the commit has a plain file of this path."""
        return path in self._tree and self._tree[path].plain

    @cached_property
    def gone(self) -> frozenset[str]:
        """Return the paths that the commit has and the work tree has not."""
        return frozenset(path for path in self._tree if not os.path.lexists(self._root / path))

    def before(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Return the contents that files have in the commit."""
        blobs = {path: self._tree[path] for path in paths if self.has(path)}
        same = {self._tree[path].oid: self._now(path) for path in blobs if self._is_same(path)}
        contents = same | self._history.read(blob for blob in blobs.values() if blob.oid not in same)
        found = {path: content for path, blob in blobs.items() if (content := contents.get(blob.oid)) is not None}
        self.skipped += [f"{path} (too large, at the base)" for path in blobs.keys() - found.keys()]
        return found

    def named(self, paths: Iterable[str]) -> tuple[dict[str, bytes], dict[str, bytes]]:
        """Return the contents of some files in the commit and in the work tree, for those that are there."""
        paths = tuple(paths)
        now = {path: content for path in paths if (content := self._now(path)) is not None}
        return self.before(paths), now

    def changed(
        self, folders: Iterable[str], suffixes: str | tuple[str, ...]
    ) -> tuple[dict[str, bytes], dict[str, bytes]]:
        """Return the contents of the files under some paths that differ, in the commit and in the work tree."""
        folders = tuple(dict.fromkeys(folder.split("::")[0] for folder in folders))
        found = files_of(folders, self._root)
        paths = {os.fspath(path.relative_to(self._root).as_posix()) for path in found if path.name.endswith(suffixes)}
        old = {p for p in self._tree if p.endswith(suffixes) and any(is_under(p, folder) for folder in folders)}
        now = {p: c for p in sorted(paths) if not self._is_same(p) and (c := self._now(p)) is not None}
        return self.before(p for p in sorted(old) if not self._is_same(p)), now

    def _is_same(self, path: str) -> bool:
        if path not in self._same:
            self._same[path] = self._compared(path)
        return self._same[path]

    def _compared(self, path: str) -> bool:
        blob: Blob | None = self._tree.get(path)
        if blob is None or not blob.plain:
            return False
        content = self._now(path)
        return content is not None and object_name(content, blob.oid) == blob.oid

    def _now(self, path: str) -> bytes | None:
        """Return a file of the work tree, or `None` for what is not there, a link, no file, or too large."""
        file = self._root / path
        try:
            if file.is_symlink() or not file.is_file():
                return None
            if file.stat().st_size > MAX_BLOB_BYTES:
                self.skipped.append(f"{path} (too large)")
                return None
            return file.read_bytes()
        except OSError as error:
            self.skipped.append(f"{path} ({error.strerror or error})")
            return None
