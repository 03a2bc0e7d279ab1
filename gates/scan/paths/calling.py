"""Calls of a path: events, and the program's own functions, walked where they are called."""

import ast
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial

from gates.scan.automata.words import Event, Frame
from gates.scan.paths.concerns import Concerns
from gates.scan.paths.contexts import Run, is_manager
from gates.scan.paths.counting import MAX_WORK
from gates.scan.paths.events import Happening
from gates.scan.paths.finding import parameters_of, passed_on
from gates.scan.paths.hot import Hot
from gates.scan.paths.picking import Picking
from gates.scan.paths.state import State
from gates.scan.paths.values import Closure, Value
from gates.scan.program.module import Function, is_abstract, tail_of
from gates.scan.program.project import Project
from gates.scan.program.scope import PREPARES, Scope

MAX_DEPTH = 3
Paths = list[State]


class Calling(Picking):
    """Runs calls; the statements of the functions that these run are left to the walk."""

    prepares = PREPARES

    def __init__(self, project: Project, happening: Happening, hot: Hot) -> None:
        super().__init__(happening)
        self.project = project
        self.hot = hot
        self.walked: set[ast.AST] = set()
        self.entered: set[ast.AST] = set()
        self.tries = 0
        self.depth = 0  # of blocks
        self.stack: list[ast.AST] = []
        self.frames: list[Frame] = []
        self.calls: dict[Event, tuple[Frame, ...]] = {}
        self.yields: list[Callable[[Run], Paths]] = []
        self._quiet: dict[object, Value | None] = {}
        self._concerns = Concerns(hot)

    @cached_property
    def anywhere(self) -> frozenset[str]:
        """Return the events that some code of the program may be."""
        return frozenset().union(*self.hot.kinds.values())

    def block(self, body: list[ast.stmt], paths: Paths, scope: Scope) -> Paths:
        """Walk statements."""
        raise NotImplementedError

    def start(self, limit: int = MAX_WORK) -> None:
        """Begin a new walk, of so much work at most."""
        super().start(limit)
        self.stack, self.entered, self.tries, self.depth = [], set(), 0, 0
        self.walked = set()
        self._quiet = {}
        self.frames, self.calls = [], {}

    def matters(self, nodes: Iterable[ast.AST], scope: Scope) -> bool:
        """Return whether statements set something to what a later condition or event may tell apart."""
        return self._concerns.are_set(nodes, scope)

    def call(self, node: ast.Call, paths: Paths, scope: Scope) -> Run:
        """Run a call: what it is made of, then the event that it is, or the function that it runs."""
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.IfExp):
            return self.of_choice(node, node.func.value, paths, scope)
        parts = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        parts += [arg.value if isinstance(arg, ast.Starred) else arg for arg in node.args]
        parts += [keyword.value for keyword in node.keywords]
        for part in parts:
            if part in self.hot and not isinstance(part, ast.Lambda):
                paths = [path for path, _ in self.run(part, paths, scope)]
        return [each for path in paths for each in self._happens(node, path, scope)]

    def _happens(self, node: ast.Call, path: State, scope: Scope) -> Run:
        """Run what a call is on one path: an event, or what it runs."""
        place = self.place(path, scope)
        happened = self.happening.of_call(node, place, path)
        inner = self.closure(node.func, path, scope) if happened is not None else None
        inner = None if inner is not None and is_abstract(inner.node) else inner  # one of those that fill it in runs
        inside = self.hot.possible(inner.node) if inner is not None else frozenset()
        if happened is None or (inside and not happened[1]):
            return self._inlined(node, path, scope)
        self.calls.setdefault(happened[0], tuple(self.frames))
        ran = [self.touched(node, each, scope) for each in self._closures(node, path, scope)]
        return [(begun.happens(happened[0]), self.made(node, begun, scope)) for begun in ran]

    def _closures(self, node: ast.Call, path: State, scope: Scope) -> Paths:
        """Run the function that is passed to an event, as `optimizer.step(closure)` does first."""
        paths = [path]
        for argument in [*node.args, *(k.value for k in node.keywords)]:
            closure = self.closure(argument, path, scope)
            if closure is not None:
                paths = [after for each in paths for after, _ in self.enter(closure, (), {}, each)]
        return paths

    def _inlined(self, node: ast.Call, path: State, scope: Scope) -> Run:
        closure = self.closure(node.func, path, scope)
        if closure is None:
            return [self.built(node, path, scope)]
        return self._ran(node, closure, path, scope)

    def _ran(self, node: ast.Call, closure: Closure, path: State, scope: Scope) -> Run:
        """Walk the function that a call runs."""
        place = self.place(path, scope)
        if closure.node not in self.hot or closure.node in self.stack or is_manager(closure.node):
            return [self.built(node, path, scope)]  # what a context manager does begins where it is entered
        if len(self.stack) >= MAX_DEPTH:
            return [(path, self.made(node, path, scope))]
        arguments, named = passed_on(node, place)
        path = self.furnished(closure.bound[0], path) if closure.bound else path
        about = (
            closure.node,
            *(value.key.partition("#")[0] for value in (*closure.bound, *arguments, *named.values())),
            self._concerns.assumed(closure.node, path),
            self._concerns.kept(closure.node, closure.bound[0], path) if closure.bound else None,
        )
        if about in self._quiet:
            return [(path, self._quiet[about] or self.made(node, path, scope))]
        is_own = isinstance(node.func, ast.Attribute) and tail_of(node.func.value) == scope.self_name
        sole = is_own and self.project.method_names[tail_of(node.func)] == 1
        is_plain = closure.scope.owner is None or sole
        last = node.end_lineno or node.lineno
        direct = self.project.types.function(node, scope) is closure.node
        self.frames.append(Frame(scope.module.path, node.lineno, last, is_plain, direct=direct))
        found = self.enter(closure, arguments, named, path)
        self.frames.pop()
        if len(found) == 1 and found[0][0].words == path.words and found[0][0].heap.keys() == path.heap.keys():
            value = found[0][1]
            made = value.node if value is not None else None
            self._quiet[about] = value if made is not None and made in self.hot else None  # such as a context
        return [(after, value if value is not None else self.made(node, after, scope)) for after, value in found]

    def enter(
        self, closure: Closure, arguments: tuple[Value, ...], named: Mapping[str, Value], path: State
    ) -> list[tuple[State, Value | None]]:
        """Walk a function where it is called; return the caller's paths with what it returned."""
        node, scope = closure.node, closure.scope
        self.walked.add(node)
        self.entered.add(node)
        names = dict(closure.outer)
        names |= parameters_of(node, (*closure.bound, *arguments), {**closure.named, **named}, self.place(path, scope))
        inside = path.but(names=names, returned=None, ended="")
        if isinstance(node, ast.Lambda):
            found = self.run(node.body, [inside], scope)
            return [(after.but(names=path.names), value) for after, value in found]
        self.stack.append(node)
        try:
            ended = self.decorated(node, inside, scope)
        finally:
            self.stack.pop()
        ended = [each.but(names=path.names).forgets(path.heap) for each in ended]
        return [
            (
                e.but(names=path.names, ended="raise" if e.ended == "raise" else "", returned=None, guards=path.guards),
                e.returned,
            )
            for e in self.joined(ended)
        ]

    def decorated(self, node: Function, path: State, scope: Scope) -> Paths:
        """Walk a function's body inside of the contexts that decorate it."""
        return self._within([d for d in node.decorator_list if d in self.hot], node, scope, [path])

    def _within(self, decorators: list[ast.expr], node: Function, scope: Scope, paths: Paths) -> Paths:
        if not decorators:
            return self.block(node.body, paths, scope)
        found: Paths = []
        outer, inner = scope.outer or scope, partial(self._within, decorators[1:], node, scope)
        for path in paths:
            value = self.place(path, outer).value(decorators[0])
            found += self.context(value, decorators[0], path, outer, inner)
        return found
