"""What happened on a path: events, the calls that they happened inside of, and the chain that they make."""

from typing import NamedTuple

from gates.scan.automata.automaton import MARKERS


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
    """A call that a walk is inside of, and whether it runs a function, or an own method that nothing overrides.

    It is `direct` where what it runs is told by a name or a type, and is no hook.
    """

    path: str
    line: int
    last_line: int
    is_plain: bool
    direct: bool = True


class Word:
    """What happened on a path, as a chain; the same chain is one object, so that comparing is cheap."""

    __slots__ = ("_next", "before", "event", "length")

    def __init__(self, before: "Word | None" = None, event: Event | None = None) -> None:
        self.before = before
        self.event = event
        self.length: int = before.length + 1 if before is not None else 0
        self._next: dict[Event, Word] = {}

    def then(self, event: Event) -> "Word":
        """Return the chain with an event more."""
        found = self._next.get(event)
        if found is None:
            found = self._next[event] = Word(self, event)
        return found

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
