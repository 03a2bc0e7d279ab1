"""Which lines are the project's own."""

import os
from types import FrameType, TracebackType

INSTALLED = {"site-packages", "dist-packages"}
DEEPEST = 200
OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # noqa: PTH100, PTH120


class Places:
    """Knows the files of the project."""

    def __init__(self, root: str) -> None:
        self._root = os.path.abspath(root) + os.sep  # noqa: PTH100
        self._known: dict[str, str | None] = {}

    def shown(self, filename: str) -> str | None:
        """Return a file of the project relative to its root, `None` for what is not the project's own."""
        if filename not in self._known:
            path = os.path.abspath(filename)  # noqa: PTH100  # a link of the project leads to its own, too
            inside = path.startswith(self._root) and not path.startswith(OWN) and not filename.startswith("<")
            shown = path[len(self._root) :].replace(os.sep, "/")
            self._known[filename] = shown if inside and not INSTALLED & set(shown.split("/")) else None
        return self._known[filename]

    def stack(self, frame: FrameType | None) -> list[list[object]]:
        """Return the project's lines of a stack, from the innermost outwards."""
        found: list[list[object]] = []
        for _ in range(DEEPEST):
            if frame is None:
                break
            shown = self.shown(frame.f_code.co_filename)
            if shown is not None:
                found.append([shown, frame.f_lineno, frame.f_code.co_qualname])
            frame = frame.f_back
        return found[:5]

    def innermost(self, trace: TracebackType | None) -> list[object] | None:
        """Return the innermost line of the project in a traceback."""
        found: list[object] | None = None
        while trace is not None:
            shown = self.shown(trace.tb_frame.f_code.co_filename)
            if shown is not None:
                found = [shown, trace.tb_lineno, trace.tb_frame.f_code.co_qualname]
            trace = trace.tb_next
        return found
