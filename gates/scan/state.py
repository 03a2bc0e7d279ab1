"""The state of a path through a program: what has happened, what its names hold, and what it assumed."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from gates.scan.values import Value
from gates.scan.words import Event, Word

MADE = re.compile(r"\w+@[^()\[\],]*\.\w+")  # an attribute of what a constructor made


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

    def binds(self, name: str, value: Value) -> "State":
        """Return the path with a variable set."""
        value = replace(value, given=False) if value.given else value
        return replace(self, names={**self.names, name: value})

    def stores(self, key: str, value: Value) -> "State":
        """Return the path with an attribute set."""
        return replace(self, heap={**self.heap, key: value})

    def forgets(self, before: Mapping[str, Value]) -> "State":
        """Return the path without the attributes of objects that were made since, and that nothing holds any more."""
        fresh = [key for key in self.heap if "@" in key and key not in before and MADE.fullmatch(key)]
        if not fresh:
            return self
        values = (*self.names.values(), *self.heap.values(), *([self.returned] if self.returned else ()))
        held = "\n".join(value.key for value in values)
        dead = {key for key in fresh if key.rpartition(".")[0] not in held}
        return replace(self, heap={k: v for k, v in self.heap.items() if k not in dead}) if dead else self

    def assumes(self, key: str, *, truth: bool) -> "State":
        """Return the path on which a condition is so."""
        return replace(self, assumed={**self.assumed, key: truth})

    def happens(self, *events: Event) -> "State":
        """Return the path with events added."""
        words: Iterable[Word] = self.words
        for event in events:
            words = [word.then(event) for word in words]
        return replace(self, words=frozenset(words))

    def without_idle_loop(self, before: frozenset[Word]) -> "State":
        """Return the path without the marks of a loop in which nothing has happened since."""
        return replace(self, words=frozenset(word.shortened(before) for word in self.words))

    def signature(self, tells: Callable[[Value], bool]) -> tuple[object, ...]:
        """Return what paths must share to go on as one, beside what happened or what they assumed."""
        names = frozenset((name, value.key) for name, value in self.names.items() if tells(value))
        heap = frozenset((name, value.key) for name, value in self.heap.items() if tells(value))
        returned = self.returned.key if self.returned and tells(self.returned) else None
        return names, heap, self.ended, returned, self.guards
