"""Blocks of `with`, and decorators: events that begin and end, and context managers of the program's own."""

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace

from gates.scan.automata.words import Event, Frame
from gates.scan.paths.conditions import branch
from gates.scan.paths.hot import Hot
from gates.scan.paths.joining import Joining
from gates.scan.paths.place import Place
from gates.scan.paths.state import State
from gates.scan.paths.values import Closure, Value
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, is_property, tail_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

MAX_HOPS = 4
ENDED = "<ended>"
NO_ERROR = (Value("None", constant=None),) * 3
Paths = list[State]
Run = list[tuple[State, Value]]
Made = tuple[State, ast.expr, Place]
Bind = Callable[[State, Value], State]


def as_it_is(path: State, _value: Value) -> State:
    """Return a path that takes nothing of what a context gives."""
    return path


class Contexts(Joining):
    """The part of a walk that goes into contexts and out of them."""

    project: Project
    hot: Hot
    stack: list[ast.AST]
    yields: list[Callable[[Run], Paths]]
    frames: list[Frame]
    calls: dict[Event, tuple[Frame, ...]]

    def place(self, path: State, scope: Scope) -> Place:
        """Return the place that a path has come to."""
        raise NotImplementedError

    def run(self, node: ast.expr, paths: Paths, scope: Scope) -> Run:
        """Run an expression on each path."""
        raise NotImplementedError

    def closure(self, node: ast.expr, path: State, scope: Scope) -> Closure | None:
        """Return the function of the program that an expression is."""
        raise NotImplementedError

    def behind(self, node: ast.expr, place: Place, path: State) -> Closure | None:
        """Return the function of the program that an expression at a place is."""
        raise NotImplementedError

    def enter(
        self, closure: Closure, arguments: tuple[Value, ...], named: Mapping[str, Value], path: State
    ) -> list[tuple[State, Value | None]]:
        """Walk a function where it is called."""
        raise NotImplementedError

    def context(
        self,
        value: Value,
        node: ast.expr,
        path: State,
        scope: Scope,
        inner: Callable[[Paths], Paths],
        bind: Bind = as_it_is,
    ) -> Paths:
        """Walk what stands in a context: a block that is an event, or a context manager of the program's own.

        With `bind` a path takes what the context gives to the block.
        """
        found: Paths = []
        for each, made, place in self._made_by(value.node or node, value.place or self.place(path, scope), path):
            begun = list(self.happening.entering(made, place, node))
            ends = list(self.happening.leaving(made, place, node))
            if begun or ends:
                for event in begun:
                    self.calls.setdefault(event, tuple(self.frames))
                for side, is_on in self.enabled(made, place, each):
                    after = inner([side.happens(*begun) if is_on else side])
                    found += [left.happens(*ends) if is_on else left for left in after]
                continue
            closure = self._manager(made, place, each)
            if closure is not None and closure.node not in self.stack:
                found += self._spliced(closure, made, place, each, inner, bind)
            else:
                found += self._object(value, made, place, each, inner, bind)
        return found

    def _made_by(self, node: ast.expr, place: Place, path: State, hops: int = MAX_HOPS) -> list[Made]:
        """Return what makes a context in the end: behind a partial, a lambda, a property, a table or a choice."""
        known = hops == 0 or any(True for _ in self.happening.entering(node, place, node))
        if known and not isinstance(node, ast.Name | ast.Attribute):
            return [(path, node, place)]
        closure = self._making(node, place)
        if closure is not None and closure.node not in self.stack:
            arguments, named = passed(node, place)
            found: list[Made] = []
            for after, value in self.enter(closure, arguments, named, path):
                if value is not None and value.node is not None and value.place is not None:
                    found += self._made_by(value.node, value.place, after, hops - 1)
                else:
                    found.append((after, node, place))
            return found
        further = self._further(node, place)
        for each, there in further if hops else ():
            for after, made, where in self._made_by(each, there, path, hops - 1):
                if any(True for _ in self.happening.entering(made, where, made)):
                    return [(after, made, where)]
        return [(path, node, place)]

    def _making(self, node: ast.expr, place: Place) -> Closure | None:
        """Return the lambda that a call runs, or the property that an attribute is."""
        if isinstance(node, ast.Call):
            closure = _closure_at(node.func, place)
            return closure if closure is not None and isinstance(closure.node, ast.Lambda) else None
        if not isinstance(node, ast.Attribute) or place.find(node) is not None:
            return None
        owner = place.owner_of(node.value)
        found = place.project.method(owner, node.attr) if owner is not None else None
        if found is None or not is_property(found[0]):
            return None
        instance = place.value(node.value)
        instance = instance if instance.owner else replace(instance, owner=owner)
        return Closure(found[0], place.project.scope_of(found[0], found[1]), {}, (instance,))

    def _further(self, node: ast.expr, place: Place) -> list[tuple[ast.expr, Place]]:
        """Return the expressions of which one is what makes a context."""
        if isinstance(node, ast.Call):
            return [(_called(made, node), there) for made, there in self._further(node.func, place) if _is_maker(made)]
        if isinstance(node, ast.IfExp):
            return [(node.body, place), (node.orelse, place)]
        if isinstance(node, ast.Subscript):
            behind = place.through(node.value)
            table = behind[0] if behind is not None else None
            key = place.value(node.slice).constant
            keyed = zip(table.keys, table.values, strict=True) if isinstance(table, ast.Dict) else ()
            values = [(k, v) for k, v in keyed if k is not None]
            chosen = [v for k, v in values if isinstance(k, ast.Constant) and k.value == key]
            return [(v, behind[1]) for v in chosen or [v for _, v in values]] if behind is not None else []
        behind = place.through(node) if isinstance(node, ast.Name | ast.Attribute) else None
        if behind is not None:
            return [behind, *(self._further(*behind) if isinstance(behind[0], ast.IfExp | ast.Subscript) else ())]
        owner = place.owner_of(node.value) if isinstance(node, ast.Attribute) and place.find(node) is None else None
        if owner is None or not isinstance(node, ast.Attribute):
            return []
        return [
            (b.node, Place(place.project, where, {}, place.heap))
            for b, where in place.project.attribute(owner, node.attr)
            if b.kind == "value" and isinstance(b.node, ast.expr)
        ]

    def _object(
        self, value: Value, made: ast.expr, place: Place, path: State, inner: Callable[[Paths], Paths], bind: Bind
    ) -> Paths:
        """Walk what stands in an object of the program's own: its `__enter__` before, its `__exit__` after."""
        owner = value.owner or place.owner_of(made)
        if owner is None:
            return inner([path])
        instance = replace(value, owner=owner)
        paths = inner(self._run_method(owner, "__enter__", instance, [path], bind))
        return [after for path in paths for after in self._left_by(owner, instance, path)]

    def _left_by(self, owner: ClassInfo, instance: Value, path: State) -> Paths:
        """Walk the `__exit__` of an object, which is told of no error, on a path that leaves its block anyhow else."""
        if path.ended == "raise":
            return [path]
        left = self._run_method(owner, "__exit__", instance, [path.but(ended="")], arguments=NO_ERROR)
        return [each.but(ended=path.ended or each.ended, returned=path.returned) for each in left]

    def _run_method(
        self,
        owner: ClassInfo,
        name: str,
        instance: Value,
        paths: Paths,
        bind: Bind = as_it_is,
        arguments: tuple[Value, ...] = (),
    ) -> Paths:
        found = self.project.method(owner, name)
        if found is None or found[0] not in self.hot or found[0] in self.stack:
            return paths
        closure = Closure(found[0], self.project.scope_of(found[0], found[1]), {}, (instance,))
        run = [each for path in paths if not path.ended for each in self.enter(closure, arguments, {}, path)]
        going = [bind(after, value) if value is not None else after for after, value in run]
        return [*going, *(path for path in paths if path.ended)]

    def enabled(self, node: ast.expr, place: Place, path: State) -> list[tuple[State, bool]]:
        """Fork by the argument `enabled` of a context."""
        behind = node
        where = place
        for _ in range(4):
            if isinstance(behind, ast.Call):
                break
            further = where.through(behind)
            if further is None:
                return [(path, True)]
            behind, where = further
        for keyword in behind.keywords if isinstance(behind, ast.Call) else ():
            if keyword.arg == "enabled":
                return list(branch(keyword.value, path, where))
        return [(path, True)]

    def _manager(self, node: ast.expr, place: Place, path: State) -> Closure | None:
        """Return the generator of the program that a context manager is made of."""
        if not isinstance(node, ast.Call):
            return None
        closure = self.behind(node.func, place, path) or self.closure(node.func, path, place.scope)
        function = closure.node if closure else None
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) or function not in self.hot:
            return None
        return closure if is_manager(function) else None

    def _spliced(
        self, closure: Closure, made: ast.expr, place: Place, path: State, inner: Callable[[Paths], Paths], bind: Bind
    ) -> Paths:
        """Walk a generator up to its `yield`, then what stands in the block, then the rest."""
        assert isinstance(made, ast.Call)
        outer_names, stack, kept = path.names, list(self.stack), f"{place.spot(made)}.{ENDED}"

        def block(run: Run) -> Paths:
            paths = [p for p, _ in run]
            saved, self.stack = self.stack, stack
            self.yields.append(lambda run: [p for p, _ in run])
            names = paths[0].names if paths else {}
            try:
                after = inner([bind(p.but(names=outer_names), value) for p, value in run])
            finally:
                self.yields.pop()
                self.stack = saved
            return [p.sets_aside(kept).but(names=names) for p in after if p.ended != "raise"]

        after = self.generated(closure, made, place, path, block)
        return [p.takes_up(kept).but(names=outer_names) for p in after]

    def generated(
        self, closure: Closure, made: ast.Call, place: Place, path: State, at_yield: Callable[[Run], Paths]
    ) -> Paths:
        """Walk a generator that a call makes to its end, and what is done each time that it yields."""
        self.yields.append(at_yield)
        try:
            return [each for each, _ in self.enter(closure, *passed(made, place), path)]
        finally:
            self.yields.pop()


def is_manager(function: Function | ast.Lambda) -> bool:
    """Return whether a function is a generator that a context manager is made of."""
    decorators = [] if isinstance(function, ast.Lambda) else function.decorator_list
    return any("contextmanager" in tail_of(decorator) for decorator in decorators)


def _closure_at(node: ast.expr, place: Place) -> Closure | None:
    """Return the function that a variable is set to on a path, or the lambda that it was made by."""
    found = place.find(node)
    if found is not None and found.closure is not None:
        return found.closure
    behind = place.through(node)
    return behind[1].lambda_(behind[0]) if behind is not None and isinstance(behind[0], ast.Lambda) else None


def passed(node: ast.expr, place: Place) -> tuple[tuple[Value, ...], dict[str, Value]]:
    """Return what a call passes; nothing for what is no call."""
    if not isinstance(node, ast.Call) or any(isinstance(a, ast.Starred) for a in node.args):
        return (), {}
    return tuple(map(place.value, node.args)), {k.arg: place.value(k.value) for k in node.keywords if k.arg}


def _is_maker(node: ast.expr) -> bool:
    """Return whether an expression may be called to make a context: a name, or a partial of one."""
    is_partial = isinstance(node, ast.Call) and tail_of(node.func) == "partial" and bool(node.args)
    return is_partial or isinstance(node, ast.Name | ast.Attribute)


def _called(maker: ast.expr, call: ast.Call) -> ast.Call:
    """Return the call that calling something, which may be a partial, comes to."""
    if not isinstance(maker, ast.Call):
        return ast.copy_location(ast.Call(maker, call.args, call.keywords), call)
    args, keywords = [*maker.args[1:], *call.args], [*maker.keywords, *call.keywords]
    return ast.copy_location(ast.Call(maker.args[0], args, keywords), call)
