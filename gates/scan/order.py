"""Orders of events as regular expressions over event names, searched in linear time.

    backward (not unscale)* clip          names, one after the other; `not a` is one event that is not `a`
    (step | plain_step) any* end          alternatives, any one event, `*`, `+`, `?`, groups

Markers stand in a word between its events: `start` and `end` of the path, `loop` where one is entered, `turn` where
one of its turns begins, `done` where it is left.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from gates.yaml_source import did_you_mean

MARKERS = ("start", "end", "loop", "turn", "done")
KEYWORDS = ("any", "not")
MAX_LENGTH = 2000
MAX_DEPTH = 50
MAX_KEPT = 10_000
_TOKEN = re.compile(r"\s*(?:([A-Za-z_]\w*)|([()|*+?])|(\S))")


class OrderError(ValueError):
    """An expression that is no order: what is wrong, and at which column (from 1) of the expression."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(f"{message} (at column {column} of the expression)")
        self.column = column


@dataclass
class _State:
    """A state of the automaton: words that lead on, and ways on without a word."""

    words: list[tuple[frozenset[str], bool, int]] = field(default_factory=list)  # (names, negated, target)
    free: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Order:
    """A compiled expression; `names` are the events that it speaks of, `positive` those that it asks for, in order."""

    text: str
    names: frozenset[str]
    positive: tuple[str, ...]
    _states: tuple[_State, ...] = field(repr=False, compare=False)
    _closures: tuple[tuple[int, ...], ...] = field(repr=False, compare=False)
    _last: int = field(repr=False, compare=False)
    _within_turn: bool = field(default=False, repr=False, compare=False)
    _found: dict[tuple[str, ...], tuple[int, int] | None] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def parse(cls, text: str, events: Iterable[str], *, within_turn: bool = False) -> "Order":
        """Compile an expression; raise `OrderError` for one that is broken, unknown or matches nothing at all.

        `within_turn` keeps `any` and `not` from crossing into the next turn of a loop.
        """
        parser = _Parser(text, frozenset(events), within_turn=within_turn)
        last = parser.whole()
        closures = tuple(_closure(parser.states, state) for state in range(len(parser.states)))
        if last in closures[0]:
            raise OrderError("the expression matches where there is no event at all; ask for one", 1)
        names, states = frozenset(parser.names), tuple(parser.states)
        return cls(text, names, tuple(parser.positive), states, closures, last, within_turn)

    def find(self, word: tuple[str, ...]) -> tuple[int, int] | None:
        """Return what `search` does; of many paths that differ in events not spoken of only one is searched."""
        if not self._is_loose:
            return self.search(word)
        places = self._telling(word)
        short = tuple(word[at] for at in places)
        if short not in self._found:
            if len(self._found) >= MAX_KEPT:
                self._found.clear()
            self._found[short] = self.search(short) if self.can_match(frozenset(short)) else None
        span = self._found[short]
        return (places[span[0]], places[span[1] - 1] + 1) if span is not None else None

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

    @cached_property
    def _is_loose(self) -> bool:
        """Return whether events that the order does not name may stand anywhere between those that it asks for."""
        targets = {t for state in self._states for names, negated, t in state.words if not negated} - {self._last}
        for target in targets:
            here = self._closures[target]
            after = {t for state in here for names, negated, t in self._states[state].words if negated}
            reached = {each for t in after for each in self._closures[t]}
            if not {s for s in here if self._states[s].words or s == self._last} <= reached:
                return False
        return True

    def search(self, word: Sequence[str]) -> tuple[int, int] | None:
        """Return the first match to end, the shortest of those, as (first, last + 1); `None` where there is none.

        Marks of a loop that was entered within the match do not count, unless the order speaks of `loop`.
        """
        begun: dict[_Thread, int] = {}
        openers = _openers(word)
        for at, event in enumerate(word):
            opener, around = openers[at]
            begun = self._spread({**begun, (0, around): at})
            after: dict[_Thread, int] = {}
            for (state, outer), first in begun.items():
                if first < opener and "loop" not in self.names:
                    after[(state, outer)] = max(first, after.get((state, outer), -1))
                    continue
                for names, negated, target in self._states[state].words:
                    if (event in names) is not negated and first >= after.get((target, outer), -1):
                        after[(target, outer)] = first
            begun = self._spread(after)
            ended = [first for (state, _), first in begun.items() if state == self._last]
            if ended:
                return max(ended), at + 1
        return None

    def can_match(self, events: Iterable[str]) -> bool:
        """Return whether a word of these events and of markers can match at all."""
        known = {*events, *MARKERS}
        seen, todo = set(self._closures[0]), list(self._closures[0])
        while todo:
            for names, negated, target in self._states[todo.pop()].words:
                if (known - names) if negated else (known & names):
                    new = set(self._closures[target]) - seen
                    seen |= new
                    todo += new
        return self._last in seen

    def _spread(self, begun: "dict[_Thread, int]") -> "dict[_Thread, int]":
        """Follow the ways on that take no word; of two beginnings in the same loop the later one stays."""
        found: dict[_Thread, int] = {}
        for (state, outer), first in sorted(begun.items(), key=lambda item: -item[1]):
            for reached in self._closures[state]:
                found.setdefault((reached, outer), first)
        return found


_Thread = tuple[int, int]  # a state, and where the loop begins that the match began in


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


def _closure(states: Sequence[_State], state: int) -> tuple[int, ...]:
    """Return the states that are reached without a word."""
    found, todo = {state}, [state]
    while todo:
        for target in states[todo.pop()].free:
            if target not in found:
                found.add(target)
                todo.append(target)
    return tuple(found)


class _Parser:
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
        self.states: list[_State] = [_State()]
        self.names: set[str] = set()
        self.positive: list[str] = []

    def whole(self) -> int:
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
        self.states.append(_State())
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
            self.states[before] = _State(free=[inner])
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
