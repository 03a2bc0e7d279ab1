"""Blocks of `with`, and decorators: events that begin and end, and context managers of the program's own."""

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace

from gates.scan.conditions import branch
from gates.scan.hot import Hot
from gates.scan.joining import Joining
from gates.scan.module import tail_of
from gates.scan.scope import Scope
from gates.scan.values import Closure, Event, Place, State, Value

PUSHES = frozenset({"enter_context", "enter_async_context"})
Paths = list[State]


class Contexts(Joining):
    """The part of a walk that goes into contexts and out of them."""

    hot: Hot
    stack: list[ast.AST]
    yields: list[Callable[[Paths], Paths]]

    def place(self, path: State, scope: Scope) -> Place:
        """Return the place that a path has come to."""
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

    def run(self, node: ast.expr, paths: Paths, scope: Scope) -> list[tuple[State, Value]]:
        """Run an expression on each path."""
        raise NotImplementedError

    def context(
        self, value: Value, node: ast.expr, path: State, scope: Scope, inner: Callable[[Paths], Paths]
    ) -> Paths:
        """Walk what stands in a context: a block that is an event, or a context manager of the program's own."""
        made, place = value.node or node, value.place or self.place(path, scope)
        begun = list(self.happening.entering(made, place, node))
        ends = list(self.happening.leaving(made, place, node))
        if begun or ends:
            found: Paths = []
            for side, is_on in self.enabled(made, place, path):
                after = inner([side.happens(*begun) if is_on else side])
                found += [self._left(each, ends) if is_on else each for each in after]
            return found
        closure = self._manager(made, place, path)
        if closure is not None and closure.node not in self.stack:
            return self._spliced(closure, made, place, path, inner)
        return inner([path])

    def _left(self, path: State, ends: list[Event]) -> State:
        return path.happens(*ends)

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
        return closure if any("contextmanager" in tail_of(d) for d in function.decorator_list) else None

    def _spliced(
        self, closure: Closure, made: ast.expr, place: Place, path: State, inner: Callable[[Paths], Paths]
    ) -> Paths:
        """Walk a generator up to its `yield`, then what stands in the block, then the rest."""
        assert isinstance(made, ast.Call)
        outer_names, stack = path.names, list(self.stack)

        def block(paths: Paths) -> Paths:
            saved, self.stack = self.stack, stack
            self.yields.append(lambda p: p)
            kept = {id(p): p.names for p in paths}
            names = paths[0].names if paths else {}
            try:
                after = inner([replace(p, names=outer_names) for p in paths])
            finally:
                self.yields.pop()
                self.stack = saved
            del kept
            return [replace(p, names=names, ended="") for p in after if p.ended != "raise"]

        self.yields.append(block)
        try:
            arguments = tuple(place.value(a) for a in made.args if not isinstance(a, ast.Starred))
            named = {k.arg: place.value(k.value) for k in made.keywords if k.arg}
            after = self.enter(closure, arguments, named, path)
        finally:
            self.yields.pop()
        return [replace(p, names=outer_names) for p, _ in after]

    def is_stack(self, node: ast.expr) -> bool:
        """Return whether a context is an exit stack."""
        return isinstance(node, ast.Call) and tail_of(node.func) in {"ExitStack", "AsyncExitStack"}

    def pending(self, path: State, node: ast.expr, scope: Scope) -> str:
        """Return where a path keeps what an exit stack has to leave."""
        return f"{self.place(path, scope).key(node)}.<entered>"

    def pushed_on(self, node: ast.Call, path: State, scope: Scope) -> Paths:
        """Enter a context on an exit stack of a function further out."""
        assert isinstance(node.func, ast.Attribute)
        key = self.pending(path, node.func.value, scope)
        kept = path.heap.get(key)
        if kept is None or not isinstance(kept.constant, tuple):
            return [path]
        found: Paths = []
        for each, value in self.run(node.args[0], [path], scope):
            made, place = value.node or node.args[0], value.place or self.place(each, scope)
            begun = list(self.happening.entering(made, place, node))
            ends = list(self.happening.leaving(made, place, node))
            for side, is_on in self.enabled(made, place, each):
                left = replace(kept, constant=(*ends, *kept.constant))
                found.append(side.happens(*begun).stores(key, left) if is_on else side)
        return found
