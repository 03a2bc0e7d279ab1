"""The files of a project as they are read: each listed once, parsed once, and where the modules of a name lie."""

from functools import cache, lru_cache, partial
from pathlib import Path

from gates.code.syntax import SourceModule, Unparsed, content, parse
from gates.project.files import files_of, package_root
from gates.task.task import Task
from gates.task.yaml_source import shown

_parsed = lru_cache(maxsize=2000)(parse)  # once for all kinds of evidence that read a file in the same state


class Sources:
    """Reads files for one run, each once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.is_file = cache(Path.is_file)
        self.files = cache(partial(files_of, root=root))
        self.shown = partial(shown, root=root)  # as reports name it

    def module(self, path: Path, package: str) -> SourceModule:
        """Return a parsed file; raise `Unparsed` with the place and the reason."""
        raw, name = content(path), self.shown(path)
        if isinstance(raw, str):
            raise Unparsed(f"{name}:1: {raw}")
        return _parsed(raw, name, package)


class ModuleFiles:
    """Finds modules below the folders that they are imported from: the root, `src`, where the implementation lies."""

    def __init__(self, task: Task, sources: Sources) -> None:
        self._sources, root = sources, sources.root
        packages = [each for path in task.implementation if (each := package_root(root / path)) != root]
        nested = (each for package in packages for each in (package, package.parent))
        self._roots = [each for each in dict.fromkeys((root, root / "src", *nested)) if each.is_relative_to(root)]

    def package(self, path: Path) -> str:
        """Return the dotted name of the package that a file lies in, from the deepest root above it."""
        base = max((r for r in self._roots if path.is_relative_to(r)), key=lambda r: len(r.parts))
        return ".".join(path.relative_to(base).parent.parts)

    def file(self, name: str) -> Path | None:
        """Return the file of a dotted module name under one of the roots."""
        relative = Path(*name.split("."))
        ways = (relative / "__init__.py", relative.with_suffix(".py"))
        return next(filter(self._sources.is_file, (root / way for root in self._roots for way in ways)), None)

    def split(self, dotted: str) -> tuple[str, list[str]] | None:
        """Return the module of the project that a full name begins with, and the names in it."""
        parts = dotted.split(".")
        splits = ((".".join(parts[:at]), parts[at:]) for at in range(len(parts) - 1, 0, -1))
        return next((each for each in splits if self.file(each[0])), None)
