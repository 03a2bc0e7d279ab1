"""What an object may be: the expressions that made it, through variables, attributes, containers, calls and returns.

Which way the program takes is not asked: a value is an origin where some way leads from it. `path` says what is taken
out of a container on the way: a place of a tuple, or `None` for any element.
"""

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from gates.scan.analyses.reading.call_sites import MAX_SITES, calls_of
from gates.scan.analyses.reading.constructors import declared, passed_for
from gates.scan.analyses.reading.containers import Path, Way, element, is_same, places_in, taken_from
from gates.scan.analyses.reading.uncut import cut_again, is_put_uncut, is_uncut
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Binding, Function, Module, is_abstract, tail_of
from gates.scan.program.nodes import inner, kept, walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import SAME, Scope

MAX_FOUND, MAX_ASKED, MAX_WORK = 120, 4, 4_000
MAX_HEIRS = 8
Sites = Iterable[tuple[ast.Call, Module]]
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
ADDS = frozenset({"append", "add", "insert", "appendleft", "register", "extend"})
FETCHES = frozenset({"get", "setdefault", "pop"})


@dataclass(frozen=True)
class Origin:
    """An expression that an object may have been made by, and where it stands."""

    node: ast.expr
    scope: Scope

    @property
    def module(self) -> Module:
        """Return the file that it stands in."""
        return self.scope.module


class Origins:
    """Answers what an object may be; `sites` are the calls of a function by which its parameters are followed.

    With its `graph` it is no longer what code cuts off from that.
    """

    def __init__(
        self, project: Project, sites: Callable[[ast.AST], Sites] | None = None, *, graph: bool = False
    ) -> None:
        self._graph = graph
        self._project = project
        self._sites = sites or self.called
        self._asked: set[ast.expr] = set()
        self._circles = 0
        self._left = MAX_WORK
        self._holding: dict[ast.expr, ClassInfo | None] = {}

    def of(self, node: ast.expr, scope: Scope) -> list[Origin]:
        """Return the expressions that an object may have passed through as itself, the nearest first."""
        return [Origin(found, where) for found, where, path in self.ways(node, scope) if not path]

    def ways(self, node: ast.expr, scope: Scope) -> list[Way]:
        """Return these and the containers that it was taken out of, each with what was taken."""
        seen: dict[tuple[ast.expr, Path], Way] = {}
        todo: list[Way] = [(node, scope, ())]
        self._left = self._left if self._asked else MAX_WORK
        while todo and len(seen) < MAX_FOUND and self._left:
            way = todo.pop(0)
            self._left -= 1
            if (way[0], way[2]) not in seen and len(way[2]) < 5:
                seen[(way[0], way[2])] = way
                todo += self._behind(*way)
        return list(seen.values())

    def classes(self, node: ast.expr, scope: Scope) -> list[ClassInfo]:
        """Return the classes of the program that an object may be of."""
        named = self._project.types.of(node, scope)
        if named is not None:
            return [self._project.classes[named]] if named in self._project.classes else []
        found = (self._project.types.of(origin.node, origin.scope) for origin in self.of(node, scope))
        return [self._project.classes[name] for name in dict.fromkeys(found) if name in self._project.classes]

    def called(self, function: ast.AST) -> Iterator[tuple[ast.Call, Module]]:
        """Yield the calls that run a function, as far as their names and objects tell."""
        yield from calls_of(function, self._project)

    def _behind(self, node: ast.expr, scope: Scope, path: Path) -> Iterator[Way]:  # noqa: C901  # a case for each
        if isinstance(node, ast.Name):
            yield from self._named(node, scope, path)
        elif isinstance(node, ast.Attribute):
            owner = scope.class_of(node.value) or self._held_by(node.value, scope)
            for binding, there in self._project.attribute(owner, node.attr) if owner else ():
                yield from self._bound(binding, there, node.attr, path)
            if owner is not None and node.attr in declared(owner):
                yield from self._given(node, owner, scope, path)
            if path and owner is not None:
                yield from self._added(owner.node, node, owner.scope.module, path)
        elif isinstance(node, ast.Subscript):
            at = node.slice.value if isinstance(node.slice, ast.Constant) else None
            yield node.value, scope, (at if isinstance(at, int) else None, *path)
        elif isinstance(node, ast.Call):
            yield from self._call(node, scope, path)
        elif isinstance(node, ast.IfExp):
            yield from (
                (part, scope, path) for part in (node.body, node.orelse) if not (self._graph and is_uncut(part, node))
            )
        elif isinstance(node, ast.BoolOp):
            yield from ((part, scope, path) for part in node.values)
        elif isinstance(node, ast.NamedExpr | ast.Await | ast.Starred):
            yield node.value, scope, path
        elif path:
            yield from element(node, scope, path)

    def _given(self, node: ast.Attribute, owner: ClassInfo, scope: Scope, path: Path) -> Iterator[Way]:
        """Yield what the makers of a record pass for one of its fields."""
        if node in self._asked or len(self._asked) == MAX_ASKED:
            self._circles += 1
            return
        self._asked.add(node)
        made = [origin for origin in self.of(node.value, scope) if isinstance(origin.node, ast.Call)]
        self._asked.discard(node)
        for origin in made:
            value = passed_for(node.attr, origin.node, owner) if self._makes(origin, owner) else None  # type: ignore[arg-type]  # calls
            if value is not None:
                yield value, origin.scope, path

    def _makes(self, origin: Origin, owner: ClassInfo) -> bool:
        """Return whether a call is the constructor of a class."""
        return isinstance(origin.node, ast.Call) and origin.scope.dotted(origin.node.func) == owner.name

    def _held_by(self, node: ast.expr, scope: Scope) -> ClassInfo | None:
        """Return the one class of the program that callers pass an object of."""
        if not isinstance(node, ast.Name) or node.id == scope.self_name:
            return None
        if node not in self._holding:
            if node in self._asked or len(self._asked) == MAX_ASKED:  # what is asked on the way to itself tells nothing
                self._circles += 1
                return None
            before = self._circles
            self._asked.add(node)
            found = self.classes(node, scope)
            self._asked.discard(node)
            sole = found[0] if len(found) == 1 and self._left else None
            if not self._left or (self._asked and self._circles > before):
                return sole
            self._holding[node] = sole
        return self._holding[node]

    def _named(self, node: ast.Name, scope: Scope, path: Path) -> Iterator[Way]:
        for around in scope.module.ancestors(node):
            if isinstance(around, COMPREHENSIONS):
                for part in around.generators:
                    for taken in places_in(part.target, node.id):
                        yield part.iter, scope, (None, *taken, *path)
                        return
            elif isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                break
        found = scope.lookup(node.id)
        body = found[0].function if found is not None else None
        if self._graph and body is not None and node.id in kept(body, cut_again):
            return
        for star in scope.module.stars if found is None else ():
            yield from self._imported(f"{star}.{node.id}", scope, path)
        for binding in found[1] if found else ():
            yield from self._bound(binding, found[0], node.id, path)  # type: ignore[index]  # it was found
        if path and found is not None:
            yield from self._added(found[0].function or found[0].module.tree, node, found[0].module, path)

    def _bound(self, binding: Binding, scope: Scope, name: str, path: Path) -> Iterator[Way]:
        node = binding.node
        if binding.kind in {"value", "enter"} and isinstance(node, ast.expr):
            yield node, scope, path
        elif binding.kind == "item" and isinstance(node, ast.expr):
            yield node, scope, (binding.index, *path)
        elif binding.kind == "import":
            yield from self._imported(binding.dotted, scope, path)
        elif binding.kind == "parameter":
            yield from self._passed(name, scope, path)
        elif binding.kind == "opaque":
            for loop in inner(scope.function or scope.module.tree, ast.For, ast.AsyncFor):
                if isinstance(loop, ast.For | ast.AsyncFor):
                    for taken in places_in(loop.target, name):
                        yield loop.iter, scope, (None, *taken, *path)
            yield from self._starred(name, scope, path)

    def _imported(self, dotted: str, scope: Scope, path: Path) -> Iterator[Way]:
        origin, _, name = dotted.rpartition(".")
        module = self._project.find_module(origin, scope.module) if origin else None
        for binding in module.bindings.get(name, ()) if module is not None and module is not scope.module else ():
            if module is not None and binding.kind in {"value", "item"}:
                yield from self._bound(binding, self._project.scope_of(module.tree, module), name, path)

    def _passed(self, name: str, scope: Scope, path: Path) -> Iterator[Way]:
        """Yield what callers pass for a parameter, and its default."""
        function = scope.function
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) or name == scope.self_name:
            return
        for call, module in list(self._sites(function))[:MAX_SITES]:
            where = self._project.scope_at(call, module)
            value = argument(call, function, name, bound=scope.self_name is not None and scope.owner is not None)
            if value is not None:
                yield value, where, path
            for more in call.keywords if value is None else ():
                if more.arg is None:
                    yield more.value, where, (None, *path)
            if value is None:
                yield from ((rest, where, (at, *path)) for rest, at in _spread(call, function, name, scope))

    def _starred(self, name: str, scope: Scope, path: Path) -> Iterator[Way]:
        """Yield what callers pass for `*args` and `**options`."""
        function = scope.function
        if not path or not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            return
        own = {arg.arg for arg in (*function.args.args, *function.args.kwonlyargs)}
        rest = len(function.args.args) - (scope.owner is not None)
        many, named = function.args.vararg, function.args.kwarg
        for call, module in (
            list(self._sites(function))[:MAX_SITES] if name in {arg.arg for arg in (many, named) if arg} else ()
        ):
            where = self._project.scope_at(call, module)
            if many is not None and many.arg == name:
                given = call.args[max(rest, 0) :]
                given = given[path[0] : path[0] + 1] if path[0] is not None else given
                yield from ((arg, where, path[1:]) for arg in given)
            else:
                for more in call.keywords:
                    if more.arg not in own:
                        yield more.value, where, path if more.arg is None else path[1:]

    def _added(self, body: ast.AST, holder: ast.expr, module: Module, path: Path) -> Iterator[Way]:
        """Yield what code adds to a list or a mapping later."""
        for tail in ADDS & module.calls.keys():
            for call in module.calls[tail]:
                if not isinstance(call.func, ast.Attribute) or not call.args or not is_same(call.func.value, holder):
                    continue
                if any(around is body for around in module.ancestors(call)):
                    where = self._project.scope_at(call, module)
                    yield call.args[-1], where, path if tail == "extend" else path[1:]
        for node in walk(body):
            for target in node.targets if isinstance(node, ast.Assign) else ():
                is_put = isinstance(target, ast.Subscript) and is_same(target.value, holder)
                if is_put and not (self._graph and is_put_uncut(node.value, node, module)):  # type: ignore[attr-defined]
                    yield node.value, self._project.scope_at(node, module), path[1:]  # type: ignore[attr-defined]  # an assignment

    def _call(self, node: ast.Call, scope: Scope, path: Path) -> Iterator[Way]:
        tail = tail_of(node.func)
        targets = self._targets(node, scope)
        made = self._project.classes.get(scope.dotted(node.func) or "") if path else None
        if made is not None:
            yield from self._kept_in(made, path)
        elif targets:
            for target in targets:
                inside = self._project.scope_of(target, scope.module)
                for result in inner(target, ast.Return):
                    told = result.value if isinstance(result, ast.Return) else None
                    if told is not None and not (self._graph and is_uncut(told, target)):
                        yield told, inside, path
        elif isinstance(node.func, ast.Attribute) and tail in SAME:
            yield node.func.value, scope, path
        elif isinstance(node.func, ast.Attribute) and tail in FETCHES:
            yield node.func.value, scope, (None, *path)
            yield from ((default, scope, path) for default in node.args[1:2])
        elif path:
            yield from taken_from(node, tail, scope, path)

    def _targets(self, node: ast.Call, scope: Scope) -> list[Function]:
        """Return what a call runs: of a method that a class leaves to those that extend it, theirs."""
        target = self._project.types.function(node, scope)
        holder = node.func.value if isinstance(node.func, ast.Attribute) else None
        if target is None and isinstance(holder, ast.Name) and holder.id == scope.self_name:
            return self._kept_functions(node.func, scope)
        if target is None or not is_abstract(target) or holder is None:
            return [target] if target is not None else []
        owner = scope.class_of(holder)
        below = (info.methods.get(target.name) for info in (self._project.below(owner) if owner is not None else ()))
        return [each for each in below if each is not None and not is_abstract(each)][:MAX_HEIRS] or [target]

    def _kept_functions(self, node: ast.expr, scope: Scope) -> list[Function]:
        """Return the functions of which an object keeps one that it calls: `self.process(batch)`."""
        if node in self._asked or len(self._asked) == MAX_ASKED:
            self._circles += 1
            return []
        self._asked.add(node)
        found = (origin.scope.dotted(origin.node) for origin in self.of(node, scope))
        self._asked.discard(node)
        functions = self._project.functions
        return [functions[name][0] for name in dict.fromkeys(found) if name in functions][:MAX_HEIRS]

    def _kept_in(self, owner: ClassInfo, path: Path) -> Iterator[Way]:
        """Yield what is in an object of a class that is a container: what it makes by itself for a key it lacks."""
        for name in ("__missing__", "__getitem__"):
            found = self._project.method(owner, name)
            for result in inner(found[0], ast.Return) if found else ():
                if found and isinstance(result, ast.Return) and result.value is not None:
                    yield result.value, self._project.scope_of(found[0], found[1]), path[1:]
        for info in self._project.order_of(owner):
            begun = info.methods.get("__init__")
            if begun is None or not any(str(base).endswith("defaultdict") for base in info.bases):
                continue
            where = self._project.scope_of(begun, info.scope.module)
            for call in inner(begun, ast.Call):
                if isinstance(call, ast.Call) and tail_of(call.func) == "__init__":
                    yield from ((ast.Call(arg, [], []), where, path[1:]) for arg in call.args[:1])


def _spread(call: ast.Call, function: Function, name: str, scope: Scope) -> Iterator[tuple[ast.expr, int]]:
    """Yield the `*args` of a call that a parameter is taken out of, and at which place of these."""
    names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)][scope.self_name is not None :]
    first = next((at for at, arg in enumerate(call.args) if isinstance(arg, ast.Starred)), len(names))
    if name in names and names.index(name) >= first and len(call.args) == first + 1:
        yield call.args[first].value, names.index(name) - first  # type: ignore[attr-defined]  # it is starred
