"""The state of a path through a program: what has happened, what its names hold, and what it assumed."""

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from gates.scan.order import MARKERS
from gates.scan.program.module import Function, tail_of
from gates.scan.program.scope import ClassInfo, Scope

if TYPE_CHECKING:
    from gates.scan.paths.place import Place


class Event(NamedTuple):
    """Something that happens on a path: its name, the objects it is about, and its place."""

    name: str
    bound: tuple[tuple[str, str], ...]
    path: str
    line: int
    last_line: int

    @property
    def where(self) -> str:
        """Return the event with its place, for people."""
        return f"{self.name} {self.path}:{self.line}"


class Frame(NamedTuple):
    """A call that a walk is inside of, and whether it runs a function, or an own method that nothing overrides."""

    path: str
    line: int
    last_line: int
    is_plain: bool


class Word:
    """What happened on a path, as a chain; the same chain is one object, so that comparing is cheap."""

    __slots__ = ("_next", "before", "event", "length")

    def __init__(self, before: "Word | None" = None, event: Event | None = None) -> None:
        self.before, self.event = before, event
        self.length: int = before.length + 1 if before is not None else 0
        self._next: dict[Event, Word] = {}

    def then(self, event: Event) -> "Word":
        """Return the chain with an event more."""
        if event not in self._next:
            self._next[event] = Word(self, event)
        return self._next[event]

    def shortened(self, before: "frozenset[Word]") -> "Word":
        """Return the chain that it goes on from, where it has only marks more; itself where it has events."""
        here: Word | None = self
        while here is not None and here not in before:
            if here.event is None or here.event.name not in MARKERS:
                return self
            here = here.before
        return here or self

    def release(self) -> None:
        """Let go of all chains that go on from this one: each of them holds the one before."""
        todo = [self]
        while todo:
            after = todo.pop()._next  # noqa: SLF001  # of its own kind
            todo += after.values()
            after.clear()

    def events(self) -> tuple[Event, ...]:
        """Return the events from the first to the last."""
        found: list[Event] = []
        here: Word | None = self
        while here is not None and here.event is not None:
            found.append(here.event)
            here = here.before
        return tuple(reversed(found))


UNSET = object()  # no constant is known


@dataclass(frozen=True, eq=False)
class Closure:
    """A function as a value: what it sees of the variables around it, and what it is bound to."""

    node: Function | ast.Lambda
    scope: Scope
    outer: "Mapping[str, Value]"
    bound: "tuple[Value, ...]" = ()


@dataclass(eq=False)
class Value:
    """An object: its identity on a path, and what made it where. Not `frozen`, which takes three times as long."""

    key: str
    node: ast.expr | None = None
    place: "Place | None" = None
    constant: object = UNSET
    closure: Closure | None = None
    owner: ClassInfo | None = None
    kind: str | None = None
    rest: "Value | None" = None

    @cached_property
    def tells(self) -> bool | str:
        """Return whether it is told from others whatever is looked for, or what the call that made it is called."""
        if self.is_known or self.closure is not None or (self.owner is not None and self.node is None):
            return True
        made = self.node
        tail = tail_of(made.func) if isinstance(made, ast.Call) else ""
        tail = tail_of(made.args[0]) if isinstance(made, ast.Call) and tail == "partial" and made.args else tail
        return (tail[:1].isupper() and not tail.isupper()) or tail

    @property
    def is_known(self) -> bool:
        """Return whether its constant is known."""
        return self.constant is not UNSET

    @property
    def type(self) -> str | None:
        """Return the full name of its class."""
        if self.owner is not None:
            return self.owner.name
        if self.kind is not None:
            return self.kind
        return self.place.type_of(self.node) if self.node is not None and self.place is not None else None


_TOLD = {"names": "_told_names", "heap": "_told_heap"}


@dataclass(frozen=True, eq=False)
class State:
    """Paths so far that agree in all but what happened. Its mappings are never changed in place: values hold them."""

    words: frozenset[Word] = frozenset()
    names: Mapping[str, Value] = field(default_factory=dict)
    heap: Mapping[str, Value] = field(default_factory=dict)
    assumed: Mapping[str, bool] = field(default_factory=dict)
    guards: tuple[str, ...] = ()
    turns: str = ""
    ended: str = ""
    returned: Value | None = None

    def but(self, **changes: object) -> "State":
        """Return the path with some of its fields otherwise; `dataclasses.replace` takes ten times as long."""
        other = object.__new__(State)
        own = other.__dict__
        own.update(self.__dict__)
        own.update(changes)
        for name in changes:
            own.pop(_TOLD.get(name, ""), None)
        return other

    def binds(self, name: str, value: Value) -> "State":
        """Return the path with a variable set."""
        return self.but(names={**self.names, name: value})

    def stores(self, key: str, value: Value) -> "State":
        """Return the path with an attribute set."""
        return self.but(heap={**self.heap, key: value})

    def happens(self, *events: Event) -> "State":
        """Return the path with events added."""
        words: Iterable[Word] = self.words
        for event in events:
            words = [word.then(event) for word in words]
        return self.but(words=frozenset(words))

    def without_idle_loop(self, before: frozenset[Word]) -> "State":
        """Return the path without the marks of a loop in which nothing has happened since."""
        return self.but(words=frozenset(word.shortened(before) for word in self.words))

    def sets_aside(self, key: str) -> "State":
        """Return a path that goes on with the rest of a generator, with how it left the block kept under a key."""
        if not self.ended:
            return self
        return self.stores(key, Value(self.ended, constant=self.ended, rest=self.returned)).but(ended="", returned=None)

    def takes_up(self, key: str) -> "State":
        """Return a path as it left its block, after the rest of the generator."""
        if (ended := self.heap.get(key)) is None:
            return self
        heap = {name: value for name, value in self.heap.items() if name != key}
        return self.but(heap=heap, ended=ended.key, returned=ended.rest)

    def signature(self, tells: Callable[[Value], bool]) -> tuple[object, ...]:
        """Return what paths must share to go on as one, beside what happened or what they assumed."""
        own = self.__dict__  # where what is told of the names and the heap is kept until these change
        for name, told in _TOLD.items():
            if told not in own:
                own[told] = frozenset((key, value.key) for key, value in own[name].items() if tells(value))
        returned = self.returned.key if self.returned and tells(self.returned) else None
        return *(own[told] for told in _TOLD.values()), self.ended, returned, self.guards
