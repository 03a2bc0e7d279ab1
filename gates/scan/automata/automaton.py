"""The automaton that an order of events is searched with, in linear time.

Markers stand in a word between its events: `start` and `end` of the path, `loop` where one is entered, `turn` where
one of its turns begins, `done` where it is left.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

MARKERS = ("start", "end", "loop", "turn", "done")
Thread = tuple[int, int]  # a state, and where the loop begins that the match began in


@dataclass
class State:
    """A state of the automaton: words that lead on, and ways on without a word."""

    words: list[tuple[frozenset[str], bool, int]] = field(default_factory=list)  # (names, negated, target)
    free: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Automaton:
    """States of which the first begins a match and `last` ends it."""

    states: tuple[State, ...]
    last: int

    @cached_property
    def is_empty(self) -> bool:
        """Return whether it matches where there is no event at all."""
        return self.last in self._closures[0]

    def search(self, word: Sequence[str]) -> tuple[int, int] | None:
        """Return the first match to end, the shortest of those, as (first, last + 1); `None` where there is none.

        Marks of a loop that was entered within the match do not count, unless the order speaks of `loop`.
        """
        begun: dict[Thread, int] = {}
        openers = _openers(word)
        for at, event in enumerate(word):
            opener, around = openers[at]
            begun = self._spread({**begun, (0, around): at})
            after: dict[Thread, int] = {}
            for (state, outer), first in begun.items():
                if first < opener and not self._names_loops:
                    after[(state, outer)] = max(first, after.get((state, outer), -1))
                    continue
                for names, negated, target in self.states[state].words:
                    if (event in names) is not negated and first >= after.get((target, outer), -1):
                        after[(target, outer)] = first
            begun = self._spread(after)
            ended = [first for (state, _), first in begun.items() if state == self.last]
            if ended:
                return max(ended), at + 1
        return None

    def can_match(self, events: Iterable[str]) -> bool:
        """Return whether a word of these events and of markers can match at all."""
        known = {*events, *MARKERS}
        seen, todo = set(self._closures[0]), list(self._closures[0])
        while todo:
            for names, negated, target in self.states[todo.pop()].words:
                if (known - names) if negated else (known & names):
                    new = set(self._closures[target]) - seen
                    seen |= new
                    todo += new
        return self.last in seen

    @cached_property
    def _names_loops(self) -> bool:
        """Return whether it speaks of `loop`, so that loops within a match count."""
        return any("loop" in names for state in self.states for names, _, _ in state.words)

    @cached_property
    def _closures(self) -> tuple[tuple[int, ...], ...]:
        return tuple(_closure(self.states, state) for state in range(len(self.states)))

    def _spread(self, begun: dict[Thread, int]) -> dict[Thread, int]:
        """Follow the ways on that take no word; of two beginnings in the same loop the later one stays."""
        found: dict[Thread, int] = {}
        for (begin, outer), first in sorted(begun.items(), key=lambda item: -item[1]):
            todo = [begin]
            while todo:
                state = todo.pop()
                if (state, outer) not in found:  # else all that it leads to was reached with a later beginning
                    found[(state, outer)] = first
                    todo += self.states[state].free
        return found


def _openers(word: Sequence[str]) -> list[tuple[int, int]]:
    """Return for each event where the loop begins that it is a mark of, and the loop that it stands in (-1: none)."""
    found: list[tuple[int, int]] = []
    opened: list[int] = []
    for at, event in enumerate(word):
        if event == "loop":
            found.append((at, opened[-1] if opened else -1))
            opened.append(at)
        elif event == "done" and opened:
            found.append((opened.pop(), opened[-1] if opened else -1))
        else:
            around = opened[-1] if opened else -1
            found.append((around if event == "turn" else -1, around))
    return found


def _closure(states: Sequence[State], state: int) -> tuple[int, ...]:
    """Return the states that are reached without a word."""
    found, todo = {state}, [state]
    while todo:
        for target in states[todo.pop()].free:
            if target not in found:
                found.add(target)
                todo.append(target)
    return tuple(found)
