"""Symbols of a task, resolved to the lines that define them, and the live code in them that uses a name."""

import ast
import builtins
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from gates.code import meanings
from gates.code.sources import ModuleFiles, Sources
from gates.code.syntax import Definition, SourceModule, Unparsed, first_line, live_nodes, origin
from gates.errors import UsageError
from gates.model import Location, Model
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import chain_of, walk
from gates.scan.program.project import Project
from gates.task.measurement import CodeBinding
from gates.task.task import Task
from gates.words import meant

MAX_HOPS = 20
Ways = list[tuple[SourceModule, list[ast.stmt]]]  # definitions, and what a property has beside its getter
Import = ast.Import | ast.ImportFrom


class Use(Model):
    """A name that a symbol must use, and the lines of live code that do; `looked_up` where it may use it unwritten."""

    name: str
    lines: tuple[int, ...]
    looked_up: bool = False


class SymbolTrace(Model):
    """A symbol and its lines, or why there are none; `others` another run may take, a `promise` is defined empty."""

    symbol: str
    wanted: tuple[str, ...]
    location: Location | None
    uses: tuple[Use, ...] = ()
    problem: str = ""
    checked: bool = True
    others: tuple[Location, ...] = ()
    promise: Location | None = None
    is_function: bool = False


class Undecided(Exception):
    """A symbol that reading alone cannot find or rule out, and why."""


class Absent(Exception):
    """A symbol that is not there, and why; `promise` is a definition of it that does nothing."""

    def __init__(self, why: str, promise: Location | None = None, *, defined: bool = True) -> None:
        super().__init__(why)
        self.promise, self.defined = promise, defined


class Resolver:
    """Finds the symbols of a task; each module is parsed once."""

    def __init__(self, task: Task, sources: Sources) -> None:
        self._sources, self.root, self.shown = sources, sources.root, sources.shown
        self._implementation, self._modules = task.implementation, ModuleFiles(task, sources)

    def module(self, path: Path) -> SourceModule:
        """Return a parsed file; raise `Unparsed` with the place and the reason."""
        return self._sources.module(path, self._modules.package(path))

    def read(self) -> tuple[dict[str, SourceModule], tuple[str, ...]]:
        """Return the files of the implementation that can be parsed, and what is wrong with the others."""
        modules, unparsed = dict[str, SourceModule](), list[str]()
        for path in self.python_files():
            try:
                modules[self.shown(path)] = self.module(path)
            except Unparsed as error:
                unparsed.append(str(error))
        return modules, tuple(unparsed)

    def python_files(self) -> list[Path]:
        """Return the Python files of the implementation."""
        return [path for path in self._sources.files(self._implementation) if path.suffix == ".py"]

    def trace(self, binding: CodeBinding) -> SymbolTrace:
        """Resolve a binding to its lines, or say why it cannot be."""
        told = SymbolTrace(symbol=binding.symbol or "", wanted=binding.uses, location=None)
        try:
            return told.model_copy(update=self._traced(binding))
        except Absent as error:
            return told.model_copy(update={"problem": str(error), "promise": error.promise})
        except (Unparsed, Undecided) as error:
            return told.model_copy(update={"problem": f"not checked, {error}", "checked": False})
        except RecursionError:
            return told.model_copy(update={"problem": "not checked, its file is nested too deeply", "checked": False})

    def _traced(self, binding: CodeBinding) -> dict[str, object]:
        module_name, _, name = (binding.symbol or "").partition(":")
        (module, parts), *others = self._find(self._module_of(module_name), name.split("."))
        uses = tuple(self._use(name, parts, module) for name in binding.uses)
        for other, ways in others:
            for use in uses:
                if bool(self._use(use.name, ways, other).lines) is not bool(use.lines):
                    places = sorted({f"{module.path}:{parts[0].lineno}", f"{other.path}:{ways[0].lineno}"})
                    raise Undecided(f"it is defined in {' and '.join(places)}, of which one uses {use.name}")
        more = tuple(dict.fromkeys(lines_of(*other) for other in others))
        found = {"location": lines_of(module, parts), "uses": uses, "others": more}
        return {**found, "is_function": isinstance(parts[0], meanings.Function)}

    @cached_property
    def _program(self) -> Project:
        paths = {self.shown(path): path for path in self.python_files()}

        def load(shown: str) -> Module | None:
            with suppress(Unparsed):
                return Module.of(self.module(paths.get(shown, self.root / shown)))
            return None

        return Project(paths, load)

    def _use(self, name: str, parts: list[ast.stmt], module: SourceModule) -> Use:
        """Find the uses of a name, under the names by which a module has it from elsewhere, too."""
        read = self._program.module(module.path)
        lines = use_lines(name.replace(":", "."), parts, read, self._program) if read else set()
        calls = (inner for part in parts for inner in live_nodes(part) if isinstance(inner, ast.Call))
        unwritten = not lines and any(tail_of(call.func) in LOOKS_UP for call in calls)
        return Use(name=name, lines=tuple(sorted(lines)), looked_up=unwritten)

    def no_such(self, binding: CodeBinding) -> Iterator[str]:
        """Say of each name under `uses` that there is nothing of it, as far as that can be known."""
        path = self._modules.file(binding.symbol.partition(":")[0]) if binding.symbol else None
        for name in binding.uses if path else ():
            owner, colon, _ = name.partition(":")
            split = self._modules.split(name.replace(":", "."))
            try:
                if colon and not self._modules.file(owner) and self._modules.file(owner.partition(".")[0]):
                    yield f"no such name {name!r}: there is no module {owner!r} in the project"
                elif split:
                    self._find(self._module_of(split[0]), split[1])
                elif path and not colon and "." not in name and name not in (known := names_in(self.module(path))):
                    yield f"no such name {name!r} in {self.shown(path)}{meant(name, known)}"
            except Absent as error:
                if split and not error.defined:
                    yield f"no such name {name!r}: {error}"
            except (Unparsed, Undecided):
                continue

    def _module_of(self, name: str) -> SourceModule:
        """Return a module of the project by its dotted name; raise `Absent` where there is none."""
        if (path := self._modules.file(name)) is None:
            raise Absent(f"there is no module {name!r} in the project", defined=False)
        return self.module(path)

    def _origin(self, node: ast.stmt, module: SourceModule) -> str:
        """Return the absolute name of the module that an import of a module is from, if it is `from` one."""
        return origin(node, self._modules.package(self.root / module.path)) if isinstance(node, ast.ImportFrom) else ""

    def _find(self, module: SourceModule, names: list[str], hops: int = 0) -> Ways:
        """Find all that names of a module may come to, what counts first, following re-exports and aliases."""
        if not (ways := meanings.ways_to(module.tree.body, names[0]) if hops < MAX_HOPS else []):
            return self._elsewhere(module, names, hops)
        found, reasons = Ways(), list[Absent]()
        for way in ways:
            try:
                found += self._by(module, way, names, hops)
            except Absent as error:
                reasons.append(error)
            except Undecided:
                if not found:
                    raise
        if not found:
            raise reasons[0]
        return [*{parts[0]: (one, parts) for one, parts in found}.values()]

    def _by(self, module: SourceModule, node: ast.stmt, names: list[str], hops: int) -> Ways:
        """Follow one statement that gives a name its meaning."""
        if isinstance(node, Import):
            return self._imported(module, node, names, hops)
        if renamed := self._renamed(module, node, names, hops):
            return renamed
        if not any((self.root / module.path).is_relative_to(self.root / part) for part in self._implementation):
            raise Absent(f"{module.path}:{node.lineno} lies outside of the task's implementation{self._astray()}")
        return self._inside(module, [node], names[0], names[1:], hops)

    def _astray(self) -> str:
        """Return, in words, the paths of the implementation that lead nowhere: the code may be meant by one of them."""
        gone = [path for path in self._implementation if not (self.root / path).exists()]
        return f", of which {', '.join(map(repr, gone))} {'is' if len(gone) == 1 else 'are'} not there" if gone else ""

    def _imported(self, module: SourceModule, node: Import, names: list[str], hops: int) -> Ways:
        """Follow an import: to a name of a module, or to what a module that is imported holds."""
        alias = next(a for a in node.names if (a.asname or a.name.split(".")[0]) == names[0])
        source = self._origin(node, module)
        inner = ".".join(filter(None, (source, alias.name)))
        if len(names) > 1 and (source or alias.asname or "." not in alias.name) and self._modules.file(inner):
            return self._find(self._module_of(inner), names[1:], hops + 1)
        if isinstance(node, ast.Import) or not self._modules.file(source):
            at = f"{module.path}:{node.lineno}"
            raise Absent(f"{at} only imports {names[0]!r}; name the symbol where it is defined")
        return self._find(self._module_of(source), [alias.name, *names[1:]], hops + 1)

    def _renamed(self, module: SourceModule, node: ast.stmt, names: list[str], hops: int) -> Ways:
        """Follow an assignment that only gives something of the project another name; nothing where it does not."""
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        other = meanings.parts_of(value) if isinstance(value, ast.Name | ast.Attribute) else []
        here = meanings.member(module.tree.body, other[0]) if other and other[0] != names[0] else None
        if here is None:
            return []
        try:
            return self._find(module, [*other, *names[1:]], hops + 1)
        except Undecided:
            return []
        except Absent:
            leads = [self._origin(here, module)]
            leads += [alias.name for alias in here.names] if isinstance(here, ast.Import) else []
            if any(map(self._modules.file, filter(None, leads))) and len(other) <= 2:
                raise
            return []

    def _elsewhere(self, module: SourceModule, names: list[str], hops: int) -> Ways:
        """Look for a name that a module does not define in what it imports wholesale."""
        body, name = module.tree.body, names[0]
        for star in meanings.star_imports(body) if hops < MAX_HOPS else []:
            source = self._origin(star, module)
            if self._modules.file(source) and meanings.is_exported(self._module_of(source).tree.body, name):
                with suppress(Absent):
                    return self._find(self._module_of(source), names, hops + 1)
        if stub := meanings.stub_of(body, name):
            raise _promised(module, stub, name)
        if meanings.member(body, "__getattr__"):
            raise Undecided(f"{module.path} makes its names in __getattr__")
        if line := meanings.makes_names(body):
            raise Undecided(f"{module.path}:{line} makes names by an expression")
        raise Absent(f"{module.path} defines no {name!r}{_near(name, body)}", defined=False)

    def _inside(self, module: SourceModule, parts: list[ast.stmt], owner: str, names: list[str], hops: int) -> Ways:
        """Follow names into classes, from what an `owner` is; what lies inside of a function is no symbol."""
        node = parts[0]
        if not names:
            return [(module, parts)]
        if not isinstance(node, ast.ClassDef):
            if isinstance(node, Definition):
                raise Absent(f"{module.path}: {owner!r} is a function; what it defines inside cannot be named")
            raise Undecided(f"{module.path}:{node.lineno} makes {owner!r} by an expression")
        if inner := meanings.member_of(module, node, names[0]):
            beside = meanings.accessors_of(node.body, inner)
            return self._inside(module, [inner, *beside], f"{owner}.{names[0]}", names[1:], hops)
        if stub := meanings.stub_of(node.body, names[0]):
            raise _promised(module, stub, f"{owner}.{names[0]}")
        return self._inherited(module, node, owner, names, hops)

    def _inherited(self, module: SourceModule, node: ast.ClassDef, owner: str, names: list[str], hops: int) -> Ways:
        """Look for a name in the classes that a class extends; what may lie in one that is not ours is undecided."""
        full, unseen = f"{owner}.{names[0]}", hops >= MAX_HOPS
        bases = [each for each in map(meanings.parts_of, node.bases) if meanings.EMPTY_BASES.isdisjoint(each[-1:])]
        for base in bases if not unseen else []:
            above, parts = nothing = module, [ast.stmt()]
            with suppress(Absent, Undecided):
                above, parts = self._find(module, base, hops + 1)[0] if base else nothing
            if not isinstance(cls := parts[0], ast.ClassDef):
                unseen = True
                continue
            try:
                return self._inside(above, parts, cls.name, names, hops + 1)
            except Absent as error:
                if error.defined:
                    raise
        if unseen:
            raise Undecided(f"{module.path}: {owner!r} may inherit {names[0]!r}; name the class that defines it")
        above_too = ", nor does what it extends" if bases else ""
        raise Absent(f"{module.path} defines no {full!r}{above_too}{_near(names[0], node.body)}", defined=False)


LOOKS_UP = {"getattr", "globals", "vars", "eval", "exec", "__import__", "import_module", "attrgetter"}


def use_lines(name: str, within: Collection[ast.stmt], module: Module, program: Project) -> set[int]:
    """Return the lines of live code where a name, in full or not, does something; a mere mention is no use."""
    first, dot, rest = name.partition(".")
    called = program.scope_of(module.tree, module).dotted(ast.Name(first))
    wanted = {program.canonical(f"{top}{dot}{rest}", module) for top in (first, called)}
    mentioned = {inner for outer in walk(module.tree) for part in _mentions(outer) for inner in walk(part)}
    nodes: list[ast.Name | ast.Attribute] = [*module.nodes(ast.Name), *module.nodes(ast.Attribute)]
    found = set()
    for node in (each for each in nodes if isinstance(each.ctx, ast.Load) and each not in mentioned):
        if any(first_line(part) <= node.lineno <= (part.end_lineno or 0) for part in within):
            plain = chain_of(node) == name and first not in module.aliases
            if plain or program.scope_at(node, module).dotted(node) in wanted:
                found.add(node.lineno)
    return found


def names_in(module: SourceModule) -> set[str]:
    """Return every name that a module writes or imports, and those that Python has by itself."""
    found = {*dir(builtins), *module.aliases}
    found |= {part for full in module.aliases.values() for part in full.split(".")}
    for node in ast.walk(module.tree):
        for key in ("id", "attr", "arg", "name", "asname", "module"):
            value = getattr(node, key, None)
            found |= {*value.split(".")} if isinstance(value, str) else set()
    return found


def _mentions(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node where a name only stands: annotations, type tests, `except`, bare expressions."""
    match node:
        case ast.arg(annotation=ast.AST() as part) | ast.AnnAssign(annotation=part):
            yield part
        case ast.FunctionDef(returns=ast.AST() as part) | ast.AsyncFunctionDef(returns=ast.AST() as part):
            yield part
        case ast.ExceptHandler(type=ast.AST() as part) | ast.Expr(value=ast.Attribute() | ast.Name() as part):
            yield part
        case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=parts):
            yield from parts


def _near(name: str, body: list[ast.stmt]) -> str:
    return meant(name, {getattr(node, "name", "") for node in body} - {""})


def refuse_unknown_names(task: Task, root: Path) -> None:
    """Raise `UsageError` where a binding asks for the use of a name of which there is nothing, as far as is known."""
    resolver = Resolver(task, Sources(root))
    bindings = (binding for criterion in task.criteria for binding in criterion.code)
    if wrong := [f"{task.place(binding)}: {why}" for binding in bindings for why in resolver.no_such(binding)]:
        raise UsageError("\n".join(wrong))


def lines_of(module: SourceModule, parts: list[ast.stmt]) -> Location:
    """Return the lines of a definition with its decorators, and of what a property has beside its getter."""
    last = max(one.end_lineno or one.lineno for one in parts)
    return Location(path=module.path, line=min(map(first_line, parts)), last_line=last)


def _promised(module: SourceModule, stub: ast.stmt, name: str) -> Absent:
    kind = "its body does nothing" if (defined := isinstance(stub, Definition)) else "it is set to what does nothing"
    told = f"{module.path}:{stub.lineno} only promises {name!r}: {kind}"
    return Absent(told, lines_of(module, [stub]) if defined and not meanings.refuses(stub) else None)
