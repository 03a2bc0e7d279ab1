"""The files of a project as they are read: each listed once, parsed once, and shared by all tasks that speak of it."""

from functools import lru_cache
from pathlib import Path

from gates.project.files import files_of
from gates.scan.program.reading import content
from gates.syntax import SourceModule, Unparsed, parse

KEPT = 4000  # modules that are held at a time
SHARED = 128  # modules that are held for others of one process


class Sources:
    """Reads files for one run. `looked_at` is every path whose state an answer rests on, there or not."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.looked_at: set[Path] = set()
        self._modules: dict[tuple[Path, str], SourceModule | Unparsed] = {}
        self._listed: dict[tuple[str, ...], list[Path]] = {}
        self._files: dict[Path, bool] = {}

    def files(self, paths: tuple[str, ...]) -> list[Path]:
        """Return the files under some paths of the project."""
        if paths not in self._listed:
            self._listed[paths] = files_of(paths, self.root)
        return self._listed[paths]

    def is_file(self, path: Path) -> bool:
        """Return whether a file is there, and remember that it was asked for."""
        self.looked_at.add(path)
        if path not in self._files:
            self._files[path] = path.is_file()
        return self._files[path]

    def is_there(self, path: Path) -> bool:
        """Return whether a file or folder is there, and remember that it was asked for."""
        self.looked_at.add(path)
        return path.exists()

    def module(self, path: Path, package: str) -> SourceModule:
        """Return a parsed file; raise `Unparsed` with the place and the reason."""
        self.looked_at.add(path)
        key = (path, package)
        if key not in self._modules:
            if len(self._modules) >= KEPT:
                self._modules.pop(next(iter(self._modules)))
            self._modules[key] = self._parsed(path, package)
        found = self._modules[key]
        if isinstance(found, Unparsed):
            raise found
        return found

    def shown(self, path: Path) -> str:
        """Return a path as reports name it, relative to the project where it lies inside."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()

    def _parsed(self, path: Path, package: str) -> SourceModule | Unparsed:
        shown, raw = self.shown(path), content(path)
        if isinstance(raw, str):
            return Unparsed(f"{shown}:1: {raw}")
        return _parsed(raw, shown, package)


@lru_cache(maxsize=SHARED)
def _parsed(raw: bytes, shown: str, package: str) -> SourceModule | Unparsed:
    """Parse a file; what several kinds of evidence read in the same state is parsed once for all of them."""
    try:
        return parse(raw, shown, package)
    except Unparsed as error:
        return error
