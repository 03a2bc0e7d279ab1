"""Symbols of a task, resolved to the lines that define them, and the live code in them that uses a name."""

import ast
from collections.abc import Iterator
from pathlib import Path

from gates.code_binding import CodeBinding
from gates.evidence._private_names import is_private, is_used, may_be_called_from_outside
from gates.evidence._uses import use_lines
from gates.evidence.sources import Sources
from gates.model import Location, Model
from gates.syntax import (
    Definition,
    SourceModule,
    Unparsed,
    emptied,
    live_nodes,
    live_statements,
    member,
    origin,
    star_imports,
    stub_of,
)
from gates.task import Task

MAX_HOPS = 5


class Use(Model):
    """A name that a symbol must use, and the lines of live code that do."""

    name: str
    lines: tuple[int, ...]


class SymbolTrace(Model):
    """A symbol and the lines that it resolves to, or the reason why it does not; `checked` says it was looked at."""

    symbol: str
    wanted: tuple[str, ...]
    location: Location | None
    uses: tuple[Use, ...] = ()
    problem: str = ""
    checked: bool = True


class Undecided(Exception):
    """A symbol that reading alone cannot find or rule out, and why."""


class Resolver:
    """Finds the symbols of a task; each module is parsed once."""

    def __init__(self, task: Task, sources: Sources) -> None:
        self._sources = sources
        self._implementation = task.implementation
        self._roots = tuple(_roots(task, sources))

    def module(self, path: Path) -> SourceModule:
        """Return a parsed file; raise `Unparsed` with the place and the reason."""
        return self._sources.module(path, self._package(path))

    @property
    def root(self) -> Path:
        """Return the project's folder."""
        return self._sources.root

    def shown(self, path: Path) -> str:
        """Return a path as reports name it."""
        return self._sources.shown(path)

    def python_files(self) -> list[Path]:
        """Return the Python files of the implementation; what rests on them rests on their folders too."""
        found = [path for path in self._sources.files(self._implementation) if path.suffix == ".py"]
        self._sources.looked_at |= {*found, *(path.parent for path in found)}
        return found

    def trace(self, binding: CodeBinding) -> SymbolTrace:
        """Resolve a binding to its lines, or say why it cannot be."""
        symbol = binding.symbol or ""
        module_name, _, names = symbol.partition(":")
        try:
            found = self._find(module_name, names.split("."), hops=0)
        except (Unparsed, Undecided) as error:
            problem = f"not checked, {error}"
            return SymbolTrace(symbol=symbol, wanted=binding.uses, location=None, problem=problem, checked=False)
        if isinstance(found, str):
            return SymbolTrace(symbol=symbol, wanted=binding.uses, location=None, problem=found)
        module, node = found
        if unused := self.unused(module, node, names.split(".")):
            return SymbolTrace(symbol=symbol, wanted=binding.uses, location=None, problem=unused)
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        return SymbolTrace(
            symbol=symbol,
            wanted=binding.uses,
            location=Location(path=module.path, line=first, last_line=node.end_lineno),
            uses=tuple(Use(name=name, lines=tuple(use_lines(name, node, module))) for name in binding.uses),
        )

    def unused(self, module: SourceModule, node: ast.stmt, names: list[str]) -> str:
        """Return, in words, that nothing in the implementation uses a private name, or nothing where something may."""
        if not is_private(names[-1]):
            return ""
        owner = member(module.tree.body, names[0]) if len(names) == 2 else None
        if len(names) > 2 or may_be_called_from_outside(node, owner if isinstance(owner, ast.ClassDef) else None):
            return ""
        modules = []
        for path in self.python_files():
            try:
                modules.append(self.module(path))
            except Unparsed:
                return ""  # it may be used there
        if is_used(names[-1], node, modules):
            return ""
        return f"{module.path}:{node.lineno} defines {names[-1]!r}, and nothing in the implementation uses it"

    def _package(self, path: Path) -> str:
        """Return the dotted name of the package that a file lies in, from the deepest root above it."""
        base = max((r for r in self._roots if path.is_relative_to(r)), key=lambda r: len(r.parts))
        return ".".join(path.relative_to(base).parent.parts)

    def _module_file(self, name: str) -> Path | None:
        """Return the file of a dotted module name under one of the roots."""
        relative = Path(*name.split("."))
        for root in self._roots:
            for candidate in (root / relative / "__init__.py", root / relative.with_suffix(".py")):
                if self._sources.is_file(candidate):
                    return candidate
        return None

    def _is_implementation(self, path: Path) -> bool:
        return any(path.is_relative_to(self._sources.root / part) for part in self._implementation)

    def _find(self, module_name: str, names: list[str], *, hops: int) -> tuple[SourceModule, ast.stmt] | str:
        """Find a symbol, following re-exports; return it with its module, or the reason why it is not there."""
        path = self._module_file(module_name)
        if path is None:
            return f"there is no module {module_name!r} in the project"
        module = self.module(path)
        node = member(module.tree.body, names[0])
        if isinstance(node, ast.ImportFrom) and hops < MAX_HOPS:
            original = next(a.name for a in node.names if (a.asname or a.name) == names[0])
            return self._find(origin(node, self._package(path)), [original, *names[1:]], hops=hops + 1)
        if isinstance(node, ast.Import | ast.ImportFrom):
            return f"{module.path}:{node.lineno} only imports {names[0]!r}; name the symbol where it is defined"
        if node is None:
            return self._elsewhere(module, path, names, hops)
        if not self._is_implementation(path):
            return f"{module.path}:{node.lineno} lies outside of the task's implementation"
        return self._inside(module, node, names)

    def _elsewhere(
        self, module: SourceModule, path: Path, names: list[str], hops: int
    ) -> tuple[SourceModule, ast.stmt] | str:
        """Look for a name that a module does not define in what it imports wholesale."""
        for star in star_imports(module.tree.body) if hops < MAX_HOPS else []:
            found = self._find(origin(star, self._package(path)), names, hops=hops + 1)
            if not isinstance(found, str):
                return found
        if stub := stub_of(module.tree.body, names[0]):
            return _promised(module, stub, names[0])
        if member(module.tree.body, "__getattr__"):
            raise Undecided(f"{module.path} makes its names in __getattr__")
        if line := _makes_names(module):
            raise Undecided(f"{module.path}:{line} makes names by an expression")
        return f"{module.path} defines no {names[0]!r}"

    def _inside(self, module: SourceModule, node: ast.stmt, names: list[str]) -> tuple[SourceModule, ast.stmt] | str:
        """Follow the names after the first into classes; what lies inside of a function is no symbol."""
        for depth, name in enumerate(names[1:], 1):
            owner = ".".join(names[:depth])
            if not isinstance(node, ast.ClassDef):
                if isinstance(node, Definition):
                    return f"{module.path}: {owner!r} is a function; what it defines inside cannot be named"
                raise Undecided(f"{module.path}:{node.lineno} makes {owner!r} by an expression")
            inner = member(node.body, name) or _set_on_self(node, name)
            if stub := emptied(module.tree.body, ".".join(names[: depth + 1])):
                return _promised(module, stub, ".".join(names[: depth + 1]))
            if inner is None and (stub := stub_of(node.body, name)):
                return _promised(module, stub, ".".join(names[: depth + 1]))
            if inner is None and node.bases:
                raise Undecided(f"{module.path}: {owner!r} may inherit {name!r}; name the class that defines it")
            if inner is None:
                return f"{module.path} defines no {'.'.join(names[: depth + 1])!r}"
            node = inner
        return module, node


def _makes_names(module: SourceModule) -> int:
    """Return the line in which a module gives itself names that are not written out, or 0."""
    for statement in live_statements(module.tree.body):
        for node in ast.walk(statement) if not isinstance(statement, Definition) else ():
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Name) and called.id in {"globals", "vars", "exec", "setattr"}:
                return called.lineno
    return 0


def _promised(module: SourceModule, stub: ast.stmt, name: str) -> str:
    """Say of a name that it stands for nothing."""
    kind = "its body does nothing" if isinstance(stub, Definition) else "it is set to what does nothing"
    return f"{module.path}:{stub.lineno} only promises {name!r}: {kind}"


def _set_on_self(node: ast.ClassDef, name: str) -> ast.stmt | None:
    """Return the statement of a method that sets an attribute of the instance."""
    for method in node.body:
        for inner in live_nodes(method) if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) else ():
            if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store) and inner.attr == name:
                return method
    return None


def _roots(task: Task, sources: Sources) -> Iterator[Path]:
    """Return the folders that modules come from: the root, `src`, and where the implementation lies."""
    root = sources.root
    roots = [root, root / "src"]
    for path in task.implementation:
        folder = root / path if (root / path).is_dir() else (root / path).parent
        while sources.is_file(folder / "__init__.py"):
            folder = folder.parent
        roots += [folder, folder.parent] if folder != root else []
    yield from (found for found in dict.fromkeys(roots) if found.is_relative_to(root))
