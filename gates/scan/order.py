"""Orders of events: expressions over event names, searched in time that grows with the word alone.

Markers in a word: `start` and `end` of its path; `loop` where one is entered, `turn` at each turn, `done` at its end.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce
from typing import NamedTuple

from gates.words import did_you_mean

MARKERS = ("start", "end", "loop", "turn", "done")
KEYWORDS = ("any", "not")
MAX_LENGTH, MAX_DEPTH = 2000, 50
_TOKEN = re.compile(r"\s*(?:([A-Za-z_]\w*)|([()|*+?])|(\S))")
_NAME = re.compile(r"[A-Za-z_]\w*")


class OrderError(ValueError):
    """An expression that is no order: what is wrong, and at which column (from 1) of the expression."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(f"{message} (at column {column} of the expression)")
        self.column = column


class One(NamedTuple):
    """One event or mark: of some names, or of none of them."""

    names: frozenset[str]
    negated: bool = False


class Then(NamedTuple):
    """What is followed by something else."""

    first: "Node"
    rest: "Node"


class Either(NamedTuple):
    """One of several."""

    parts: "frozenset[Node]"


class Many(NamedTuple):
    """Any number of something, none among them."""

    part: "Node"


Node = One | Then | Either | Many
NOTHING = Either(frozenset())
EMPTY = Many(NOTHING)


def _then(first: Node, rest: Node) -> Node:
    if NOTHING in (first, rest):
        return NOTHING
    return rest if first == EMPTY else first if rest == EMPTY else Then(first, rest)


def _either(*parts: Node) -> Node:
    flat = {one for part in parts for one in (part.parts if isinstance(part, Either) else (part,))}
    return flat.pop() if len(flat) == 1 else Either(frozenset(flat))


@lru_cache(maxsize=4096)
def _may_end(node: Node) -> bool:
    """Return whether an expression fits where there is nothing at all."""
    if isinstance(node, Then):
        return _may_end(node.first) and _may_end(node.rest)
    return isinstance(node, Many) or (isinstance(node, Either) and any(map(_may_end, node.parts)))


@lru_cache(maxsize=65536)
def _after(node: Node, event: str) -> Node:
    """Return what is left of an expression after an event: its derivative."""
    if isinstance(node, One):
        return EMPTY if (event in node.names) is not node.negated else NOTHING
    if isinstance(node, Many):
        return _then(_after(node.part, event), node)
    if isinstance(node, Either):
        return _either(*(_after(part, event) for part in node.parts))
    rest = _then(_after(node.first, event), node.rest)
    return _either(rest, _after(node.rest, event)) if _may_end(node.first) else rest


def _can(node: Node, known: frozenset[str]) -> bool:
    """Return whether some word of known names fits."""
    if isinstance(node, One):
        return bool(known - node.names if node.negated else known & node.names)
    if isinstance(node, Then):
        return _can(node.first, known) and _can(node.rest, known)
    return isinstance(node, Many) or any(_can(part, known) for part in node.parts)


class Parser:
    """Reads an expression by descent."""

    def __init__(self, text: str, events: frozenset[str]) -> None:
        if len(text) > MAX_LENGTH:
            raise OrderError(f"the expression has {len(text)} characters, expected at most {MAX_LENGTH}", 1)
        self._events = events | set(MARKERS)
        self._tokens = [(m[1] or m[2] or m[3], m.start(m.lastindex or 0) + 1) for m in _TOKEN.finditer(text)]
        self._tokens.append(("", len(text.rstrip()) + 1))
        self._depth, self.names, self.positive = 0, set[str](), list[str]()

    def whole(self) -> Node:
        """Read all of it."""
        found = self._either()
        word, column = self._tokens[0]
        if word:
            raise OrderError(f"expected an event or the end, found {word!r}", column)
        return found

    def _is_next(self, *words: str) -> bool:
        return self._tokens[0][0] in words

    def _take(self) -> tuple[str, int]:
        if self._is_next(""):
            raise OrderError("expected an event or '(', found the end", self._tokens[0][1])
        return self._tokens.pop(0)

    def _either(self) -> Node:
        ways = [self._sequence()]
        while self._is_next("|"):
            self._take()
            ways.append(self._sequence())
        return _either(*ways)

    def _sequence(self) -> Node:
        parts = [self._repeated()]
        while not self._is_next("", "|", ")"):
            parts.append(self._repeated())
        return reduce(lambda rest, part: _then(part, rest), reversed(parts))

    def _repeated(self) -> Node:
        found = self._one()
        while self._is_next("*", "+", "?"):
            sign, _ = self._take()
            many = found if isinstance(found, Many) else Many(found)
            found = {"*": many, "+": _then(found, many), "?": _either(found, EMPTY)}[sign]
        return found

    def _one(self) -> Node:
        word, column = self._take()
        if word == "(":
            return self._group(column)
        if word in KEYWORDS:
            return One(self._negated() if word == "not" else frozenset(), negated=True)
        self.positive.append(self._checked(word, column))
        return One(frozenset({word}))

    def _group(self, column: int) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise OrderError(f"groups are nested more than {MAX_DEPTH} deep", column)
        found = self._either()
        if not self._is_next(")"):
            raise OrderError("this '(' is never closed", column)
        self._take()
        self._depth -= 1
        return found

    def _negated(self) -> frozenset[str]:
        """Return the names after `not`: one, or alternatives in parentheses."""
        word, column = self._take()
        if word != "(":
            return frozenset({self._checked(word, column)})
        names, sign = set[str](), "|"
        while sign == "|":
            names.add(self._checked(*self._take()))
            sign, column = self._take()
        if sign != ")":
            raise OrderError(f"expected '|' or ')' in what 'not' leaves out, found {sign!r}", column)
        return frozenset(names)

    def _checked(self, word: str, column: int) -> str:
        if word in KEYWORDS or not _NAME.fullmatch(word):
            raise OrderError(f"expected an event, found {word!r}", column)
        if word not in self._events:
            raise OrderError(f"there is no event {word!r}{did_you_mean(word, self._events)}", column)
        self.names.add(word)
        return word


class Order(NamedTuple):
    """A compiled expression: `names` are its events, `positive` those asked for, `of` whose objects it goes through."""

    text: str
    names: frozenset[str]
    positive: tuple[str, ...]
    node: Node
    of: str = ""

    @classmethod
    def parse(cls, text: str, events: Iterable[str], of: str = "") -> "Order":
        """Compile an expression; raise `OrderError` for one that is broken, unknown or matches nothing at all."""
        parser = Parser(text, frozenset(events))
        node = parser.whole()
        if _may_end(node):
            raise OrderError("the expression matches where there is no event at all; ask for one", 1)
        return cls(text, frozenset(parser.names), tuple(parser.positive), node, of)

    def search(self, word: Sequence[str]) -> tuple[int, int] | None:
        """Return the first match to end, the shortest of those, as (first, last + 1); `None` where there is none.

        Marks of a loop that was entered within the match do not count, unless the order speaks of `loop`. Of two
        matches that began in the same loop, and of which the same is left, only the later one goes on.
        """
        begun: dict[tuple[Node, int], int] = {}
        openers = _openers(word) if self.can_match(word) else ()  # most words need not be searched
        for at, (event, (opener, around)) in enumerate(zip(word, openers, strict=False)):
            begun[(self.node, around)] = at
            after: dict[tuple[Node, int], int] = {}
            for (node, outer), first in begun.items():
                left = node if first < opener and "loop" not in self.names else _after(node, event)
                if left != NOTHING:
                    after[(left, outer)] = max(first, after.get((left, outer), -1))
            begun = after
            if ended := [first for (node, _), first in begun.items() if _may_end(node)]:
                return max(ended), at + 1
        return None

    def can_match(self, events: Iterable[str]) -> bool:
        """Return whether a word of these events and of markers can match at all."""
        return _can(self.node, frozenset({*events, *MARKERS}))


def _openers(word: Sequence[str]) -> list[tuple[int, int]]:
    """Return for each event where the loop begins that it is a mark of, and the loop that it stands in (-1: none)."""
    found, opened = list[tuple[int, int]](), [-1]
    for at, event in enumerate(word):
        if event == "loop":
            found.append((at, opened[-1]))
            opened.append(at)
        elif event == "done" and len(opened) > 1:
            found.append((opened.pop(), opened[-1]))
        else:
            found.append((opened[-1] if event == "turn" else -1, opened[-1]))
    return found
