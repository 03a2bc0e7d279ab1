"""Orders of events as regular expressions over event names, searched in linear time."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gates.scan.automata.automaton import MARKERS, Automaton, State
from gates.task.yaml_source import did_you_mean

KEYWORDS = ("any", "not")
MAX_LENGTH = 2000
MAX_DEPTH = 50
_TOKEN = re.compile(r"\s*(?:([A-Za-z_]\w*)|([()|*+?])|(\S))")


class OrderError(ValueError):
    """An expression that is no order: what is wrong, and at which column (from 1) of the expression."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(f"{message} (at column {column} of the expression)")
        self.column = column


class Parser:
    """Reads an expression by descent and builds the automaton as it goes."""

    def __init__(self, text: str, events: frozenset[str], *, within_turn: bool) -> None:
        if len(text) > MAX_LENGTH:
            raise OrderError(f"the expression has {len(text)} characters, expected at most {MAX_LENGTH}", 1)
        self._events = events | set(MARKERS)
        self._tokens = [(m[1] or m[2] or m[3], m.start(m.lastindex or 0) + 1) for m in _TOKEN.finditer(text)]
        self._end = len(text.rstrip()) + 1
        self._at = 0
        self._depth = 0
        self._never = frozenset({"turn"} if within_turn else ())
        self.states: list[State] = [State()]
        self.names: set[str] = set()
        self.positive: list[str] = []

    def whole(self) -> int:
        """Read all of it and return the state that ends a match."""
        last = self._either(0)
        if self._at < len(self._tokens):
            word, column = self._tokens[self._at]
            raise OrderError(f"expected an event or the end, found {word!r}", column)
        return last

    def _look(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _take(self) -> tuple[str, int]:
        if self._at >= len(self._tokens):
            raise OrderError("expected an event or '(', found the end", self._end)
        self._at += 1
        return self._tokens[self._at - 1]

    def _new(self) -> int:
        self.states.append(State())
        return len(self.states) - 1

    def _either(self, first: int) -> int:
        ends = [self._sequence(first)]
        while self._look() == "|":
            self._take()
            ends.append(self._sequence(first))
        if len(ends) == 1:
            return ends[0]
        last = self._new()
        for end in ends:
            self.states[end].free.append(last)
        return last

    def _sequence(self, first: int) -> int:
        last = self._repeated(first)
        while self._look() not in {"", "|", ")"}:
            last = self._repeated(last)
        return last

    def _repeated(self, first: int) -> int:
        inner = self._new()
        self.states[first].free.append(inner)
        last = self._one(inner)
        while self._look() in {"*", "+", "?"}:
            sign, _ = self._take()
            after = self._new()
            self.states[last].free.append(after)
            if sign in "*+":
                self.states[last].free.append(inner)
            if sign in "*?":
                self.states[inner].free.append(after)
            # what follows must not run back into this repetition
            last = after
            before = self._new()
            self.states[before] = State(free=[inner])
            self.states[first].free.append(before)
            inner = before
        return last

    def _one(self, first: int) -> int:
        word, column = self._take()
        if word == "(":
            return self._group(first, column)
        if word == "not":
            return self._step(first, self._negated() | self._never, negated=True)
        if word == "any":
            return self._step(first, self._never, negated=True)
        self._known(word, column)
        self.positive.append(word)
        return self._step(first, frozenset({word}), negated=False)

    def _group(self, first: int, column: int) -> int:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise OrderError(f"groups are nested more than {MAX_DEPTH} deep", column)
        last = self._either(first)
        if self._look() != ")":
            raise OrderError("this '(' is never closed", column)
        self._take()
        self._depth -= 1
        return last

    def _negated(self) -> frozenset[str]:
        """Return the names after `not`: one, or alternatives in parentheses."""
        word, column = self._take()
        if word != "(":
            self._known(word, column)
            return frozenset({word})
        names = set()
        while True:
            word, column = self._take()
            self._known(word, column)
            names.add(word)
            sign, at = self._take()
            if sign == ")":
                return frozenset(names)
            if sign != "|":
                raise OrderError(f"expected '|' or ')' in what 'not' leaves out, found {sign!r}", at)

    def _step(self, first: int, names: frozenset[str], *, negated: bool) -> int:
        last = self._new()
        self.states[first].words.append((names, negated, last))
        return last

    def _known(self, word: str, column: int) -> None:
        if word in KEYWORDS or not re.fullmatch(r"[A-Za-z_]\w*", word):
            raise OrderError(f"expected an event, found {word!r}", column)
        if word not in self._events:
            near = did_you_mean(word, self._events)
            raise OrderError(f"there is no event {word!r}{near}", column)
        self.names.add(word)


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
        return cls(text, frozenset(parser.names), tuple(parser.positive), automaton, of)

    def find(self, word: tuple[str, ...]) -> tuple[int, int] | None:
        """Return what `search` does, which most words need not be asked for."""
        return self.search(word) if self.can_match(frozenset(word)) else None

    def search(self, word: Sequence[str]) -> tuple[int, int] | None:
        """Return the first match to end, the shortest of those, as (first, last + 1); `None` where there is none."""
        return self._automaton.search(word)

    def can_match(self, events: Iterable[str]) -> bool:
        """Return whether a word of these events and of markers can match at all."""
        return self._automaton.can_match(events)
