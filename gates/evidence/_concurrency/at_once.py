"""The rounds in threads: with the interpreter's own switches, with forced ones, and by line to see where one is enough."""

import os
import sys
import time
from typing import TYPE_CHECKING, Any

from .forcing import Forcing, Line
from .rounds import Round, Threads

if TYPE_CHECKING:
    from .._leaks.journal import Teller
    from .alone import Alone
    from .places import Places
    from .work import Work

SWITCH_S = 1e-6
OWN_SHARE = 0.6  # of the time, that rounds without forced switches may take
FORCED = 12
FAILED = 3  # rounds that failed are enough
TRIED = 3  # rounds with a line
LINES = 40
WHERE_S = 15.0


class AtOnce:
    """Runs all rounds, and tells of each; a failure is looked for until it was seen a few times."""

    def __init__(
        self, asked: dict[str, Any], work: "Work", first: "Alone", places: "Places", tell: "Teller", until: float
    ) -> None:  # fmt: skip
        self._asked = asked
        self._first = first
        self._places = places
        self._tell = tell
        self._until = until
        self._threads = Threads(work, places, first.repeats, first.seconds)
        self._shorter = Threads(work, places, 1, first.seconds)
        self._told: set[str] = set()

    def run(self) -> None:
        """Run the rounds."""
        sys.setswitchinterval(SWITCH_S)
        began = time.monotonic()
        own = began + OWN_SHARE * (self._until - began)
        met = failed = number = 0
        while met < self._asked["rounds"] and failed < FAILED and (time.monotonic() < own or number < 1):
            seen = self._threads.round()
            bad = self._say(seen, number, forced=False)
            met, failed, number = met + (seen.overlap_s > 0), failed + bad, number + 1
        lines = self._forced(failed)
        if self._told:
            self._where(lines)

    def _forced(self, failed: int) -> dict[Line, str]:
        """Force switches at random steps; return the project's lines that were run."""
        chance, found, lines = 0.02, 0, dict[Line, str]()
        for number in range(FORCED):
            forcing = Forcing(self._places, number, chance)
            forcing.until = self._until
            found += self._say(self._shorter.round(forcing), number, forced=True, pauses=forcing.pauses)
            lines |= forcing.lines
            chance = forcing.next_chance()
            if found >= FAILED - 1 or time.monotonic() > self._until or (failed and number):
                break
        return lines

    def _where(self, lines: dict[Line, str]) -> None:
        """Tell of each line whether a switch there is enough."""
        until = time.monotonic() + WHERE_S
        for line, function in list(lines.items())[:LINES]:
            failed = tried = 0
            for number in range(TRIED):
                forcing = Forcing(self._places, number, 0.25, frozenset({line}))
                seen = self._shorter.round(forcing)
                tried, failed = tried + 1, failed + self._bad(seen)
                if seen.stood or not forcing.pauses or (failed and number):
                    break
            if failed:
                place = [self._places.shown(line[0]), line[1], function]
                self._tell("line", place=place, failed=failed, of=tried)
            if time.monotonic() > until or seen.stood:
                break

    def _bad(self, seen: Round) -> bool:
        unlike = any(text != self._first.results.get(worker) for worker, text in seen.results)
        return unlike or bool(seen.errors) or (bool(seen.stood) and not seen.slow)

    def _say(self, seen: Round, number: int, *, forced: bool, pauses: int = 0) -> bool:
        """Tell of a round; leave where one can go no further."""
        self._tell("round", number=number, forced=forced, overlap_s=seen.overlap_s, seconds=seen.seconds, pauses=pauses)
        for worker, text in seen.results:
            if text != self._first.results.get(worker):
                self._told.add("unlike")
                self._tell("unlike", worker=worker, round=number, forced=forced, result=text)
        for worker, error, place in seen.errors:
            self._told.add("error")
            self._tell("unlike", worker=worker, round=number, forced=forced, error=error, place=place)
        if seen.stood:
            self._tell("stood", slow=seen.slow, forced=forced, threads=[[n, stack] for n, stack in seen.stood])
            self._tell("end")
            os._exit(0)
        return self._bad(seen)
