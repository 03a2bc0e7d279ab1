"""Which functions of a program call which, as far as reading tells: for certain, or only perhaps."""

import ast
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gates.evidence._by_hidden_names import hidden_names, is_kept
from gates.evidence._elements import Elements
from gates.evidence._handed_on import drops_what_it_decorates, only_keeps, runs_what_it_is_given
from gates.evidence._members import Members, Unit, decorators, is_super
from gates.evidence._never_run import is_dropped, may_never_run
from gates.meanings import replaced_by
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Module
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.stub import PLAIN

CALLED_BY = ("__call__", "forward")
IMPLIED = {
    ast.With: ("__enter__", "__exit__"),
    ast.AsyncWith: ("__aenter__", "__aexit__"),
    ast.For: ("__iter__", "__next__"),
    ast.AsyncFor: ("__aiter__", "__anext__"),
}
READ_BY = frozenset({"property", "cached_property"})


@dataclass(frozen=True)
class Step:
    """A call in a function (`None` for what runs at import), and where it stands."""

    caller: Unit | None
    path: str
    line: int


Calls = dict[Unit | None, dict[Unit, Step]]


@dataclass
class CallGraph:
    """What each function calls; `escaped` is what others may call that nobody can see.

    `dropped` are functions that a decorator of the program has no use for, or whose name is given another value.
    """

    project: Project
    sure: Calls = field(default_factory=lambda: defaultdict(dict))
    perhaps: Calls = field(default_factory=lambda: defaultdict(dict))
    escaped: set[Unit] = field(default_factory=set)
    dropped: set[Unit] = field(default_factory=set)
    runs: dict[Unit, bool] = field(default_factory=dict)  # whether a function runs what it is given

    @classmethod
    def of(cls, project: Project) -> "CallGraph":
        """Read every live call of a program."""
        members = Members(project)
        graph = cls(project, escaped=set(members.called_by_others()))
        for module in project.modules.values():
            _Reader(graph, module, members).read()
        for function, _ in project.functions.values():
            if not decorators(function) <= PLAIN:
                graph.escaped.add(function)
        return graph

    def reached(self, entries: Iterable[Unit]) -> dict[Unit, Step | None]:
        """Return all that is called from some functions for certain, each with the call that leads to it."""
        found: dict[Unit, Step | None] = {unit: None for unit in dict.fromkeys(entries) if unit not in self.dropped}
        edge = deque(found)
        while edge:
            for target, step in self.sure.get(edge.popleft(), {}).items():
                if target not in found and target not in self.dropped:
                    found[target] = step
                    edge.append(target)
        return found

    def perhaps_reached(self, entries: Iterable[Unit]) -> dict[Unit, Step | None]:
        """Return all that may be called from some functions, by the way with the fewest doubts.

        Last comes what may be called by those that nobody can see.
        """
        found: dict[Unit, Step | None] = {}
        for begin in (dict.fromkeys(entries), self.escaped):
            edge: deque[tuple[Unit, Step | None]] = deque((unit, None) for unit in begin)
            while edge:
                unit, came_by = edge.popleft()
                if unit in found:
                    continue
                found[unit] = came_by
                sure = self.sure.get(unit, {})
                edge.extendleft((target, step) for target, step in sure.items() if target not in found)
                more = self.perhaps.get(unit, {})
                edge.extend((t, step) for t, step in more.items() if t not in found and t not in sure)
        return found

    def callers(self, units: Iterable[Unit]) -> list[Step]:
        """Return the calls into some functions from outside of them."""
        inside = set(units)
        steps = {s[unit] for s in self.sure.values() for unit in inside if unit in s}
        return sorted((s for s in steps if s.caller not in inside), key=lambda s: (s.path, s.line))


class _Reader:
    """Reads the calls of one module into a graph."""

    def __init__(self, graph: CallGraph, module: Module, members: Members) -> None:
        self._graph, self._module, self._members = graph, module, members
        self._project = graph.project
        self._elements = Elements(graph.project)
        self._read: set[ast.AST] = set()

    def read(self) -> None:
        """Read calls first, then the names that stand for a function without calling it."""
        live = self._module.live
        for function in (*live.get(ast.FunctionDef, []), *live.get(ast.AsyncFunctionDef, [])):
            assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
            self._decorated(function)
        for call in live.get(ast.Call, []):
            assert isinstance(call, ast.Call)
            self._call(call)
        for kind, names in IMPLIED.items():
            for node in live.get(kind, []):
                self._implied(node, names)
        for node in (*live.get(ast.Attribute, []), *live.get(ast.Name, [])):
            assert isinstance(node, ast.Attribute | ast.Name)
            if node not in self._read and isinstance(node.ctx, ast.Load):
                self._mention(node)

    def _call(self, call: ast.Call) -> None:
        scope = self._project.scope_at(call, self._module)
        self._read.add(call.func)
        called = list(self._called(call.func, scope))
        made = not is_dropped(call, scope.dotted(call.func), called, self._module)
        for unit in called:
            self._add(call, unit, sure=made or isinstance(unit, ast.ClassDef))
        if isinstance(call.func, ast.Attribute) and is_super(call.func.value):
            self._perhaps(call, self._members.beside(scope.self_class, call.func.attr) if not called else ())
        elif isinstance(call.func, ast.Attribute) and not self._is_outside(call.func.value, scope):
            owner = self._receiver(call.func.value, scope)
            if not called or (owner and self._members.is_protocol(owner)):  # whatever has a method of that name fits
                self._perhaps(call, self._members.named.get(call.func.attr, ()))
        hidden = hidden_names(call, scope, self._members)
        self._perhaps(call, hidden)
        if is_kept(call, scope):
            self._graph.escaped.update(hidden)
        for argument in (*call.args, *(word.value for word in call.keywords)):
            node = argument.value if isinstance(argument, ast.Starred) else argument
            if isinstance(node, ast.Name | ast.Attribute):
                self._handed(call, node, called, scope)

    def _handed(self, call: ast.Call, node: ast.Name | ast.Attribute, called: list[Unit], scope: Scope) -> None:
        """Take a function that is passed to a call for called, unless the program's own code only keeps it."""
        functions = [unit for unit in called if not isinstance(unit, ast.ClassDef)]
        run = any(map(self._runs, functions))
        if not called:
            named = scope.dotted(call.func)
            run = not only_keeps(call.func, named) and not is_dropped(call, named, [], self._module)
        kept = bool(called) or not run or self._unit(call) is None
        for unit in self._named(node, scope):
            self._read.add(node)
            if isinstance(unit, ast.ClassDef) and isinstance(call.func, ast.Name) and call.func.id == "isinstance":
                continue
            if self._is_read(unit):
                self._add(call, unit)
                continue
            self._add(call, unit, sure=run)
            if kept:
                self._graph.escaped.add(unit)

    def _runs(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        known = self._graph.runs
        if function not in known:
            known[function] = runs_what_it_is_given(function, self._members.owner.get(function))
        return known[function]

    def _perhaps(self, call: ast.Call, units: Iterable[Unit]) -> None:
        for unit in units:
            self._add(call, unit, sure=False)

    def _decorated(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Note a function that never runs: a decorator has no use for it, or its name stands for something else."""
        scope = self._project.scope_at(function, self._module)
        for part in function.decorator_list:
            named = scope.dotted(part.func if isinstance(part, ast.Call) else part) or ""
            own = self._project.functions.get(named)
            if own and own[0] not in self._members.owner and drops_what_it_decorates(part, own[0]):
                self._graph.dropped.add(function)
        around = self._module.parents.get(function)
        if isinstance(around, ast.Module | ast.ClassDef) and replaced_by(around.body, function.name, function.lineno):
            self._graph.dropped.add(function)

    def _implied(self, node: ast.AST, names: tuple[str, ...]) -> None:
        """Add the methods that a `with` or a loop calls on its object."""
        parts = [item.context_expr for item in getattr(node, "items", ())] or [getattr(node, "iter", None)]
        scope = self._project.scope_at(node, self._module)
        for part in parts:
            owner = scope.class_of(part) if isinstance(part, ast.expr) else None
            for unit in self._members.of(owner, names) if owner else ():
                self._add(node, unit)

    def _mention(self, node: ast.Attribute | ast.Name) -> None:
        """Take a property for called; any other function that is only named may be called by whoever gets it."""
        scope = self._project.scope_at(node, self._module)
        for unit in self._named(node, scope):
            if self._is_read(unit):
                self._add(node, unit)
            elif not isinstance(unit, ast.ClassDef):
                self._add(node, unit, sure=False)
                self._graph.escaped.add(unit)
            elif not self._is_annotation(node):
                self._add(node, unit, sure=False)

    def _is_read(self, unit: Unit) -> bool:
        return not isinstance(unit, ast.ClassDef) and bool(READ_BY & decorators(unit))

    def _is_annotation(self, node: ast.expr) -> bool:
        inner: ast.AST = node
        for around in self._module.ancestors(node):
            if isinstance(around, ast.arg) or inner in {
                getattr(around, key, None) for key in ("annotation", "returns")
            }:
                return True
            if isinstance(around, ast.stmt):
                return False
            inner = around
        return False

    def _called(self, node: ast.expr, scope: Scope) -> Iterator[Unit]:
        """Yield what a call of an expression runs."""
        found = list(self._named(node, scope)) if isinstance(node, ast.Name | ast.Attribute) else []
        for unit in found:
            yield unit
            yield from self._members.built_by(unit)
        if (not found or all(map(self._is_read, found))) and (owner := self._class_of(node, scope)):
            yield from self._members.of(owner, CALLED_BY)

    def _named(self, node: ast.Name | ast.Attribute, scope: Scope) -> Iterator[Unit]:
        """Yield the functions and classes of the program that an expression names."""
        named = self._members.meant(scope.dotted(node))
        if named in self._project.functions:
            yield from self._members.twins(named) or [self._project.functions[named][0]]
        elif named in self._project.classes:
            yield self._project.classes[named].node
        elif isinstance(node, ast.Attribute):
            owner = self._receiver(node.value, scope)
            yield from self._members.of(owner, (node.attr,)) if owner else ()
        elif isinstance(around := self._module.parents.get(node), ast.AST):
            yield from self._members.in_body(around, node.id, self._module)

    def _receiver(self, node: ast.expr, scope: Scope) -> ClassInfo | None:
        """Return the class that an attribute is looked up in: that of an object, a class itself, or what it extends."""
        if is_super(node):
            around = scope.self_class
            bases = [self._project.classes.get(base or "") for base in around.bases] if around else []
            return next((base for base in bases if base), None)
        if isinstance(node, ast.Name) and node.id == "cls" and scope.self_class:
            return scope.self_class
        return self._project.classes.get(scope.dotted(node) or "") or self._class_of(node, scope)

    def _class_of(self, node: ast.expr, scope: Scope) -> ClassInfo | None:
        """Return the class of an object, that of what a loop goes over, too."""
        return scope.class_of(node) or (self._elements.of(node, scope) if isinstance(node, ast.Name) else None)

    def _is_outside(self, node: ast.expr, scope: Scope) -> bool:
        """Return whether a receiver is known to be of a library: no method of the program is called on it."""
        kind = self._project.types.of(node, scope)
        if kind is not None:
            return kind not in self._project.classes
        named = scope.dotted(node)
        return named is not None and not any(f"{named}.".startswith(f"{own}.") for own in self._project.by_name)

    def _add(self, node: ast.AST, unit: Unit, *, sure: bool = True) -> None:
        caller = self._unit(node)
        if sure and may_never_run(node, self._module, self._project.scope_at(node, self._module)):
            sure = False
        if sure and caller is None and any(isinstance(n, ast.Lambda) for n in self._module.ancestors(node)):
            self._graph.escaped.add(unit)
            sure = False
        sure = sure and not self._is_renamed(node)
        steps = self._graph.sure if sure else self._graph.perhaps
        steps[caller].setdefault(unit, Step(caller, self._module.path, getattr(node, "lineno", 1)))

    def _is_renamed(self, node: ast.AST) -> bool:
        """Return whether a called name is imported, and given another value in any case below."""
        name = node.func if isinstance(node, ast.Call) else node
        if not isinstance(name, ast.Name) or name.id not in self._module.aliases:
            return False
        return replaced_by(self._module.tree.body, name.id, 0) is not None

    def _unit(self, node: ast.AST) -> Unit | None:
        """Return the outermost function that a node stands in."""
        around = [n for n in self._module.ancestors(node) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        return around[-1] if around else None
