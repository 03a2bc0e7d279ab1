"""The functions of the program that calls run, and the contexts that blocks of `with` and decorators stand in."""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import NoReturn

from gates.scan.paths.events import Happening
from gates.scan.paths.hot import Hot
from gates.scan.paths.place import REST, Place, branch, passed_on
from gates.scan.paths.state import Closure, Event, Frame, State, Value
from gates.scan.program.module import Function, tail_of
from gates.scan.program.project import Project
from gates.scan.program.scope import ClassInfo, Scope

ENDED = "<ended>"
Paths = list[State]
Run = list[tuple[State, Value]]
Bind = Callable[[State, Value], State]
Inner = Callable[[Paths], Paths]
Values = tuple[Value, ...]
Named = Mapping[str, Value]


MAX_WORK, MAX_PATHS, MAX_WORDS = 2_000, 96, 400


class TooMany(Exception):
    """There are more paths than are walked."""


def _agreeing(one: State, other: State) -> State:
    return one.but(assumed={key: truth for key, truth in one.assumed.items() if other.assumed.get(key) is truth})


def _united(one: State, other: State) -> State:
    return one.but(words=one.words | other.words)


class Contexts:
    """The part of a walk that joins paths, counts its work (`cut` where some were left out), and goes into contexts."""

    enter: Callable[[Closure, Values, Named, State], list[tuple[State, Value | None]]]

    def __init__(self, project: Project, happening: Happening, hot: Hot) -> None:
        self.project, self.happening, self.hot = project, happening, hot
        self._words = frozenset(word for kind in happening.kinds for p in kind.code.patterns for word in p.words)
        self.yields: list[Callable[[Run], Paths]] = []
        self.start()

    def joined(self, paths: Paths) -> Paths:
        """Let paths that agree go on as one: with what they both assumed, or with all that happened on either."""
        if len(paths) > 1:
            paths = self._merged(paths, lambda path: path.words, _agreeing)
            paths = self._merged(paths, lambda path: frozenset(path.assumed.items()), _united)
        if len(paths) > MAX_PATHS:
            paths = self._merged(paths, lambda _path: None, lambda one, other: _united(_agreeing(one, other), other))
        if len(paths) > MAX_PATHS or any(len(path.words) > MAX_WORDS for path in paths):
            self.give_up()
        return paths

    def _merged(self, paths: Paths, by: Callable[[State], object], merge: Callable[[State, State], State]) -> Paths:
        found: dict[object, State] = {}
        for path in paths:
            key = (path.signature(self._tells), by(path))
            found[key] = merge(found[key], path) if key in found else path
        return list(found.values())

    def _tells(self, value: Value) -> bool:
        """Return whether a later condition or event may tell a value from another."""
        return value.tells is True or value.tells in self._words

    def start(self) -> None:
        """Begin a new walk."""
        self.cut, self._work = False, 0
        self.tries, self.stack, self.walked = 0, list[ast.AST](), set[ast.AST]()
        self.frames, self.calls = list[Frame](), dict[Event, tuple[Frame, ...]]()

    def count(self, paths: int) -> None:
        """Count the work; raise `TooMany` where it is too much."""
        self._work += paths
        if self._work > MAX_WORK:
            self.give_up()

    def give_up(self) -> NoReturn:
        """End this walk, as one that is cut."""
        self.cut = True
        raise TooMany

    def place(self, path: State, scope: Scope) -> Place:
        """Return the place that a path has come to."""
        return Place(self.project, scope, path.names, path.heap, path.turns)

    def context(
        self, value: Value, node: ast.expr, path: State, scope: Scope, inner: Inner, bind: Bind = lambda path, _: path
    ) -> Paths:
        """Walk what stands in a context, an event or a manager of the program's own, with what that gives (`bind`)."""
        made, place = value.node or node, value.place or self.place(path, scope)
        begun, ends = self.happening.of_block(made, place, node)
        if begun or ends:
            found: Paths = []
            for event in begun:
                self.calls.setdefault(event, tuple(self.frames))
            for side, is_on in self.enabled(made, place, path):
                after = inner([side.happens(*begun) if is_on else side])
                found += [left.happens(*ends) if is_on else left for left in after]
            return found
        if (closure := self._manager(made, place, path)) is not None and closure.node not in self.stack:
            return self._spliced(closure, made, place, path, inner, bind)
        owner = value.owner or place.owner_of(made)
        around = [self.project.method(owner, name) for name in ("__enter__", "__exit__")] if owner else []
        if any(found is not None and found[0] in self.hot for found in around):
            self.give_up()  # an object of the program's own that has events around its block
        return inner([path])

    def enabled(self, node: ast.expr, place: Place, path: State) -> list[tuple[State, bool]]:
        """Fork by the argument `enabled` of a context."""
        made, where = place.made_by(node)
        given = next((each.value for each in (made.keywords if made else ()) if each.arg == "enabled"), None)
        return [(path, True)] if given is None else [*branch(given, path, where)]

    def _manager(self, node: ast.expr, place: Place, path: State) -> Closure | None:
        """Return the generator of the program that a context manager is made of."""
        if not isinstance(node, ast.Call):
            return None
        closure = self.behind(node.func, place) or self.closure(node.func, path, place.scope)
        return closure if closure and closure.node in self.hot and is_manager(closure.node) else None

    def _spliced(self, closure: Closure, made: ast.expr, place: Place, path: State, inner: Inner, bind: Bind) -> Paths:
        """Walk a generator up to its `yield`, then what stands in the block, then the rest."""
        assert isinstance(made, ast.Call)
        outer_names, stack = path.names, list(self.stack)
        kept = f"{place.scope.module.path}:{made.lineno}:{made.col_offset}:{made.end_col_offset}().{ENDED}"

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

        self.yields.append(block)
        try:
            after = [each for each, _ in self.enter(closure, *passed_on(made, place), path)]
        finally:
            self.yields.pop()
        return [p.takes_up(kept).but(names=outer_names) for p in after]

    def closure(self, node: ast.expr, path: State, scope: Scope) -> Closure | None:
        """Return the function of the program that an expression is, with what it is bound to."""
        place = self.place(path, scope)
        if (found := place.find(node)) is not None and found.closure is not None:
            return found.closure
        if found is not None and found.node is not None and found.node is not node and found.place is not None:
            return self.behind(found.node, found.place)
        return self.behind(node, place)

    def behind(self, node: ast.expr, place: Place) -> Closure | None:  # a case for each
        """Return the function of the program that an expression at a place is."""
        if isinstance(node, ast.Lambda):
            return place.lambda_(node)
        if isinstance(node, ast.Call) and place.dotted(node.func) == "functools.partial" and node.args:
            inner = self.behind(node.args[0], place)
            return self.give_up() if inner is not None and inner.node in self.hot else None  # called with what?
        if isinstance(node, ast.Attribute) and (method := self._method(node, place)):
            return method
        owner = self.project.classes.get(place.dotted(node.func) or "") if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Name | ast.Attribute):
            named = place.dotted(node)
            if named in self.project.functions:
                function, module = self.project.functions[named]
                return Closure(function, self.project.scope_of(function, module), {})
            owner = place.owner_of(node) if named not in self.project.classes else None
        return self._bound(owner, ("__call__", "forward"), place.value(node)) if owner else None

    def _method(self, node: ast.Attribute, place: Place) -> Closure | None:
        receiver = node.value
        if isinstance(receiver, ast.Call) and tail_of(receiver.func) == "super":
            around = place.scope.self_class
            instance = place.names.get(place.scope.self_name or "")
            owner = (instance.owner if instance is not None else None) or around
            above = self.project.above(owner, around, node.attr) if owner and around else None
            return self._bound(above, (node.attr,), instance) if above else None
        owner = place.owner_of(receiver)
        return self._bound(owner, (node.attr,), place.value(receiver)) if owner else None

    def _bound(self, owner: ClassInfo, names: tuple[str, ...], instance: Value | None) -> Closure | None:
        if (found := next(filter(None, (self.project.method(owner, name) for name in names)), None)) is None:
            return None
        function, module, _ = found
        scope = self.project.scope_of(function, module)
        if any(tail_of(d) == "staticmethod" for d in function.decorator_list):
            return Closure(function, scope, {})
        value = instance or Value("self")
        value = value if value.owner else replace(value, owner=owner)
        return Closure(function, scope, {}, (value,))


def parameters_of(node: Function | ast.Lambda, values: Values, named: Named, called: Place) -> dict[str, Value]:
    """Return what the parameters of a function are where it is called so."""
    own, place = parameters(node), Place(called.project, called.scope, {}, called.heap)
    found = dict(zip((a.arg for a in (*node.args.posonlyargs, *node.args.args)), values, strict=False))
    found |= {name: value for name, value in named.items() if name in own}
    for name, default in own.items():
        if name not in found and default is not None and REST not in named:
            found[name] = place.value(default)
        elif name not in found:
            found[name] = Value(f"{getattr(node, 'name', 'lambda')}.{name}", ast.Name(name, ast.Load()), place)
    return found


def parameters(function: Function | ast.Lambda) -> dict[str, ast.expr | None]:
    """Return the parameters of a function with their defaults, those that have a place first."""
    names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
    found: dict[str, ast.expr | None] = dict.fromkeys(names)
    found |= dict(zip(reversed(names), reversed(function.args.defaults), strict=False))
    return found | {a.arg: d for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)}


def is_manager(function: Function | ast.Lambda) -> bool:
    """Return whether a function is a generator that a context manager is made of."""
    decorators = [] if isinstance(function, ast.Lambda) else function.decorator_list
    return any("contextmanager" in tail_of(decorator) for decorator in decorators)


def given(call: ast.Call, made: Value, owner: ClassInfo, place: Place) -> Iterator[tuple[str, Value]]:
    """Yield the attributes of a new object that are objects, and no constants, which its constructor was passed."""
    if (found := place.project.method(owner, "__init__")) is None:
        return
    function, _, base = found
    arguments, named = passed_on(call, place)
    names = parameters_of(function, (made, *arguments), named, place)
    passed = (*arguments, *named.values())
    for name, bindings in base.attributes.items():
        node = bindings[0][0].node if len(bindings) == 1 else None
        value = names.get(node.id) if isinstance(node, ast.Name) else None
        if value in passed and not value.is_known and name not in place.project.reset:
            yield f"{made.key}.{name}", value
