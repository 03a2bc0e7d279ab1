"""Which files are the project's, and which of its lines led to where we are."""

import os
from collections.abc import Iterator
from itertools import islice
from types import FrameType, TracebackType

DEEPEST = 400
FOREIGN = {"site-packages", "dist-packages"}
HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep  # noqa: PTH100, PTH120
Place = tuple[str, int]


class Places:
    """The files under the project's root, less what is installed there, and less our own."""

    def __init__(self, root: str) -> None:
        self._root = os.path.abspath(root) + os.sep  # noqa: PTH100
        self._known: dict[str, str | None] = {}

    def shown(self, filename: str) -> str | None:
        """Return a file's path in the project, or none where it lies outside."""
        if filename not in self._known:
            path = os.path.abspath(filename)  # noqa: PTH100  # a link of the project leads to its own, too
            inside = path.startswith(self._root) and not path.startswith(HERE) and not filename.startswith("<")
            shown = path[len(self._root) :].replace(os.sep, "/")
            self._known[filename] = shown if inside and not FOREIGN & set(shown.split("/")) else None
        return self._known[filename]

    def of(self, frame: FrameType | None) -> Place | None:
        """Return path and line of the innermost frame that lies in the project."""
        return next(((path, each.f_lineno) for path, each in self._around(frame)), None)

    def stack(self, frame: FrameType | None) -> list[list[object]]:
        """Return the project's lines of a stack, from the innermost outwards."""
        return [[path, each.f_lineno, each.f_code.co_qualname] for path, each in islice(self._around(frame), 5)]

    def _around(self, frame: FrameType | None) -> Iterator[tuple[str, FrameType]]:
        for _ in range(DEEPEST):
            if frame is None:
                return
            path = self.shown(frame.f_code.co_filename)
            if path is not None:
                yield path, frame
            frame = frame.f_back

    def innermost(self, trace: TracebackType | None) -> list[object] | None:
        """Return the innermost line of the project in a traceback."""
        found: list[object] | None = None
        while trace is not None:
            shown = self.shown(trace.tb_frame.f_code.co_filename)
            if shown is not None:
                found = [shown, trace.tb_lineno, trace.tb_frame.f_code.co_qualname]
            trace = trace.tb_next
        return found
