"""Expressions, calls and contexts of a path, in Python's order; what has no events is the value that it is."""

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property

from gates.scan.paths.calls import closure, given, parameters_of
from gates.scan.paths.conditions import branch
from gates.scan.paths.events import Happening
from gates.scan.paths.hot import MAX_DEPTH, Hot
from gates.scan.paths.joining import Joining
from gates.scan.paths.place import Place, passed_on
from gates.scan.paths.state import Closure, Event, Frame, State, Value
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import is_abstract, tail_of
from gates.scan.program.nodes import kept
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

NO_ERROR = (Value("None", constant=None),) * 3
Paths = list[State]
Run = list[tuple[State, Value]]
Bind = Callable[[State, Value], State]


def as_it_is(path: State, _value: Value) -> State:
    """Return a path that takes nothing of what a context gives."""
    return path


class Running(Joining):
    """Runs expressions and calls; statements are left to the walk."""

    def __init__(self, project: Project, happening: Happening, hot: Hot) -> None:
        super().__init__(happening)
        self.project = project
        self.hot = hot
        self.walked: set[ast.AST] = set()
        self.tries = 0
        self.stack: list[ast.AST] = []
        self.frames: list[Frame] = []
        self.calls: dict[Event, tuple[Frame, ...]] = {}

    @cached_property
    def anywhere(self) -> frozenset[str]:
        """Return the events that some code of the program may be."""
        return frozenset().union(*self.hot.kinds.values())

    def block(self, body: list[ast.stmt], paths: Paths, scope: Scope) -> Paths:
        """Walk statements."""
        raise NotImplementedError

    def start(self) -> None:
        """Begin a new walk."""
        super().start()
        self.stack, self.tries = [], 0
        self.walked = set()
        self.frames, self.calls = [], {}

    def place(self, path: State, scope: Scope) -> Place:
        """Return the place that a path has come to."""
        return Place(self.project, scope, path.names, path.heap, path.turns)

    def tag(self, path: State) -> str:
        """Return what tells an object of this turn from one of the next."""
        return f"#{path.turns}" if path.turns else ""

    def run(self, node: ast.expr, paths: Paths, scope: Scope) -> Run:  # a case for each expression
        """Run an expression on each path; return the paths with its value."""
        if isinstance(node, ast.IfExp):
            return self._chosen(node, paths, scope)
        if node not in self.hot:
            return [self.built(node, path, scope) for path in paths]
        if isinstance(node, ast.Call):
            return self.call(node, paths, scope)
        if isinstance(node, ast.Lambda):
            return [(path, self.place(path, scope).value(node)) for path in paths]
        if isinstance(node, ast.Await | ast.NamedExpr):
            found = self.run(node.value, paths, scope)
            if isinstance(node, ast.NamedExpr):
                return [(path.binds(node.target.id, value), value) for path, value in found]
            return found
        if isinstance(node, ast.BoolOp):
            return self._short(node, paths, scope)
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                paths = [path for path, _ in self.run(part, paths, scope)]
        return [(path, self.place(path, scope).value(node)) for path in paths]

    def _chosen(self, node: ast.IfExp, paths: Paths, scope: Scope) -> Run:
        plain = not any(isinstance(part, ast.Constant | ast.Call | ast.Lambda) for part in (node.body, node.orelse))
        if node not in self.hot and plain and not any(map(tail_of, (node.body, node.orelse))):
            return [(path, self.place(path, scope).value(node)) for path in paths]
        found: Run = []
        for path in paths:
            for side, truth in branch(node.test, path, self.place(path, scope)):
                found += self.run(node.body if truth else node.orelse, [side], scope)
        return found

    def _short(self, node: ast.BoolOp, paths: Paths, scope: Scope) -> Run:
        """Run `a and b`: the second part only where the first lets it."""
        found: Run = []
        decided = isinstance(node.op, ast.Or)
        for at, part in enumerate(node.values):
            after = self.run(part, paths, scope)
            if at == len(node.values) - 1:
                return [*found, *after]
            paths = []
            for path, value in after:
                for side, truth in branch(part, path, self.place(path, scope)):
                    if truth is decided:
                        found.append((side, value))
                    else:
                        paths.append(side)
        return found

    def made(self, node: ast.expr, path: State, scope: Scope) -> Value:
        """Return the value of an expression that has no events; what a call makes is another object each time."""
        value = self.place(path, scope).value(node)
        if isinstance(node, ast.Call) and value.node is node:
            is_picked = isinstance(node.func, ast.Call)  # a class: `getattr(torch.optim, name)(...)`
            name = tail_of(node.func.func if isinstance(node.func, ast.Call) else node.func)
            if is_picked or name[:1].isupper() or name[:4] in {"get_", "make", "buil", "crea"}:
                return replace(value, key=f"{name}@{scope.module.path}:{node.lineno}{self.tag(path)}")
        return value

    def built(self, node: ast.expr, path: State, scope: Scope) -> tuple[State, Value]:
        """Return the path with what an expression makes, and what the constructor keeps of what it was passed."""
        value = self.made(node, path, scope)
        return self.furnished(value, path) if value.node is node else path, value

    def furnished(self, instance: Value, path: State) -> State:
        """Return the path with what an object keeps of what its constructor was passed."""
        if instance.node is None or instance.place is None or any(k.startswith(f"{instance.key}.") for k in path.heap):
            return path
        made, where = instance.place.made_by(instance.node)
        owner = self.project.classes.get(where.dotted(made.func) or "") if made is not None else None
        if made is None or owner is None or owner.twice or instance.owner not in {None, owner}:
            return path
        kept = dict(given(made, instance, owner, where))
        return path.but(heap={**path.heap, **kept}) if kept else path

    def of_choice(self, node: ast.Call, chosen: ast.IfExp, paths: Paths, scope: Scope) -> Run:
        """Run the method of what is chosen of two: `(scaler.scale(loss) if scaler else loss).backward()`."""
        found: Run = []
        for path in paths:
            for side, truth in branch(chosen.test, path, self.place(path, scope)):
                found += self.call(kept(node, _sides)[not truth], [side], scope)
        return found

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
        inner = closure(node.func, self.place(path, scope)) if happened is not None else None
        inner = None if inner is not None and is_abstract(inner.node) else inner  # one of those that fill it in runs
        inside = self.hot.possible(inner.node) if inner is not None else frozenset()
        if happened is None or (inside and not happened[1]):
            return self._ran(node, path, scope)
        self.calls.setdefault(happened[0], tuple(self.frames))
        ran = self._closures(node, path, scope)
        return [(begun.happens(happened[0]), self.made(node, begun, scope)) for begun in ran]

    def _closures(self, node: ast.Call, path: State, scope: Scope) -> Paths:
        """Run the function that is passed to an event, as `optimizer.step(closure)` does first."""
        paths = [path]
        for argument in [*node.args, *(k.value for k in node.keywords)]:
            passed = closure(argument, self.place(path, scope))
            if passed is not None:
                paths = [after for each in paths for after, _ in self.enter(passed, (), {}, each)]
        return paths

    def _ran(self, node: ast.Call, path: State, scope: Scope) -> Run:
        """Walk the function that a call runs."""
        place = self.place(path, scope)
        run = closure(node.func, place)
        if run is None or run.node not in self.hot or run.node in self.stack:
            return [self.built(node, path, scope)]
        if len(self.stack) >= MAX_DEPTH:
            return [(path, self.made(node, path, scope))]
        arguments, named = passed_on(node, place)
        path = self.furnished(run.bound[0], path) if run.bound else path
        is_own = isinstance(node.func, ast.Attribute) and tail_of(node.func.value) == scope.self_name
        sole = is_own and self.project.method_names[tail_of(node.func)] == 1
        is_plain = run.scope.owner is None or sole
        self.frames.append(Frame(scope.module.path, node.lineno, node.end_lineno or node.lineno, is_plain))
        found = self.enter(run, arguments, named, path)
        self.frames.pop()
        return [(after, value if value is not None else self.made(node, after, scope)) for after, value in found]

    def enter(
        self, run: Closure, arguments: tuple[Value, ...], named: Mapping[str, Value], path: State
    ) -> list[tuple[State, Value | None]]:
        """Walk a function where it is called; return the caller's paths with what it returned."""
        node, scope = run.node, run.scope
        self.walked.add(node)
        names = {**run.outer, **parameters_of(node, (*run.bound, *arguments), named, self.place(path, scope))}
        inside = path.but(names=names, returned=None, ended="")
        if isinstance(node, ast.Lambda):
            found = self.run(node.body, [inside], scope)
            return [(after.but(names=path.names), value) for after, value in found]
        self.stack.append(node)
        try:
            ended = self.block(node.body, [inside], scope)
        finally:
            self.stack.pop()
        ended = [each.but(names=path.names) for each in ended]
        return [
            (
                e.but(names=path.names, ended="raise" if e.ended == "raise" else "", returned=None, guards=path.guards),
                e.returned,
            )
            for e in self.joined(ended)
        ]

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
        made, place = value.node or node, value.place or self.place(path, scope)
        begun = list(self.happening.entering(made, place, node))
        ends = list(self.happening.leaving(made, place, node))
        if begun or ends:
            for event in begun:
                self.calls.setdefault(event, tuple(self.frames))
            return [left.happens(*ends) for left in inner([path.happens(*begun)])]
        return self._object(value, made, place, path, inner, bind)

    def _object(
        self, value: Value, made: ast.expr, place: Place, path: State, inner: Callable[[Paths], Paths], bind: Bind
    ) -> Paths:
        """Walk what stands in an object of the program's own: its `__enter__` before, its `__exit__` after."""
        owner = value.owner or place.owner_of(made)
        if owner is None:
            return inner([path])
        instance = replace(value, owner=owner)
        paths = inner(self._methodmethod(owner, "__enter__", instance, [path], bind))
        return [after for path in paths for after in self._left_by(owner, instance, path)]

    def _left_by(self, owner: ClassInfo, instance: Value, path: State) -> Paths:
        """Walk the `__exit__` of an object, which is told of no error, on a path that leaves its block anyhow else."""
        if path.ended == "raise":
            return [path]
        left = self._methodmethod(owner, "__exit__", instance, [path.but(ended="")], arguments=NO_ERROR)
        return [each.but(ended=path.ended or each.ended, returned=path.returned) for each in left]

    def _methodmethod(
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
        method = Closure(found[0], self.project.scope_of(found[0], found[1]), {}, (instance,))
        run = [each for path in paths if not path.ended for each in self.enter(method, arguments, {}, path)]
        going = [bind(after, value) if value is not None else after for after, value in run]
        return [*going, *(path for path in paths if path.ended)]


def _sides(node: ast.Call) -> tuple[ast.Call, ast.Call]:
    """Return the calls of a method of the one and of the other side of a choice."""
    assert isinstance(node.func, ast.Attribute)
    assert isinstance(node.func.value, ast.IfExp)
    one, other = (
        ast.copy_location(ast.Attribute(part, node.func.attr, ast.Load()), node.func)
        for part in (node.func.value.body, node.func.value.orelse)
    )
    return tuple(ast.copy_location(ast.Call(func, node.args, node.keywords), node) for func in (one, other))  # type: ignore[return-value]  # two
