"""Which files are the project's, and which of its lines led to where we are."""

import os
from pathlib import Path
from types import FrameType

DEEPEST = 400
HERE = f"{Path(__file__).absolute().parent}{os.sep}"
FOREIGN = {"site-packages", "dist-packages"}
Place = tuple[str, int]


class Places:
    """The files under the project's root, less what is installed there, and less this recorder."""

    def __init__(self, root: str) -> None:
        self._root = root.rstrip(os.sep) + os.sep
        self._ours: dict[str, str | None] = {}

    def of(self, frame: FrameType | None) -> Place | None:
        """Return path and line of the innermost frame that lies in the project."""
        for _ in range(DEEPEST):
            if frame is None:
                return None
            path = self.shown(frame.f_code.co_filename)
            if path is not None:
                return path, frame.f_lineno
            frame = frame.f_back
        return None

    def shown(self, filename: str) -> str | None:
        """Return a file's path in the project, or none where it lies outside."""
        if filename not in self._ours:
            path = str(Path(filename).absolute())
            inside = path.startswith(self._root) and not path.startswith(HERE) and not filename.startswith("<")
            shown = path[len(self._root) :].replace(os.sep, "/")
            self._ours[filename] = shown if inside and not FOREIGN & set(shown.split("/")) else None
        return self._ours[filename]
