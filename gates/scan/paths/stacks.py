"""Exit stacks: contexts that a call enters, and that end where the stack does."""

import ast
from dataclasses import replace

from gates.scan.paths.joining import Joining
from gates.scan.paths.place import Place
from gates.scan.paths.state import State
from gates.scan.paths.values import Value
from gates.scan.program.module import Function, tail_of
from gates.scan.program.nodes import inner
from gates.scan.program.scope import Scope

PUSHES = frozenset({"enter_context", "enter_async_context"})
ENTERED = "<entered>"
Paths = list[State]
Run = list[tuple[State, Value]]


class Stacks(Joining):
    """The part of a walk that keeps what exit stacks have to leave."""

    def place(self, path: State, scope: Scope) -> Place:
        """Return the place that a path has come to."""
        raise NotImplementedError

    def run(self, node: ast.expr, paths: Paths, scope: Scope) -> Run:
        """Run an expression on each path."""
        raise NotImplementedError

    def enabled(self, node: ast.expr, place: Place, path: State) -> list[tuple[State, bool]]:
        """Fork by the argument `enabled` of a context."""
        raise NotImplementedError

    def is_stack(self, node: ast.expr) -> bool:
        """Return whether a context is an exit stack."""
        return isinstance(node, ast.Call) and tail_of(node.func) in {"ExitStack", "AsyncExitStack"}

    def pending(self, path: State, node: ast.expr, scope: Scope) -> str:
        """Return where a path keeps what an exit stack has to leave."""
        return f"{self.place(path, scope).key(node)}.{ENTERED}"

    def left(self, path: State, key: str) -> State:
        """Return the path after an exit stack has left what was entered on it."""
        events = path.heap[key].constant if key in path.heap else ()
        return path.happens(*events) if isinstance(events, tuple) else path

    def pushed_on(self, node: ast.Call, path: State, scope: Scope) -> Paths:
        """Enter a context on an exit stack of a function further out."""
        assert isinstance(node.func, ast.Attribute)
        key = self.pending(path, node.func.value, scope)
        made = self.place(path, scope).value(node.func.value).node
        is_handed = made is not None and self.is_stack(made) and _returns(scope.function, node.func.value)
        new = Value(key, constant=()) if is_handed else None
        kept = path.heap.get(key, new)
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


def _returns(function: Function | ast.Lambda | None, node: ast.expr) -> bool:
    """Return whether a function returns a variable."""
    found = inner(function, ast.Return) if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) else ()
    values = [each.value for each in found if isinstance(each, ast.Return) and each.value is not None]
    return any(tail_of(value) == tail_of(node) for value in values)
