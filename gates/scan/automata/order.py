"""Orders of events as regular expressions over event names, searched in linear time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gates.scan.automata.automaton import MARKERS, Automaton
from gates.scan.automata.grammar import OrderError, Parser

MAX_KEPT = 10_000


@dataclass(frozen=True)
class Order:
    """A compiled expression; `names` are the events that it speaks of, `positive` those that it asks for, in order.

    `of` is the metavariable whose objects are looked at one by one, though but one event binds it.
    """

    text: str
    names: frozenset[str]
    positive: tuple[str, ...]
    _automaton: Automaton = field(repr=False, compare=False)
    of: str = ""
    _within_turn: bool = field(default=False, repr=False, compare=False)
    _found: dict[tuple[str, ...], tuple[int, int] | None] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def parse(cls, text: str, events: Iterable[str], *, within_turn: bool = False, of: str = "") -> "Order":
        """Compile an expression; raise `OrderError` for one that is broken, unknown or matches nothing at all.

        `within_turn` keeps `any` and `not` from crossing into the next turn of a loop.
        """
        parser = Parser(text, frozenset(events), within_turn=within_turn)
        last = parser.whole()
        automaton = Automaton(tuple(parser.states), last)
        if automaton.is_empty:
            raise OrderError("the expression matches where there is no event at all; ask for one", 1)
        return cls(text, frozenset(parser.names), tuple(parser.positive), automaton, of, within_turn)

    def find(self, word: tuple[str, ...]) -> tuple[int, int] | None:
        """Return what `search` does; of many paths that differ in events not spoken of only one is searched."""
        if not self._automaton.is_loose:
            return self.search(word)
        places = self._telling(word)
        short = tuple(word[at] for at in places)
        if short not in self._found:
            if len(self._found) >= MAX_KEPT:
                self._found.clear()
            self._found[short] = self.search(short) if self.can_match(frozenset(short)) else None
        span = self._found[short]
        return (places[span[0]], places[span[1] - 1] + 1) if span is not None else None

    def search(self, word: Sequence[str]) -> tuple[int, int] | None:
        """Return the first match to end, the shortest of those, as (first, last + 1); `None` where there is none."""
        return self._automaton.search(word)

    def can_match(self, events: Iterable[str]) -> bool:
        """Return whether a word of these events and of markers can match at all."""
        return self._automaton.can_match(events)

    def _telling(self, word: Sequence[str]) -> list[int]:
        """Return where the events stand that count: those that the order names, and loops that hold some."""
        kept = {*self.names, *(MARKERS if self.names & set(MARKERS) or self._within_turn else ())}
        found: list[int] = []
        opened: list[int] = []
        for at, event in enumerate(word):
            if event not in kept:
                continue
            if event == "loop":
                opened.append(len(found))
            elif event == "done" and opened:
                begun = opened.pop()
                if "loop" not in self.names and all(word[each] in MARKERS for each in found[begun:]):
                    del found[begun:]
                    continue
            found.append(at)
        return found
