"""Where the modules of a project lie: the file of a dotted name, and the name of a file."""

from collections.abc import Iterator
from pathlib import Path

from gates.evidence.sources import Sources
from gates.task.task import Task


class ModuleFiles:
    """Finds modules below the folders that they are imported from: the root, `src`, where the implementation lies."""

    def __init__(self, task: Task, sources: Sources) -> None:
        self._sources = sources
        self._roots = tuple(_roots(task, sources))

    def package(self, path: Path) -> str:
        """Return the dotted name of the package that a file lies in, from the deepest root above it."""
        base = max((r for r in self._roots if path.is_relative_to(r)), key=lambda r: len(r.parts))
        return ".".join(path.relative_to(base).parent.parts)

    def name(self, path: Path) -> str:
        """Return the dotted name of a module."""
        return ".".join(filter(None, (self.package(path), path.stem if path.stem != "__init__" else "")))

    def top(self, path: Path) -> Path:
        """Return the outermost package that a file or folder lies in, or itself."""
        while self._sources.is_file(path.parent / "__init__.py"):
            path = path.parent
        return path

    def file(self, name: str) -> Path | None:
        """Return the file of a dotted module name under one of the roots."""
        relative = Path(*name.split("."))
        for root in self._roots:
            for candidate in (root / relative / "__init__.py", root / relative.with_suffix(".py")):
                if self._sources.is_file(candidate):
                    return candidate
        return None


def _roots(task: Task, sources: Sources) -> Iterator[Path]:
    root = sources.root
    roots = [root, root / "src"]
    for path in task.implementation:
        folder = root / path if (root / path).is_dir() else (root / path).parent
        while sources.is_file(folder / "__init__.py"):
            folder = folder.parent
        roots += [folder, folder.parent] if folder != root else []
    yield from (found for found in dict.fromkeys(roots) if found.is_relative_to(root))
