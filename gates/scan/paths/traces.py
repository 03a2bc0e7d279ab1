"""The event traces of a program: every path of every function that nobody in the program walks into."""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from gates.scan.paths.contexts import TooMany, parameters
from gates.scan.paths.events import Happening
from gates.scan.paths.hot import Hot
from gates.scan.paths.place import Place
from gates.scan.paths.state import Event, Frame, State, Value, Word
from gates.scan.paths.walking import Walker, is_given_away
from gates.scan.program.module import Function, Module
from gates.scan.program.nodes import FUNCTIONS
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

Speaks = Callable[[frozenset[str]], bool]  # of some events


class Trace(NamedTuple):
    """The paths through one function, whether some were left out, and the events that the program has `anywhere`.

    A function that is `cut` has too many paths, and no `words`: it is not decided, and `told` of where who runs it is
    not, in its place. One that is `handed` on stands inside of another, which leaves it to others to run it.
    """

    path: str
    line: int
    last_line: int
    name: str
    words: tuple[tuple[Event, ...], ...]
    cut: bool
    possible: frozenset[str]
    calls: Mapping[Event, tuple[Frame, ...]]
    anywhere: frozenset[str] = frozenset()
    told: bool = True
    handed: bool = False
    beside: frozenset[str] = frozenset()  # events of other methods of its class, which whoever uses it calls in turn


class Tracer:
    """The traces of one program for one set of events, each made where a rule first asks for it."""

    def __init__(self, project: Project, happening: Happening) -> None:
        self._hot = Hot(project, happening)
        self._walker = Walker(project, happening, self._hot)
        self._made: dict[ast.AST, list[Trace]] = {}
        self._walked: set[ast.AST] = set()  # what walks came to that were not cut
        self._begun: set[ast.AST] = set()  # what walks came to that were
        self._again: set[ast.AST] = set()  # of these, what is walked by itself: who runs it is said not to be decided

    def traces(self, judged: Iterable[Module], speaks: Speaks) -> Iterator[Trace]:
        """Yield the traces of functions that `speaks` asks for: those that nothing runs, then those no walk came to."""
        hot, paths = self._hot, {module.path for module in judged}
        own = [(node, module) for node, module in hot.functions.items() if module.path in paths]
        outer = [n for n, m in own if type(n) is not ast.Lambda and {*map(type, m.ancestors(n))}.isdisjoint(FUNCTIONS)]
        yield from self._walk([n for n in outer if n not in hot.run and (n in self._made or speaks(hot.possible(n)))])
        yield from self._walk(self._left(outer, speaks))
        yield from (trace._replace(handed=True) for trace in self._walk(self._given_away(own, speaks)))

    def _left(self, outer: list[ast.AST], speaks: Speaks) -> Iterator[ast.AST]:
        """Yield what other code may run, but no whole walk came to, where it has such events by itself."""
        hot = self._hot
        for node in sorted((n for n in outer if n in hot.run), key=lambda node: -getattr(node, "lineno", 0)):
            if node in self._made or (node not in self._walked and speaks(hot.possible(node))):
                self._again |= {node} if node in self._begun else set()
                yield node

    def _given_away(self, own: list[tuple[ast.AST, Module]], speaks: Speaks) -> Iterator[ast.AST]:
        """Yield what stands inside of functions that hand it on, such as the step that an engine runs."""
        for node, module in own:
            is_left = node in self._made or node not in self._walked | self._begun
            if is_left and is_given_away(node, module) and speaks(self._hot.possible(node)):
                yield node

    def _walk(self, nodes: Iterable[ast.AST]) -> Iterator[Trace]:
        """Yield the traces of functions; what one that has too many paths runs is not decided."""
        for node in nodes:
            if node not in self._made:
                self._walker.start()
                self._made[node] = list(_trace(self._walker, node, self._hot))
                (self._begun if self._walker.cut else self._walked).update(self._walker.walked)
            told = node not in self._again
            yield from (trace if told else trace._replace(told=False) for trace in self._made[node])


def _trace(walker: Walker, node: ast.AST, hot: Hot) -> Iterator[Trace]:
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module)
    module = hot.functions[node]
    scope = walker.project.scope_of(node, module)
    if (words := _words(walker, node, scope)) or walker.cut:
        line, owner = getattr(node, "lineno", 1), scope.owner
        last = getattr(node, "end_lineno", None) or line
        name = walker.project.qualified(node, scope) if not isinstance(node, ast.Module) else module.name
        kept = () if walker.cut else words
        others = {*(owner.methods.values() if owner else ())} - {node} - walker.walked
        beside = frozenset().union(*map(hot.possible, others))
        known = (walker.cut, hot.possible(node), walker.calls, walker.anywhere)
        yield Trace(module.path, line, last, name, kept, *known, beside=beside)


def _words(walker: Walker, node: Function | ast.Module, scope: Scope) -> tuple[tuple[Event, ...], ...]:
    """Return what happens on each path through a function, those that end by an error only where no other does."""
    words, raised = dict[tuple[Event, ...], None](), dict[tuple[Event, ...], None]()
    line = getattr(node, "lineno", 1)
    start, end = (Event(name, (), scope.module.path, line, line) for name in ("start", "end"))
    root = Word().then(start)
    try:
        for path in walker.decorated(node, State(words=frozenset({root}), names=_handed(walker, node, scope)), scope):
            kept = raised if path.ended == "raise" else words
            kept |= {(*events, end): None for events in sorted(word.events() for word in path.words) if len(events) > 1}
    except TooMany:
        pass
    finally:
        if root.before is not None:
            root.before.release()
    return tuple(words or raised)  # what ends by `raise SystemExit(main())` ran all the same


def _handed(walker: Walker, node: Function | ast.Module, scope: Scope) -> dict[str, Value]:
    place = Place(walker.project, scope, {}, {})
    named = () if isinstance(node, ast.Module) else parameters(node)
    names = {name: Value(name, ast.Name(name, ast.Load()), place) for name in named}
    return {**names, scope.self_name: Value("self", owner=scope.owner)} if scope.owner and scope.self_name else names
