"""Whose order the calls are in: the project's, where one call of its code by a test led to them, or the test's own."""

import sys
from collections.abc import Sequence
from pathlib import PurePosixPath
from types import FrameType

from .journal import Journal
from .places import DEEPEST


class Driving:
    """Numbers the calls of the project's code that tests make, as events come from within them."""

    def __init__(self, journal: Journal, tests: Sequence[str], implementation: Sequence[str]) -> None:
        self._journal = journal
        self._tests = tuple(tests)
        self._implementation = tuple(implementation)
        self._known: dict[str, bool] = {}
        self._entry: FrameType | None = None
        self._count = 0

    def look(self) -> dict[str, object]:
        """Return the number of the call, made by a test, that an event comes from; nothing where the test itself calls.

        The frame of the call is held until another one takes its place, so that it is known from one that comes after.
        """
        entry: FrameType | None = None
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  # as logging does
        for _ in range(DEEPEST):
            if frame is None:
                return {}
            path = self._journal.places.shown(frame.f_code.co_filename)
            if path is not None and self.is_test(path):
                break
            entry = frame if path is not None else entry
            frame = frame.f_back
        else:
            return {}
        if entry is None:
            return {}
        if entry is not self._entry:
            self._entry, self._count = entry, self._count + 1
        return {"driven": self._count}

    def forget(self) -> None:
        """Let go of the last call."""
        self._entry = None

    def is_test(self, path: str) -> bool:
        """Return whether a file belongs to the tests: by the task, or by its name where the task says nothing of it."""
        if path not in self._known:
            name = PurePosixPath(path)
            by_name = name.stem == "conftest" or name.stem.startswith("test_") or name.stem.endswith("_test")
            by_name = by_name or bool({"test", "tests"} & set(name.parts[:-1]))
            self._known[path] = _under(path, self._tests) or (by_name and not _under(path, self._implementation))
        return self._known[path]


def _under(path: str, names: Sequence[str]) -> bool:
    return any(path == name.split("::")[0] or path.startswith(f"{name.rstrip('/')}/") for name in names)
