"""The work of a walk, counted so that it ends: no more paths are walked than that pays for."""

from gates.scan.paths.events import Happening
from gates.scan.paths.finding import Finding
from gates.scan.paths.joining import MAX_WORDS

MAX_WORK = 4_000


class TooMany(Exception):
    """There are more paths than are walked."""


class Counting(Finding):
    """The part of a walk that counts its work."""

    def __init__(self, happening: Happening) -> None:
        super().__init__(happening)
        self.limit = MAX_WORK
        self._work = 0

    def start(self, limit: int = MAX_WORK) -> None:
        """Begin a new walk, of so much work at most."""
        self.limit, self.most_words = limit, MAX_WORDS
        self.cut, self._work = False, 0

    def count(self, paths: int) -> None:
        """Count the work; raise `TooMany` where it is too much."""
        self._work += paths
        if self._work > self.limit:
            self.cut = True
            raise TooMany

    @property
    def work(self) -> int:
        """Return how much work this walk was."""
        return self._work
