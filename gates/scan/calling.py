"""Expressions of a path: run in Python's order, calls of the program's own functions walked where they stand."""

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import NoReturn

from gates.scan.conditions import branch
from gates.scan.constructing import given
from gates.scan.contexts import is_manager
from gates.scan.elements import elements
from gates.scan.events import Happening
from gates.scan.finding import Finding, parameters_of, passed_on
from gates.scan.hooks import hooks_of
from gates.scan.hot import Hot
from gates.scan.known import OPTIMIZER
from gates.scan.module import Function, tail_of
from gates.scan.nodes import below, kept, walk
from gates.scan.project import ClassInfo, Project
from gates.scan.scope import PREPARES, Scope
from gates.scan.stacks import PUSHES, Run
from gates.scan.types import is_choice
from gates.scan.values import Closure, Place, State, Value
from gates.scan.words import Event, Frame

MAX_DEPTH = 6
MAX_WORK = 20_000
TELLING = (ast.Constant, ast.Call, ast.Name, ast.Attribute, ast.IfExp, ast.Lambda)
Paths = list[State]


class TooMany(Exception):
    """There are more paths than are walked."""


class Calling(Finding):
    """The half of a walk that runs expressions; statements are the other half's."""

    prepares = PREPARES

    def __init__(self, project: Project, happening: Happening, hot: Hot) -> None:
        super().__init__(happening)
        self.project = project
        self.hot = hot
        self.walked: set[ast.AST] = set()
        self.constructed: dict[str, Paths] = {}
        self.fillers: dict[str, ClassInfo | None] = {}
        self.unfinished: dict[str, int] = {}  # the most work that a class's constructor was walked for in vain
        self.entered: set[ast.AST] = set()
        self.tries = 0
        self._work, self.limit = 0, MAX_WORK
        self.stack: list[ast.AST] = []
        self.frames: list[Frame] = []
        self.calls: dict[Event, tuple[Frame, ...]] = {}
        self.yields: list[Callable[[Run], Paths]] = []
        self._quiet: dict[object, Value | None] = {}
        self._caring: dict[ast.AST, frozenset[str]] = {}

    @cached_property
    def anywhere(self) -> frozenset[str]:
        """Return the events that some code of the program may be."""
        return frozenset().union(*self.hot.kinds.values())

    @cached_property
    def _hooks(self) -> set[Function]:
        """Return the functions that are kept under an event, and are to blame for what they do in its place."""
        return self.project.once(hooks_of)[0].functions

    def block(self, body: list[ast.stmt], paths: Paths, scope: Scope) -> Paths:
        """Walk statements."""
        raise NotImplementedError

    def start(self, limit: int = MAX_WORK) -> None:
        """Begin a new walk, of so much work at most."""
        self.limit = limit
        self.cut, self._work, self.stack, self.entered, self.tries = False, 0, [], set(), 0
        self._quiet = {}
        self.frames, self.calls = [], {}

    def count(self, paths: int) -> None:
        """Count the work; raise `TooMany` where it is too much."""
        self._work += paths
        if self._work > self.limit:
            self.give_up()

    def give_up(self) -> NoReturn:
        """End this walk, as one that is cut."""
        self.cut = True
        raise TooMany

    @property
    def work(self) -> int:
        """Return how much work this walk was."""
        return self._work

    @property
    def is_short(self) -> bool:
        """Return whether this walk has come to the end of a limit that another may go beyond."""
        return self.limit < MAX_WORK and self._work > self.limit

    def place(self, path: State, scope: Scope) -> Place:
        """Return the place that a path has come to."""
        return Place(self.project, scope, path.names, path.heap, path.turns)

    def tag(self, path: State) -> str:
        """Return what tells an object of this turn from one of the next."""
        return f"#{path.turns}" if path.turns else ""

    def matters(self, nodes: Iterable[ast.AST], scope: Scope) -> bool:
        """Return whether statements set something to what a later condition or event may tell apart."""
        for node in nodes:
            for inner in walk(node):
                if not isinstance(inner, ast.Assign) or not isinstance(inner.value, TELLING):
                    continue
                for target in inner.targets:
                    around = scope.module.tree if isinstance(target, ast.Attribute) else scope.function
                    if tail_of(target) in self._cared(around or scope.module.tree):
                        return True
        return False

    def _cared(self, around: ast.AST) -> frozenset[str]:
        """Return the names that stand in hot conditions, and whose methods are hot, in a function or a whole file."""
        if around not in self._caring:
            names: set[str] = set()
            for node in below(around):
                if node not in self.hot or not isinstance(
                    node, ast.If | ast.IfExp | ast.Call | ast.withitem | ast.While
                ):
                    continue
                part = node.func if isinstance(node, ast.Call) else node.test if hasattr(node, "test") else node
                names |= {tail_of(n) for n in walk(part) if isinstance(n, ast.Name | ast.Attribute)}
            self._caring[around] = frozenset(names - {"self"})
        return self._caring[around]

    def run(self, node: ast.expr, paths: Paths, scope: Scope) -> Run:  # noqa: C901  # a case for each expression
        """Run an expression on each path; return the paths with its value."""
        if isinstance(node, ast.IfExp):
            return self._chosen(node, paths, scope)
        if isinstance(node, ast.Yield | ast.YieldFrom) and self.yields:
            given = node.value if isinstance(node, ast.Yield) else None
            run = self.run(given, paths, scope) if given is not None else [(path, Value("None")) for path in paths]
            return [(path, Value("None")) for path in self.yields[-1](run)]
        if node not in self.hot:
            return [self._built(node, path, scope) for path in paths]
        if isinstance(node, ast.Call):
            return self._call(node, paths, scope)
        if isinstance(node, ast.Lambda):
            return [(path, self.place(path, scope).value(node)) for path in paths]
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
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

    def _made(self, node: ast.expr, path: State, scope: Scope) -> Value:
        """Return the value of an expression that has no events; what a call makes is another object each time."""
        value = self.place(path, scope).value(node)
        if isinstance(node, ast.Call) and value.node is node:
            name = tail_of(node.func)
            if name[:1].isupper() or name[:4] in {"get_", "make", "buil", "crea"}:
                return replace(value, key=f"{name}@{scope.module.path}:{node.lineno}{self.tag(path)}")
        return value

    def _built(self, node: ast.expr, path: State, scope: Scope) -> tuple[State, Value]:
        """Return the path with what an expression makes, and what the constructor keeps of what it was passed."""
        value = self._made(node, path, scope)
        return self._filled(node, value, self.touched(node, path, scope), scope), value

    def _filled(self, node: ast.expr, value: Value, path: State, scope: Scope) -> State:
        if not isinstance(node, ast.Call) or value.node is not node or not (node.args or node.keywords):
            return path
        place = self.place(path, scope)
        owner = self.project.classes.get(place.dotted(node.func) or "")
        kept = dict(given(node, value, owner, place)) if owner is not None and not owner.twice else {}
        return replace(path, heap={**path.heap, **kept}) if kept else path

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

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, paths: Paths, scope: Scope
    ) -> Run:
        """Run a comprehension as a loop, of two turns where it is not known what that goes through."""
        for generator in node.generators:
            paths = [path for path, _ in self.run(generator.iter, paths, scope)]
        known = self._gone_through(node, paths, scope)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        line = node.lineno
        loop, mark, done = (Event(name, (), scope.module.path, line, line) for name in ("loop", "turn", "done"))
        before = frozenset().union(*(path.words for path in paths))
        paths = [path.happens(loop) for path in paths]
        for turn in range(1, len(known or (1, 2)) + 1):
            paths = [replace(p, turns=f"{p.turns}/{line}.{turn}").happens(mark) for p in paths]
            if known:
                paths = [p.binds(tail_of(node.generators[0].target), known[turn - 1]) for p in paths]
            for part in parts:
                paths = [path for path, _ in self.run(part, paths, scope)]
            paths = [replace(p, turns=p.turns.rpartition("/")[0]) for p in paths]
        paths = [path.happens(done).without_idle_loop(before) for path in paths]
        return [(path, self.place(path, scope).value(node)) for path in paths]

    def _gone_through(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, paths: Paths, scope: Scope
    ) -> list[Value] | None:
        """Return what a comprehension of one plain variable goes through, where all paths agree."""
        one = node.generators[0] if len(node.generators) == 1 else None
        if one is None or not isinstance(one.target, ast.Name) or one.ifs or not paths:
            return None
        found = [elements(one.iter, self.place(path, scope)) for path in paths]
        keys = {tuple(value.key for value in each) if each is not None else None for each in found}
        return found[0] if len(keys) == 1 else None

    def _of_choice(self, node: ast.Call, chosen: ast.IfExp, paths: Paths, scope: Scope) -> Run:
        """Run the method of what is chosen of two: `(scaler.scale(loss) if scaler else loss).backward()`."""
        found: Run = []
        for path in paths:
            for side, truth in branch(chosen.test, path, self.place(path, scope)):
                found += self._call(kept(node, _sides)[not truth], [side], scope)
        return found

    def _call(self, node: ast.Call, paths: Paths, scope: Scope) -> Run:
        """Run a call: what it is made of, then the event that it is, or the function that it runs."""
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.IfExp):
            return self._of_choice(node, node.func.value, paths, scope)
        parts = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        parts += [arg.value if isinstance(arg, ast.Starred) else arg for arg in node.args]
        parts += [keyword.value for keyword in node.keywords]
        for part in parts:
            if part in self.hot and not isinstance(part, ast.Lambda):
                paths = [path for path, _ in self.run(part, paths, scope)]
        if isinstance(node.func, ast.Attribute) and isinstance(made := node.func.value, ast.Call):
            paths = [self._filled(made, self.place(path, scope).value(made), path, scope) for path in paths]
        if tail_of(node.func) in PUSHES and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
            return [(after, Value("None")) for path in paths for after in self.pushed_on(node, path, scope)]
        if isinstance(node.func, ast.Attribute) and node.func.attr in {"__enter__", "__exit__"}:
            return [(each, Value("None")) for path in paths for each in self.crossed(node, node.func, path, scope)]
        paths = [side for path in paths for side in self._sorted(node.func, path, scope)]
        return [each for path in paths for each in self._happens(node, path, scope)]

    def _happens(self, node: ast.Call, path: State, scope: Scope) -> Run:
        """Run what a call is on one path: an event, what it runs, or a method of an own optimizer that is both."""
        place = self.place(path, scope)
        happened = self.happening.of_call(node, place, path)
        inner = self.closure(node.func, path, scope) if happened is not None else None
        own = self.hot.possible(inner.node) if inner is not None and self._is_own_optimizer(inner) else frozenset()
        if happened is None or (inner is not None and not happened[1]) or happened[0].name in own:
            return self._inlined(node, path, scope, place)
        self.calls.setdefault(happened[0], tuple(self.frames))
        if own:  # such as a step that clears at its end
            return self._inlined(node, path.happens(happened[0]), scope, place)
        ran = self._closures(node, path, scope)
        return [(begun.happens(happened[0]), self._made(node, begun, scope)) for begun in ran]

    def _is_own_optimizer(self, inner: Closure) -> bool:
        """Return whether a function is a method of an optimizer of the program's own, which may step another."""
        owner = inner.scope.owner
        return owner is not None and self.project.types.is_a(owner.name, OPTIMIZER) is True

    def _sorted(self, func: ast.expr, path: State, scope: Scope) -> Paths:
        """Fork by the classes that the object of a method may be of, where it is one of several."""
        held = func.value if isinstance(func, ast.Attribute) else None
        if not isinstance(held, ast.Name | ast.Attribute):
            return [path]
        place = self.place(path, scope)
        known = place.find(held)
        made = known.node if known is not None else None
        chosen = isinstance(made, ast.Call) and known.place is not None and is_choice(made.func, known.place.scope)  # type: ignore[union-attr]  # it made something
        chosen = chosen or (isinstance(made, ast.Name) and known is not None and known.type is None)
        if known is not None and (known.owner is not None or (made is not None and not chosen)):
            return [path]
        kinds = self.project.alternatives.of(held, scope)
        found: Paths = []
        for kind in kinds:
            value = Value(f"{place.key(held)}.as_{kind.node.name}", owner=kind)
            if isinstance(held, ast.Name):
                found.append(path.binds(held.id, value))
            else:
                found.append(path.stores(f"{place.key(held.value)}.{held.attr}", value))
        return found or [path]

    def _closures(self, node: ast.Call, path: State, scope: Scope) -> Paths:
        """Run the function that is passed to an event, as `optimizer.step(closure)` does first."""
        paths = [path]
        for argument in [*node.args, *(k.value for k in node.keywords)]:
            closure = self.closure(argument, path, scope)
            if closure is not None:
                paths = [after for each in paths for after, _ in self.enter(closure, (), {}, each)]
        return paths

    def _inlined(self, node: ast.Call, path: State, scope: Scope, place: Place) -> Run:
        closure = self.closure(node.func, path, scope)
        if closure is None or closure.node not in self.hot or closure.node in self.stack or is_manager(closure.node):
            return [self._built(node, path, scope)]  # what a context manager does begins where it is entered
        if len(self.stack) >= MAX_DEPTH:
            return [(path, self._made(node, path, scope))]
        arguments, named = passed_on(node, place)
        about = (
            closure.node,
            *(value.key.partition("#")[0] for value in (*closure.bound, *arguments, *named.values())),
            self._asked(closure, path),
        )
        if about in self._quiet:
            return [(path, self._quiet[about] or self._made(node, path, scope))]
        is_own = isinstance(node.func, ast.Attribute) and tail_of(node.func.value) == scope.self_name
        sole = is_own and self.project.method_names[tail_of(node.func)] == 1
        is_plain = (closure.scope.owner is None or sole) and closure.node not in self._hooks
        listed = _listed(closure.bound[0]) if closure.bound else None
        self.frames.append(Frame(scope.module.path, node.lineno, node.end_lineno or node.lineno, is_plain, listed))
        found = self.enter(closure, arguments, named, path)
        self.frames.pop()
        if len(found) == 1 and found[0][0].words == path.words and found[0][0].heap.keys() == path.heap.keys():
            value = found[0][1]
            made = value.node if value is not None else None
            self._quiet[about] = value if made is not None and made in self.hot else None  # such as a context
        return [(after, value if value is not None else self._made(node, after, scope)) for after, value in found]

    def touched(self, node: ast.expr, path: State, scope: Scope) -> State:
        """Forget the attributes of the own instance that a method sets which is not walked."""
        func = node.func if isinstance(node, ast.Call) else None
        if not (isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name)) or not scope.self_class:
            return path
        instance = path.names.get(func.value.id)
        owner = scope.self_class if instance is None else instance.owner
        method = self.project.method(owner, func.attr) if func.value.id == scope.self_name and owner else None
        for name in sorted(self.project.attributes_set(method[0], owner)) if method and owner else ():
            key = f"{instance.key if instance else 'self'}.{name}"
            if key in path.heap or any(key in known for known in path.assumed):
                path = path.stores(key, Value(f"{key}@{func.lineno}{self.tag(path)}"))
        return path

    def _asked(self, closure: Closure, path: State) -> frozenset[tuple[str, bool]]:
        """Return what a path has assumed of what a function asks before it comes to an event."""
        names = self._cared(closure.node)
        return frozenset(item for item in path.assumed.items() if any(name in item[0] for name in names))

    def enter(
        self, closure: Closure, arguments: tuple[Value, ...], named: Mapping[str, Value], path: State
    ) -> list[tuple[State, Value | None]]:
        """Walk a function where it is called; return the caller's paths with what it returned."""
        node, scope = closure.node, closure.scope
        self.walked.add(node)
        self.entered.add(node)
        names = dict(closure.outer)
        names |= parameters_of(node, (*closure.bound, *arguments), {**closure.named, **named}, self.place(path, scope))
        inside = replace(path, names=names, returned=None, ended="")
        if isinstance(node, ast.Lambda):
            found = self.run(node.body, [inside], scope)
            return [(replace(after, names=path.names), value) for after, value in found]
        self.stack.append(node)
        try:
            ended = self.decorated(node, inside, scope)
        finally:
            self.stack.pop()
        ended = [replace(each, names=path.names).forgets(path.heap) for each in ended]
        return [
            (
                replace(
                    e, names=path.names, ended="raise" if e.ended == "raise" else "", returned=None, guards=path.guards
                ),
                e.returned,
            )
            for e in self.joined(ended)
        ]

    def decorated(self, node: Function, path: State, scope: Scope) -> Paths:
        """Walk a function's body inside of the contexts that decorate it."""
        outer = scope.outer or scope

        def inner(decorators: list[ast.expr], paths: Paths) -> Paths:
            if not decorators:
                return self.block(node.body, paths, scope)
            found: Paths = []
            for each in paths:
                value = self.place(each, outer).value(decorators[0])
                found += self.context(value, decorators[0], each, outer, lambda begun: inner(decorators[1:], begun))
            return found

        return inner([d for d in node.decorator_list if d in self.hot], [path])


def _listed(value: Value) -> Frame | None:
    """Return where an object is made as an element of a list, whose order says which of them acts first."""
    made, module = value.node, value.place.scope.module if value.place is not None else None
    around = module.parents.get(made) if module is not None and isinstance(made, ast.Call) else None
    if module is None or not isinstance(made, ast.Call) or not isinstance(around, ast.List | ast.Tuple):
        return None
    return Frame(module.path, made.lineno, made.end_lineno or made.lineno, is_plain=False)


def _sides(node: ast.Call) -> tuple[ast.Call, ast.Call]:
    """Return the calls of a method of the one and of the other side of a choice."""
    assert isinstance(node.func, ast.Attribute)
    assert isinstance(node.func.value, ast.IfExp)
    one, other = (
        ast.copy_location(ast.Attribute(part, node.func.attr, ast.Load()), node.func)
        for part in (node.func.value.body, node.func.value.orelse)
    )
    return tuple(ast.copy_location(ast.Call(func, node.args, node.keywords), node) for func in (one, other))  # type: ignore[return-value]  # two
