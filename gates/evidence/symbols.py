"""Symbols of a task, resolved to the lines that define them, and the live code in them that uses a name."""

import ast
from pathlib import Path

from gates import meanings
from gates.evidence._attributes import bases_of, field_of, names_of, set_on_self
from gates.evidence._module_files import ModuleFiles
from gates.evidence._not_found import Lacking, lacking, only_imports
from gates.evidence._other_ways import Found, OtherWays, lines_of
from gates.evidence._private_names import is_private, is_used, may_be_called_from_outside
from gates.evidence._promises import Promised, promised
from gates.evidence._uses import use_lines
from gates.evidence.sources import Sources
from gates.model import Location, Model
from gates.syntax import Definition, SourceModule, Unparsed, origin
from gates.task.code_binding import CodeBinding
from gates.task.task import Task

MAX_HOPS = 20


class Use(Model):
    """A name that a symbol must use, and the lines of live code that do."""

    name: str
    lines: tuple[int, ...]


class SymbolTrace(Model):
    """A symbol and the lines that it resolves to, or why it does not; `others` are those that another run may take.

    A `promise` is a definition that does nothing, which may be all that is asked of it.
    """

    symbol: str
    wanted: tuple[str, ...]
    location: Location | None
    uses: tuple[Use, ...] = ()
    problem: str = ""
    checked: bool = True
    others: tuple[Location, ...] = ()
    promise: Location | None = None


class Undecided(Exception):
    """A symbol that reading alone cannot find or rule out, and why."""


class Resolver:
    """Finds the symbols of a task; each module is parsed once."""

    def __init__(self, task: Task, sources: Sources) -> None:
        self._sources = sources
        self._implementation = task.implementation
        self._modules = ModuleFiles(task, sources)

    def module(self, path: Path) -> SourceModule:
        """Return a parsed file; raise `Unparsed` with the place and the reason."""
        return self._sources.module(path, self._modules.package(path))

    @property
    def root(self) -> Path:
        """Return the project's folder."""
        return self._sources.root

    def module_name(self, path: Path) -> str:
        """Return the dotted name by which the project imports a file."""
        return self._modules.name(path)

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
        told = SymbolTrace(symbol=binding.symbol or "", wanted=binding.uses, location=None)
        try:
            return told.model_copy(update=self._traced(binding))
        except (Unparsed, Undecided) as error:
            return told.model_copy(update={"problem": f"not checked, {error}", "checked": False})
        except RecursionError:
            return told.model_copy(update={"problem": "not checked, its file is nested too deeply", "checked": False})

    def _traced(self, binding: CodeBinding) -> dict[str, object]:
        module_name, _, name = (binding.symbol or "").partition(":")
        names = name.split(".")
        found = self._find(module_name, names, hops=0)
        if isinstance(found, str):
            return {"problem": str(found), "promise": found.place if isinstance(found, Promised) else None}
        module, node = found
        if unused := self.unused(module, node, names):
            return {"problem": unused}
        body = meanings.body_of(module.tree.body, node)
        parts = [node, *meanings.accessors_of(body, node)]
        uses = tuple(self._use(name, parts, module) for name in binding.uses)
        if doubt := _doubt(module, node, body, uses):
            raise Undecided(doubt)
        ways = OtherWays(self._modules, self.module, self._is_implemented)
        return {"location": lines_of(module, parts), "uses": uses, "others": ways.beside(found, module_name, names)}

    def _is_implemented(self, path: Path) -> bool:
        return any(path.is_relative_to(self.root / part) for part in self._implementation)

    def _astray(self) -> str:
        """Return, in words, the paths of the implementation that lead nowhere: the code may be meant by one of them."""
        gone = [path for path in self._implementation if not self._sources.is_there(self.root / path)]
        return f", of which {', '.join(map(repr, gone))} {'is' if len(gone) == 1 else 'are'} not there" if gone else ""

    def _use(self, name: str, parts: list[ast.stmt], module: SourceModule) -> Use:
        """Find the uses of a name, under the names by which a module has it from elsewhere, too."""
        names = {name}
        if meant := self._meant(name):
            names |= {full for full in set(module.aliases.values()) if self._meant(full) == meant}
        lines = {line for part in parts for full in names for line in use_lines(full, part, module)}
        return Use(name=name, lines=tuple(sorted(lines)))

    def _meant(self, dotted: str) -> Found | None:
        """Return what a full name stands for, if that is of the project."""
        parts = dotted.split(".")
        for at in range(len(parts) - 1, 0, -1):
            if self._modules.file(".".join(parts[:at])):
                try:
                    found = self._find(".".join(parts[:at]), parts[at:], hops=0)
                except (Unparsed, Undecided):
                    return None
                return None if isinstance(found, str) else found
        return None

    def unused(self, module: SourceModule, node: ast.stmt, names: list[str]) -> str:
        """Return, in words, that nothing in the implementation uses a private name, or nothing where something may."""
        owner = meanings.member(module.tree.body, names[0]) if len(names) > 1 else None
        if owner is not None and (idle := self.unused(module, owner, names[:1])):
            return idle
        around = owner if isinstance(owner, ast.ClassDef) else None
        if not is_private(names[-1]) or len(names) > 2 or may_be_called_from_outside(node, around):
            return ""
        for paths in (self.python_files, self._beside):
            try:
                if is_used(names[-1], [self.module(path) for path in paths()]):
                    return ""
            except Unparsed:
                return ""  # it may be used there
        return f"{module.path}:{node.lineno} defines {names[-1]!r}, and nothing in the implementation uses it"

    def _beside(self) -> list[Path]:
        """Return the Python files of the packages that the implementation is a part of."""
        tops = {self._modules.top(self._sources.root / part) for part in self._implementation} - {self._sources.root}
        inside = tuple(sorted(self._sources.shown(top) for top in tops))
        return [path for path in self._sources.files((*self._implementation, *inside)) if path.suffix == ".py"]

    def _find(self, module_name: str, names: list[str], *, hops: int) -> Found | str:
        """Find a symbol, following re-exports and aliases; return it with its module, or why it is not there."""
        path = self._modules.file(module_name)
        if path is None:
            return f"there is no module {module_name!r} in the project"
        module = self.module(path)
        node = meanings.member(module.tree.body, names[0])
        if isinstance(node, ast.Import | ast.ImportFrom):
            return self._imported(module, path, names, hops)
        if node is None:
            return self._elsewhere(module, path, names, hops)
        if other := self._renamed(module_name, module, node, names, hops):
            return other
        if not self._is_implemented(path):
            return f"{module.path}:{node.lineno} lies outside of the task's implementation{self._astray()}"
        return self._inside(module, node, names, hops)

    def _imported(self, module: SourceModule, path: Path, names: list[str], hops: int) -> Found | str:
        """Follow the imports that may give a name its meaning, the last first."""
        ways = meanings.imports_of(module.tree.body, names[0])
        problems = []
        for node in ways if hops < MAX_HOPS else ():
            found = self._led_to(module, path, node, names, hops)
            if not isinstance(found, str):
                return found
            problems.append(found)
        return problems[0] if problems else only_imports(module, ways[0], names[0])

    def _led_to(
        self, module: SourceModule, path: Path, node: ast.Import | ast.ImportFrom, names: list[str], hops: int
    ) -> Found | str:
        """Follow one import: to a name of a module, or to what a module that is imported holds."""
        alias = next(a for a in node.names if (a.asname or a.name.split(".")[0]) == names[0])
        source = origin(node, self._modules.package(path)) if isinstance(node, ast.ImportFrom) else ""
        inner = ".".join(filter(None, (source, alias.name)))
        if len(names) > 1 and (source or alias.asname or "." not in alias.name) and self._modules.file(inner):
            return self._find(inner, names[1:], hops=hops + 1)
        if isinstance(node, ast.Import):
            return only_imports(module, node, names[0])
        return self._find(source, [alias.name, *names[1:]], hops=hops + 1)

    def _renamed(
        self, module_name: str, module: SourceModule, node: ast.stmt, names: list[str], hops: int
    ) -> Found | str | None:
        """Follow an assignment that only gives something of the project another name; `None` where it does not."""
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        other = names_of(value) if isinstance(value, ast.Name | ast.Attribute) else []
        leads = bool(other) and other[0] != names[0] and hops < MAX_HOPS
        here = meanings.member(module.tree.body, other[0]) if leads else None
        if here is None:
            return None
        try:
            found = self._find(module_name, [*other, *names[1:]], hops=hops + 1)
        except Undecided:
            return None
        if isinstance(found, str):
            led = isinstance(here, ast.Import | ast.ImportFrom) and self._is_ours(module, here, other[0])
            return found if led and len(other) <= 2 else None
        return found

    def _is_ours(self, module: SourceModule, node: ast.Import | ast.ImportFrom, name: str) -> bool:
        """Return whether an import leads to a module of the project."""
        if isinstance(node, ast.ImportFrom):
            return self._modules.file(origin(node, self._modules.package(self.root / module.path))) is not None
        return any(self._modules.file(a.name) for a in node.names if (a.asname or a.name) == name)

    def _elsewhere(self, module: SourceModule, path: Path, names: list[str], hops: int) -> Found | str:
        """Look for a name that a module does not define in what it imports wholesale."""
        for star in meanings.star_imports(module.tree.body) if hops < MAX_HOPS else []:
            source = origin(star, self._modules.package(path))
            found = self._find(source, names, hops=hops + 1) if self._gives(source, names[0]) else ""
            if not isinstance(found, str):
                return found
        if stub := meanings.stub_of(module.tree.body, names[0]):
            return promised(module, stub, names[0])
        if meanings.member(module.tree.body, "__getattr__"):
            raise Undecided(f"{module.path} makes its names in __getattr__")
        if line := meanings.makes_names(module.tree.body):
            raise Undecided(f"{module.path}:{line} makes names by an expression")
        return lacking(module, names[:1])

    def _gives(self, module_name: str, name: str) -> bool:
        """Return whether `import *` takes a name from a module."""
        path = self._modules.file(module_name)
        return path is not None and meanings.is_exported(self.module(path).tree.body, name)

    def _inside(self, module: SourceModule, node: ast.stmt, names: list[str], hops: int) -> Found | str:
        """Follow the names after the first into classes; what lies inside of a function is no symbol."""
        for depth, name in enumerate(names[1:], 1):
            owner = ".".join(names[:depth])
            if not isinstance(node, ast.ClassDef):
                if isinstance(node, Definition):
                    return f"{module.path}: {owner!r} is a function; what it defines inside cannot be named"
                raise Undecided(f"{module.path}:{node.lineno} makes {owner!r} by an expression")
            inner = self._of_class(module, node, name)
            if stub := meanings.emptied(module.tree.body, ".".join(names[: depth + 1])):
                return promised(module, stub, ".".join(names[: depth + 1]))
            if inner is None and (stub := meanings.stub_of(node.body, name)):
                return promised(module, stub, ".".join(names[: depth + 1]))
            inherited = self._inherited(module, node, names, depth, hops) if inner is None else None
            if inherited and not isinstance(inherited, Lacking):
                return inherited
            if inner is None:
                return lacking(module, names[: depth + 1], above=inherited is not None)
            node = inner
        return module, node

    def _of_class(self, module: SourceModule, node: ast.ClassDef, name: str) -> ast.stmt | None:
        """Return what a class itself has by a name; a method that has two names is that method."""
        found = meanings.member(node.body, name)
        if isinstance(found, ast.Assign) and isinstance(found.value, ast.Name) and found.value.id != name:
            other = meanings.member(node.body, found.value.id) or meanings.member(module.tree.body, found.value.id)
            return other if isinstance(other, Definition) else found
        return found or set_on_self(node, name) or field_of(node, name)

    def _inherited(
        self, module: SourceModule, node: ast.ClassDef, names: list[str], depth: int, hops: int
    ) -> Found | str | None:
        """Look for a name in the classes that a class extends; what may lie in one that is not ours is undecided."""
        name, problem, unseen = self._modules.name(self.root / module.path), None, False
        for base in bases_of(node) if hops < MAX_HOPS else [[]]:
            above = self._find(name, base, hops=hops + 1) if base else ""
            if isinstance(above, str) or not isinstance(above[1], ast.ClassDef):
                unseen = True
                continue
            found = self._inside(*above, [above[1].name, *names[depth:]], hops + 1)
            if not isinstance(found, str):
                return found
            problem = problem or found
        if unseen:
            owner = ".".join(names[:depth])
            raise Undecided(f"{module.path}: {owner!r} may inherit {names[depth]!r}; name the class that defines it")
        return problem


def _doubt(module: SourceModule, node: ast.stmt, body: list[ast.stmt], uses: tuple[Use, ...]) -> str:
    """Return why a name that is defined more than once cannot be judged by one of its definitions."""
    replaced, others = meanings.rivals_of(body, node)
    name = getattr(node, "name", "")
    if replaced:
        lines = f"in line {replaced[-1].lineno} and in line {node.lineno}"
        return f"{module.path} defines {name!r} twice, {lines}; keep one"
    for use in uses:
        unlike = [one for one in others if bool(use.lines) is not any(True for _ in use_lines(use.name, one, module))]
        if unlike:
            first, second, *_ = sorted({node.lineno, *(one.lineno for one in unlike)})
            return f"{module.path} defines {name!r} in line {first} and in line {second}, of which one uses {use.name}"
    return ""
