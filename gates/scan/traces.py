"""The event traces of a program: every path of every function that nobody in the program walks into."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from gates.scan.calling import TooMany
from gates.scan.events import Happening
from gates.scan.hot import Hot
from gates.scan.module import Function, Module
from gates.scan.project import ClassInfo, Project
from gates.scan.scope import Scope
from gates.scan.values import Event, Place, State, Value, Word
from gates.scan.walking import Walker

MAX_BEGINNINGS = 8


@dataclass(frozen=True)
class Trace:
    """The paths through one function, the modules that they run through, and whether some were left out."""

    path: str
    line: int
    last_line: int
    name: str
    owner: str | None
    words: tuple[tuple[Event, ...], ...]
    cut: bool
    possible: frozenset[str]


class Tracer:
    """The traces of one program for one set of events, each made where a rule first asks for it."""

    def __init__(self, project: Project, happening: Happening) -> None:
        self._project = project
        self._hot = Hot(project, happening)
        self._walker = Walker(project, happening, self._hot)
        self._made: dict[ast.AST, list[Trace]] = {}
        self._possible: dict[ast.AST, frozenset[str]] = {}

    def traces(self, speaks: Callable[[frozenset[str]], bool]) -> Iterator[Trace]:
        """Yield the traces of the functions that nothing else runs, then of what was not reached from those.

        Functions whose events are none that `speaks` asks for are left out.
        """
        hot = self._hot
        run = {target for around, targets in hot.leads.items() for target in targets if target is not around}
        outer = [node for node, module in hot.functions.items() if not _is_inner(node, module)]
        first = [node for node in outer if node not in run]
        rest = sorted((node for node in outer if node in run), key=lambda node: -getattr(node, "lineno", 0))
        for node in (*first, *rest):
            if node not in self._possible:
                self._possible[node] = hot.possible(node)
            if node not in self._made and (node in self._walker.walked or not speaks(self._possible[node])):
                continue
            if node not in self._made:
                module = hot.functions[node]
                assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module)
                self._made[node] = list(_trace(self._walker, node, module, self._possible[node]))
            yield from self._made[node]


def _trace(walker: Walker, node: Function | ast.Module, module: Module, possible: frozenset[str]) -> Iterator[Trace]:
    walker.start()
    project = walker.project
    scope = project.scope_of(node, module)
    words: dict[tuple[Event, ...], None] = {}
    line = getattr(node, "lineno", 1)
    start, end = (Event(name, (), module.path, line, line) for name in ("start", "end"))
    try:
        root = Word().then(start)
        for state in _beginnings(walker, node, scope):
            beginning = replace(state, words=frozenset({root}))
            if isinstance(node, ast.Module):
                ended = walker.block(node.body, [beginning], scope)
            else:
                ended = walker.decorated(node, beginning, scope)
            for path in ended:
                for word in path.words if path.ended != "raise" else ():
                    events = word.events()
                    if len(events) > 1:
                        words[(*events, end)] = None
    except TooMany:
        pass
    if words or walker.cut:
        name = project.qualified(node, scope) if not isinstance(node, ast.Module) else module.name
        owner = scope.owner.name if scope.owner else None
        last = getattr(node, "end_lineno", None) or line
        yield Trace(module.path, line, last, name, owner, tuple(words), walker.cut, possible)


def _beginnings(walker: Walker, node: Function | ast.Module, scope: Scope) -> list[State]:
    """Return the states that a function may begin in: a method in those that the constructor leaves."""
    if isinstance(node, ast.Module):
        return [State()]
    arguments = node.args
    place = Place(walker.project, scope, {}, {})
    names = {
        arg.arg: Value(arg.arg, ast.Name(arg.arg, ast.Load()), place)
        for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    }
    if scope.owner is None or scope.self_name is None:
        return [State(names=names)]
    instance = Value("self", owner=scope.owner)
    states = _constructed(walker, scope.owner, instance) if node.name != "__init__" else [State()]
    return [replace(state, names={**names, scope.self_name: instance}) for state in states]


def _constructed(walker: Walker, owner: ClassInfo, instance: Value) -> list[State]:
    """Return what the constructor may leave in the instance's attributes, its own events left out."""
    if owner.name not in walker.constructed:
        walker.constructed[owner.name] = _after_init(walker, owner, instance)
    return walker.constructed[owner.name]


def _after_init(walker: Walker, owner: ClassInfo, instance: Value) -> list[State]:
    found = walker.project.method(owner, "__init__")
    if found is None:
        return [State()]
    function, module, _ = found
    scope = walker.project.scope_of(function, module)
    arguments = function.args
    place = Place(walker.project, scope, {}, {})
    names = {
        arg.arg: Value(f"__init__.{arg.arg}", ast.Name(arg.arg, ast.Load()), place)
        for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    }
    names[scope.self_name or "self"] = instance
    try:
        ended = walker.block(function.body, [State(names=names)], scope)
    except TooMany:
        walker.cut = False
        return [State()]
    states = [
        State(heap={k: v for k, v in path.heap.items() if k.startswith("self.") and _tells(v)}, assumed=path.assumed)
        for path in ended
        if path.ended != "raise"
    ]
    unique = walker.joined(states)
    return unique if 0 < len(unique) <= MAX_BEGINNINGS else [State()]


def _tells(value: Value) -> bool:
    """Return whether more is known of an attribute than its name."""
    return value.is_known or value.closure is not None or value.node is not None


def _is_inner(node: ast.AST, module: Module) -> bool:
    if isinstance(node, ast.Module | ast.Lambda):
        return isinstance(node, ast.Lambda)
    return any(isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef) for around in module.ancestors(node))
