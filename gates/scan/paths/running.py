"""Expressions and calls of a path: run in Python's order; what has no events is taken for the value that it is."""

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial

from gates.code.syntax import Comprehension
from gates.scan.paths.contexts import Contexts, Named, Paths, Run, Values, given, is_manager, parameters_of
from gates.scan.paths.hot import MAX_DEPTH
from gates.scan.paths.place import Branches, branch, passed_on
from gates.scan.paths.state import Closure, Event, Frame, State, Value
from gates.scan.program.module import Function, tail_of
from gates.scan.program.nodes import kept
from gates.scan.program.scope import Scope


class Running(Contexts):
    """Runs expressions and calls; statements are left to the walk."""

    block: Callable[[Sequence[ast.stmt], Paths, Scope], Paths]

    @cached_property
    def anywhere(self) -> frozenset[str]:
        """Return the events that some code of the program may be."""
        return frozenset().union(*self.hot.kinds.values())

    def marks(self, loop: ast.expr | ast.stmt, scope: Scope) -> list[Event]:
        """Return the marks of a loop: where it is entered, where a turn begins, where it is left."""
        line, path = loop.lineno, scope.module.path
        return [Event(name, (), path, line, line) for name in ("loop", "turn", "done")]

    def tag(self, path: State) -> str:
        """Return what tells an object of this turn from one of the next."""
        return f"#{path.turns}" if path.turns else ""

    def run(self, node: ast.expr, paths: Paths, scope: Scope) -> Run:  # noqa: C901  # a case for each expression
        """Run an expression on each path; return the paths with its value."""
        if isinstance(node, ast.IfExp):
            return self._chosen(node, paths, scope)
        if isinstance(node, ast.Yield | ast.YieldFrom) and self.yields:
            given = node.value if isinstance(node, ast.Yield) else None
            run = self.run(given, paths, scope) if given is not None else [(path, Value("None")) for path in paths]
            return [(path, Value("None")) for path in self.yields[-1](run)]
        if node not in self.hot:
            return [self.built(node, path, scope) for path in paths]
        if isinstance(node, ast.Call):
            return self.call(node, paths, scope)
        if isinstance(node, ast.Lambda):
            return [(path, self.place(path, scope).value(node)) for path in paths]
        if isinstance(node, Comprehension):
            return self._comprehension(node, paths, scope)
        if isinstance(node, ast.Await):
            return self.run(node.value, paths, scope)
        if isinstance(node, ast.NamedExpr):
            return [(path.binds(node.target.id, value), value) for path, value in self.run(node.value, paths, scope)]
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
        sides = self.sides(node.test, paths, scope)
        return [each for path, truth in sides for each in self.run(node.body if truth else node.orelse, [path], scope)]

    def sides(self, test: ast.expr, paths: Paths, scope: Scope) -> Branches:
        """Yield each path for each side that a condition can take."""
        return (side for path in paths for side in branch(test, path, self.place(path, scope)))

    def _short(self, node: ast.BoolOp, paths: Paths, scope: Scope) -> Run:
        """Run `a and b`: the second part only where the first lets it."""
        found, decided = Run(), isinstance(node.op, ast.Or)
        *parts, last = node.values
        for part in parts:
            after, paths = self.run(part, paths, scope), []
            for path, value in after:
                for side, truth in branch(part, path, self.place(path, scope)):
                    if truth is decided:
                        found.append((side, value))
                    else:
                        paths.append(side)
        return [*found, *self.run(last, paths, scope)]

    def _comprehension(self, node: Comprehension, paths: Paths, scope: Scope) -> Run:
        """Run a comprehension as a loop of two turns."""
        for generator in node.generators:
            paths = [path for path, _ in self.run(generator.iter, paths, scope)]
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        loop, mark, done = self.marks(node, scope)
        before = frozenset().union(*(path.words for path in paths))
        paths = [path.happens(loop) for path in paths]
        for turn in (1, 2):
            paths = [p.but(turns=f"{p.turns}/{node.lineno}.{turn}").happens(mark) for p in paths]
            for part in parts:
                paths = [path for path, _ in self.run(part, paths, scope)]
            paths = [p.but(turns=p.turns.rpartition("/")[0]) for p in paths]
        paths = [path.happens(done).without_idle_loop(before) for path in paths]
        return [(path, self.place(path, scope).value(node)) for path in paths]

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
        value, path = self.made(node, path, scope), self.touched(node, path, scope)
        return self.furnished(value, path) if value.node is node else path, value

    def touched(self, node: ast.expr, path: State, scope: Scope) -> State:
        """Forget the attributes of the own instance that a method of it sets which is not walked."""
        func = node.func if isinstance(node, ast.Call) else None
        if not isinstance(func, ast.Attribute) or not scope.self_name or tail_of(func.value) != scope.self_name:
            return path
        instance = path.names.get(scope.self_name)
        owner = scope.self_class if instance is None else instance.owner
        method = self.project.method(owner, func.attr) if owner is not None else None
        for name in sorted(self.project.attributes_set(method[0], owner)) if method and owner else ():
            key = f"{instance.key if instance else 'self'}.{name}"
            if key in path.heap or any(key in known for known in path.assumed):
                path = path.stores(key, Value(f"{key}@{func.lineno}{self.tag(path)}"))
        return path

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

    def call(self, node: ast.Call, paths: Paths, scope: Scope) -> Run:
        """Run a call: what it is made of, then the event that it is, or the function that it runs."""
        if isinstance(node.func, ast.Attribute) and isinstance(chosen := node.func.value, ast.IfExp):
            sides, calls = self.sides(chosen.test, paths, scope), kept(node, _calls)
            return [each for path, truth in sides for each in self.call(calls[not truth], [path], scope)]
        parts = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        parts += [arg.value if isinstance(arg, ast.Starred) else arg for arg in node.args]
        parts += [keyword.value for keyword in node.keywords]
        for part in parts:
            if part in self.hot and not isinstance(part, ast.Lambda):
                paths = [path for path, _ in self.run(part, paths, scope)]
        return [each for path in paths for each in self._happens(node, path, scope)]

    def _happens(self, node: ast.Call, path: State, scope: Scope) -> Run:
        """Run what a call is on one path: an event, or what it runs."""
        happened = self.happening.of_call(node, self.place(path, scope), path)
        inner = self.closure(node.func, path, scope) if happened is not None else None
        inside = self.hot.possible(inner.node) if inner is not None else frozenset()
        if happened is None or (inside and not happened[1]):
            return self._ran(node, path, scope)
        self.calls.setdefault(happened[0], tuple(self.frames))
        ran = [self.touched(node, each, scope) for each in self._closures(node, path, scope)]
        return [(begun.happens(happened[0]), self.made(node, begun, scope)) for begun in ran]

    def _closures(self, node: ast.Call, path: State, scope: Scope) -> Paths:
        """Run the function that is passed to an event, as `optimizer.step(closure)` does first."""
        paths = [path]
        for argument in [*node.args, *(k.value for k in node.keywords)]:
            if (closure := self.closure(argument, path, scope)) is not None:
                paths = [after for each in paths for after, _ in self.enter(closure, (), {}, each)]
        return paths

    def _ran(self, node: ast.Call, path: State, scope: Scope) -> Run:
        place, closure = self.place(path, scope), self.closure(node.func, path, scope)
        if closure is None or closure.node not in self.hot or closure.node in self.stack or is_manager(closure.node):
            return [self.built(node, path, scope)]  # what a context manager does begins where it is entered
        if len(self.stack) >= MAX_DEPTH:
            return [(path, self.made(node, path, scope))]
        arguments, named = passed_on(node, place)
        path = self.furnished(closure.bound[0], path) if closure.bound else path
        is_own = isinstance(node.func, ast.Attribute) and tail_of(node.func.value) == scope.self_name
        is_plain = closure.scope.owner is None or (is_own and self.project.method_names[tail_of(node.func)] == 1)
        self.frames.append(Frame(scope.module.path, node.lineno, node.end_lineno or node.lineno, is_plain))
        found = self.enter(closure, arguments, named, path)
        self.frames.pop()
        return [(after, value if value is not None else self.made(node, after, scope)) for after, value in found]

    def enter(self, closure: Closure, values: Values, named: Named, path: State) -> list[tuple[State, Value | None]]:
        """Walk a function where it is called; return the caller's paths with what it returned."""
        node, scope = closure.node, closure.scope
        self.walked.add(node)
        names = {**closure.outer, **parameters_of(node, (*closure.bound, *values), named, self.place(path, scope))}
        inside = path.but(names=names, returned=None, ended="")
        if isinstance(node, ast.Lambda):
            return [(after.but(names=path.names), value) for after, value in self.run(node.body, [inside], scope)]
        self.stack.append(node)
        try:
            ended = self.decorated(node, inside, scope)
        finally:
            self.stack.pop()
        ended = self.joined([each.but(names=path.names) for each in ended])
        own = [(each, "raise" if each.ended == "raise" else "") for each in ended]
        return [(each.but(ended=how, returned=None, guards=path.guards), each.returned) for each, how in own]

    def decorated(self, node: Function | ast.Module, path: State, scope: Scope) -> Paths:
        """Walk a body inside of the contexts that decorate it."""
        decorators = [] if isinstance(node, ast.Module) else node.decorator_list
        return self._within([each for each in decorators if each in self.hot], node, scope, [path])

    def _within(self, decorators: list[ast.expr], node: Function | ast.Module, scope: Scope, paths: Paths) -> Paths:
        if not decorators:
            return self.block(node.body, paths, scope)
        outer, inner = scope.outer or scope, partial(self._within, decorators[1:], node, scope)
        run = [(path, self.place(path, outer).value(decorators[0])) for path in paths]
        return [each for path, value in run for each in self.context(value, decorators[0], path, outer, inner)]


def _calls(node: ast.Call) -> list[ast.Call]:
    """Return the calls of a method of the one and of the other side of a choice."""
    func, calls = node.func, list[ast.Call]()
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.IfExp):
        for part in (func.value.body, func.value.orelse):
            method = ast.copy_location(ast.Attribute(part, func.attr, ast.Load()), func)
            calls.append(ast.copy_location(ast.Call(method, node.args, node.keywords), node))
    return calls
