"""What is known from the last time: the facts of files and tasks that have not changed since.

It only saves time: it lies outside of the project, an unreadable file of it is as good as none, and no verdict of
`gates run` reads it.
"""

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError

from gates import __version__
from gates.model import Model
from gates.project.files import cache_folder

FORM = 1
M = TypeVar("M", bound=Model)
Stamp = tuple[int, int, int, int] | None  # size, mtime, ctime (both in ns), inode; `None` for a file that is not there


class _Entry(BaseModel, Generic[M]):
    rests_on: dict[str, Stamp]
    facts: M


class _File(BaseModel, Generic[M]):
    head: str
    entries: dict[str, _Entry[M]]


class Stamps:
    """The state of files, each asked for once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, Stamp] = {}

    def of(self, path: str) -> Stamp:
        """Return the stamp of a path relative to the project."""
        if path not in self._known:
            try:
                found = os.stat(self._root / path)  # noqa: PTH116  # called for every file
            except OSError:
                self._known[path] = None
            else:
                self._known[path] = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
        return self._known[path]


class Known(Generic[M]):
    """Facts of one kind by name, each with the files that it rests on."""

    def __init__(
        self, kind: type[M], name: str, root: Path, stamps: Stamps, *, made_by: str, fresh: bool = False
    ) -> None:
        place = hashlib.sha256(str(root).encode(errors="surrogatepass")).hexdigest()[:16]
        self._path = cache_folder() / "trace" / f"{place}-{name}.json"
        self._head = f"{FORM} {__version__} {made_by}"
        self._entry = _Entry[kind]  # type: ignore[valid-type]  # a class made for this kind
        self._file = _File[kind]  # type: ignore[valid-type]  # the same
        self._stamps = stamps
        self._old: dict[str, _Entry[M]] = {} if fresh else self._read()
        self._new: dict[str, _Entry[M]] = {}
        self._changed = False

    def get(self, name: str) -> M | None:
        """Return what is known under a name, if none of the files that it rests on has changed."""
        entry = self._old.get(name)
        if entry is None or any(self._stamps.of(path) != stamp for path, stamp in entry.rests_on.items()):
            return None
        self._new[name] = entry
        return entry.facts

    def put(self, name: str, facts: M, rests_on: list[str]) -> None:
        """Keep facts for the next time."""
        self._new[name] = self._entry(rests_on={path: self._stamps.of(path) for path in rests_on}, facts=facts)
        self._changed = True

    def save(self) -> None:
        """Write what was asked for this time, whole or not at all; a folder that cannot be written to is no error."""
        if not self._changed and self._new.keys() == self._old.keys():
            return
        file = self._file(head=self._head, entries=self._new)
        with suppress(OSError, PydanticSerializationError):  # a name that is not UTF-8 is not kept
            text = file.model_dump_json(exclude_defaults=True)
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            number, name = tempfile.mkstemp(dir=self._path.parent)
            with os.fdopen(number, "w", encoding="utf-8") as written:
                written.write(text)
            Path(name).replace(self._path)

    def _read(self) -> dict[str, _Entry[M]]:
        try:
            found: _File[M] = self._file.model_validate_json(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        return found.entries if found.head == self._head else {}
