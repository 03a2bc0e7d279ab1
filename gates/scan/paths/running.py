"""Expressions of a path: run in Python's order; what has no events is taken for the value that it is."""

import ast
from collections.abc import Iterator
from dataclasses import replace

from gates.scan.automata.words import Event
from gates.scan.paths.conditions import branch
from gates.scan.paths.contexts import Run
from gates.scan.paths.counting import Counting
from gates.scan.paths.finding import parameters_of, passed_on
from gates.scan.paths.place import Place
from gates.scan.paths.state import State
from gates.scan.paths.values import Value
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import tail_of
from gates.scan.program.scope import Scope

Paths = list[State]
Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


class Running(Counting):
    """Runs expressions; what a call does is left to the walk."""

    def call(self, node: ast.Call, paths: Paths, scope: Scope) -> Run:
        """Run a call."""
        raise NotImplementedError

    def place(self, path: State, scope: Scope) -> Place:
        """Return the place that a path has come to."""
        return Place(self.project, scope, path.names, path.heap, path.turns)

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
        if node not in self.hot and plain and not self._is_context(node):
            return [(path, self.place(path, scope).value(node)) for path in paths]
        found: Run = []
        for path in paths:
            for side, truth in branch(node.test, path, self.place(path, scope)):
                found += self.run(node.body if truth else node.orelse, [side], scope)
        return found

    def _is_context(self, node: ast.IfExp) -> bool:
        return any(tail_of(part) for part in (node.body, node.orelse))

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

    def _comprehension(self, node: Comprehension, paths: Paths, scope: Scope) -> Run:
        """Run a comprehension as a loop of two turns."""
        for generator in node.generators:
            paths = [path for path, _ in self.run(generator.iter, paths, scope)]
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        line = node.lineno
        loop, mark, done = (Event(name, (), scope.module.path, line, line) for name in ("loop", "turn", "done"))
        before = frozenset().union(*(path.words for path in paths))
        paths = [path.happens(loop) for path in paths]
        for turn in (1, 2):
            paths = [p.but(turns=f"{p.turns}/{line}.{turn}").happens(mark) for p in paths]
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
        kept = dict(_given(made, instance, owner, where))
        return path.but(heap={**path.heap, **kept}) if kept else path


def _given(call: ast.Call, made: Value, owner: ClassInfo, place: Place) -> Iterator[tuple[str, Value]]:
    """Yield the attributes of a new object that are objects which its constructor was passed.

    What is passed as a constant is left open: another caller may pass something else.
    """
    found = place.project.method(owner, "__init__")
    if found is None:
        return
    function, _, base = found
    arguments, named = passed_on(call, place)
    names = parameters_of(function, (made, *arguments), named, place)
    passed = (*arguments, *named.values())
    for name, bindings in base.attributes.items():
        node = bindings[0][0].node if len(bindings) == 1 else None
        value = names.get(node.id) if isinstance(node, ast.Name) else None
        if value in passed and not value.is_known and not place.project.is_reset(owner, name):
            yield f"{made.key}.{name}", value
