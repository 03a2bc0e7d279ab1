"""Other definitions that a symbol may come to: those in the branches of an `if` or `try` that another run takes."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

from gates import meanings
from gates.evidence._attributes import names_of
from gates.evidence._module_files import ModuleFiles
from gates.model import Location
from gates.syntax import Definition, SourceModule, Unparsed, origin

MAX_STEPS = 50
Found = tuple[SourceModule, ast.stmt]


class OtherWays:
    """Follows a symbol through every import, alias and definition that may give it its meaning."""

    def __init__(
        self, files: ModuleFiles, load: Callable[[Path], SourceModule], is_ours: Callable[[Path], bool]
    ) -> None:
        self._files = files
        self._load = load
        self._is_ours = is_ours
        self._seen: set[tuple[str, ...]] = set()

    def beside(self, found: Found, module_name: str, names: list[str]) -> tuple[Location, ...]:
        """Return the lines of the implementation that a symbol may come to beside what was found for it."""
        ways = [(module, node) for module, node in self.of(module_name, names) if node is not found[1]]
        places = (lines_of(module, [node, *_accessors(module, node)]) for module, node in ways)
        return tuple(dict.fromkeys(places))

    def of(self, module_name: str, names: list[str]) -> Iterator[Found]:
        """Yield the definitions of a symbol, with their modules; what cannot be read is left out."""
        path = self._files.file(module_name)
        key = (module_name, *names)
        if path is None or key in self._seen or len(self._seen) >= MAX_STEPS:
            return
        self._seen.add(key)
        try:
            module = self._load(path)
        except Unparsed:
            return
        for node in _meanings(module.tree.body, names[0]):
            if isinstance(node, Definition) and not self._is_ours(path):
                continue
            yield from self._by(module_name, module, path, node, names)
        if not meanings.member(module.tree.body, names[0]):
            for star in meanings.star_imports(module.tree.body):
                yield from self.of(origin(star, self._files.package(path)), names)

    def _by(
        self, module_name: str, module: SourceModule, path: Path, node: ast.stmt, names: list[str]
    ) -> Iterator[Found]:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from self._imported(path, node, names)
        elif isinstance(node, Definition):
            yield from ((module, inner) for inner in _inside(node, names[1:]))
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Name | ast.Attribute):
            other = names_of(node.value)
            yield from self.of(module_name, [*other, *names[1:]]) if other else ()

    def _imported(self, path: Path, node: ast.Import | ast.ImportFrom, names: list[str]) -> Iterator[Found]:
        alias = next(a for a in node.names if (a.asname or a.name.split(".")[0]) == names[0])
        source = origin(node, self._files.package(path)) if isinstance(node, ast.ImportFrom) else ""
        if source:
            yield from self.of(source, [alias.name, *names[1:]])
        if len(names) > 1:
            yield from self.of(".".join(filter(None, (source, alias.name))), names[1:])


def lines_of(module: SourceModule, parts: list[ast.stmt]) -> Location:
    """Return the lines of a definition with its decorators, and of what a property has beside its getter."""
    first = min(part.lineno for one in parts for part in (one, *getattr(one, "decorator_list", [])))
    return Location(path=module.path, line=first, last_line=max(one.end_lineno or one.lineno for one in parts))


def _accessors(module: SourceModule, node: ast.stmt) -> list[ast.stmt]:
    return meanings.accessors_of(meanings.body_of(module.tree.body, node), node)


def _inside(node: ast.stmt, names: list[str]) -> Iterator[ast.stmt]:
    """Yield what the names after the first come to in a class, or the definition itself where there are none."""
    if not names:
        yield node
    elif isinstance(node, ast.ClassDef):
        for inner in _meanings(node.body, names[0]):
            yield from _inside(inner, names[1:])


def _meanings(body: list[ast.stmt], name: str) -> list[ast.stmt]:
    node = meanings.member(body, name)
    return [node, *meanings.ways_beside(body, name, node)] if node else []
