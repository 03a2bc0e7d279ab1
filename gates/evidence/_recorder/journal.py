"""The journal of a run: one line of JSON an event, each with the place in the project that it came from."""

import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TypeVar

R = TypeVar("R")
MOST = 5_000
DEEPEST = 400
HERE = f"{Path(__file__).absolute().parent}{os.sep}"
FOREIGN = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


class Journal:
    """Writes events as they happen; what is written stays, however the process ends."""

    def __init__(self, path: Path, root: str) -> None:
        self._file = path.open("w", encoding="utf-8", buffering=1)
        self._root = root.rstrip(os.sep) + os.sep
        self._ours: dict[str, str | None] = {}
        self._numbers: dict[int, tuple[int, object]] = {}
        self._kinds: dict[str, int] = {}
        self._told = 0
        self._troubles: set[str] = set()
        self.watched: Callable[[], None] = lambda: None

    def number(self, thing: object, kind: str) -> int:
        """Return the number of an object among those of its kind, from 1 on; it is kept, so that its id is its own."""
        if id(thing) not in self._numbers:
            self._kinds[kind] = self._kinds.get(kind, 0) + 1
            self._numbers[id(thing)] = (self._kinds[kind], thing)
            self._write({"word": "object", "kind": kind, "number": self._kinds[kind], "type": _name(type(thing))})
        return self._numbers[id(thing)][0]

    def tell(self, word: str, **facts: object) -> None:
        """Note an event, with the innermost line of the project that led to it."""
        self._told += 1
        self.watched()
        if self._told < MOST:
            self._write({"word": word, "place": self.place(), **facts})
        elif self._told == MOST:
            self._write({"word": "truncated"})

    def trouble(self, what: str, error: Exception) -> None:
        """Note that the recorder itself could not do something; each such thing once."""
        last = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{what}: {type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
        if what not in self._troubles:
            self._troubles.add(what)
            self._write({"word": "trouble", "what": text[:500]})

    def place(self) -> tuple[str, int] | None:
        """Return path and line of the innermost frame that lies in the project."""
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  # as logging does
        for _ in range(DEEPEST):
            if frame is None:
                return None
            path = self._shown(frame.f_code.co_filename)
            if path is not None:
                return path, frame.f_lineno
            frame = frame.f_back
        return None

    def _shown(self, filename: str) -> str | None:
        if filename not in self._ours:
            path = str(Path(filename).absolute())
            inside = path.startswith(self._root) and not path.startswith(HERE) and not filename.startswith("<")
            inside = inside and not any(part in path for part in FOREIGN)
            self._ours[filename] = path[len(self._root) :].replace(os.sep, "/") if inside else None
        return self._ours[filename]

    def _write(self, event: dict[str, object]) -> None:
        self._file.write(json.dumps(event) + "\n")


def safely(journal: Journal, what: str, look: Callable[[], R], default: R) -> R:
    """Return what a look of the recorder comes to; a fault of the recorder must not become one of the project."""
    try:
        return look()
    except Exception as error:  # noqa: BLE001  # noted, and the evidence that it would have given stays missing
        journal.trouble(what, error)
        return default


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
