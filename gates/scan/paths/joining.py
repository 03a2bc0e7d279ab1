"""Paths that agree go on as one, and work is counted, so that a walk ends."""

from collections.abc import Callable
from typing import NoReturn

from gates.scan.paths.events import Happening
from gates.scan.paths.state import State, Value

MAX_WORK = 2_000
MAX_PATHS = 96
MAX_WORDS = 400
Paths = list[State]


class TooMany(Exception):
    """There are more paths than are walked."""


class Joining:
    """The part of a walk that joins paths and counts its work; `cut` says that some were left out."""

    def __init__(self, happening: Happening) -> None:
        self.happening = happening
        self.cut, self._work = False, 0
        self._words = frozenset(word for kind in happening.kinds for p in kind.code.patterns for word in p.words)

    def joined(self, paths: Paths) -> Paths:
        """Let paths that agree go on as one: with what they both assumed, or with all that happened on either."""
        if len(paths) > 1:
            paths = self._merged(paths, lambda path: path.words, _agreeing)
            paths = self._merged(paths, lambda path: frozenset(path.assumed.items()), _united)
        if len(paths) > MAX_PATHS:
            paths = self._merged(paths, lambda _path: None, lambda one, other: _united(_agreeing(one, other), other))
        if len(paths) > MAX_PATHS or any(len(path.words) > MAX_WORDS for path in paths):
            self.give_up()
        return paths

    def _merged(self, paths: Paths, by: Callable[[State], object], merge: Callable[[State, State], State]) -> Paths:
        found: dict[object, State] = {}
        for path in paths:
            key = (path.signature(self._tells), by(path))
            found[key] = merge(found[key], path) if key in found else path
        return list(found.values())

    def _tells(self, value: Value) -> bool:
        """Return whether a later condition or event may tell a value from another."""
        return value.tells is True or value.tells in self._words

    def start(self) -> None:
        """Begin a new walk."""
        self.cut, self._work = False, 0

    def count(self, paths: int) -> None:
        """Count the work; raise `TooMany` where it is too much."""
        self._work += paths
        if self._work > MAX_WORK:
            self.give_up()

    def give_up(self) -> NoReturn:
        """End this walk, as one that is cut."""
        self.cut = True
        raise TooMany


def _agreeing(one: State, other: State) -> State:
    return one.but(assumed={key: truth for key, truth in one.assumed.items() if other.assumed.get(key) is truth})


def _united(one: State, other: State) -> State:
    return one.but(words=one.words | other.words)
