"""Where the imports of a program lead: which module a name means, and under which name something is defined."""

import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gates.scan.program.known import LIBRARIES, canonical
from gates.scan.program.module import Module
from gates.scan.program.scope import BUILTINS, MAX_HOPS

if TYPE_CHECKING:
    from gates.scan.program.project import Project


class Imports:
    """Answers what dotted names of a program's modules mean."""

    def __init__(self, project: "Project") -> None:
        self._project = project
        self._by_name = project.by_name
        self._packages = {name for name, path in self._by_name.items() if path.endswith("__init__.py")}
        self._folders = {part for name in self._by_name for part in self._tops(name)}
        self._suffixes: dict[str, list[str]] = defaultdict(list)
        for name, path in self._by_name.items():
            parts = name.split(".")
            for at in range(1, len(parts)):
                self._suffixes[".".join(parts[at:])].append(path)
        self._canonical: dict[tuple[str, str], str] = {}
        self._starred: dict[tuple[str, str], str | None] = {}

    def find_module(self, name: str, near: Module) -> Module | None:
        """Return a module by its name: from the root, beside the one that asks, or the only one that ends so."""
        path = self._path(name, near)
        return self._project.module(path) if path is not None else None

    def _path(self, name: str, near: Module) -> str | None:
        if name in self._by_name:
            return self._by_name[name]
        first = name.partition(".")[0]
        if self._means_library(first, near):
            return None
        beside = f"{near.package}.{name}" if near.package else name
        if beside in self._by_name:
            return self._by_name[beside]
        if first in sys.stdlib_module_names:
            return None
        found = self._suffixes.get(name, [])
        return found[0] if len(found) == 1 else None

    def _means_library(self, first: str, near: Module) -> bool:
        """Return whether an import means a library, and not a package's own `torch.py` or `logging.py`."""
        if first in LIBRARIES:
            return first not in self._folders
        return first in sys.stdlib_module_names and near.package in self._packages

    def canonical(self, dotted: str, near: Module) -> str:
        """Return the name under which something is defined, re-exports followed."""
        key = (dotted, near.package)
        if key not in self._canonical:
            self._canonical[key] = dotted  # a circle ends here
            self._canonical[key] = self._followed(dotted, near, MAX_HOPS)
        return self._canonical[key]

    def _followed(self, dotted: str, near: Module, hops: int) -> str:
        parts = dotted.split(".")
        for at in range(len(parts), 0, -1):
            module = self.find_module(".".join(parts[:at]), near)
            if module is None:
                continue
            rest = parts[at:]
            if not rest:
                return module.name
            named = self._bound(rest[0], module, hops) or self.starred(rest[0], module) or f"{module.name}.{rest[0]}"
            return canonical(".".join([named, *rest[1:]]))
        return canonical(dotted)

    def _bound(self, name: str, module: Module, hops: int) -> str | None:
        """Return the full name of what a module binds a name to."""
        return self._project.scope_of(module.tree, module)._name(name, hops) if name in module.bindings else None  # noqa: SLF001

    def starred(self, name: str, module: Module) -> str | None:
        """Return the full name of what came with `import *`."""
        key = (name, module.path)
        if module.stars and key not in self._starred:
            self._starred[key] = None  # a circle gives nothing
            self._starred[key] = self._from_stars(name, module)
        return self._starred.get(key)

    def _from_stars(self, name: str, module: Module) -> str | None:
        found = [(star, self.find_module(star, module)) for star in module.stars]
        for _, source in found:
            if source is not None and source is not module and (name in source.bindings or source.stars):
                named = self._bound(name, source, MAX_HOPS - 1) or self.starred(name, source)
                if named is not None:
                    return named
        outside = [star for star, source in found if source is None]
        if len(outside) == 1 and name not in BUILTINS and name not in module.bindings:
            return canonical(f"{outside[0]}.{name}")
        return None

    def _tops(self, name: str) -> Iterator[str]:
        """Yield the folders on the way to a module that are in no package: those that an import may begin with."""
        parts = name.split(".")[:-1]
        yield from (part for at, part in enumerate(parts) if ".".join(parts[:at]) not in self._packages)
