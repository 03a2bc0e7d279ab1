"""The rounds in threads: with the interpreter's own switches, with forced ones, and to see where one is enough."""

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .holding import Forcing, Holding, Point, spread
from .rounds import Round, Threads

if TYPE_CHECKING:
    from ..asking import Teller
    from ..places import Places
    from .work import Alone, Work

SWITCH_S = 1e-6
OWN_SHARE = 0.6  # of the time, that rounds without forced switches may take
FORCED = 12
FAILED = 3  # rounds that failed are enough
WHERE_S = 15.0


class AtOnce:
    """Runs all rounds, and tells of each; a failure is looked for until it was seen a few times."""

    def __init__(
        self, asked: dict[str, Any], work: "Work", first: "Alone", places: "Places", tell: "Teller", until: float
    ) -> None:
        self._asked = asked
        self._first = first
        self._places = places
        self._tell = tell
        self._until = until
        self._threads = Threads(work, places, first.enough_s, first.seconds)
        self._shorter = Threads(work, places, 0.0, first.seconds)
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
        self._forced(failed)
        if self._told:
            self._where()

    def _forced(self, failed: int) -> None:
        """Force switches at random steps."""
        chance, found = 0.02, 0
        for number in range(FORCED):
            forcing = Forcing(self._places, number, chance)
            forcing.until = self._until
            found += self._say(self._shorter.round(forcing), number, forced=True, pauses=forcing.pauses)
            chance = forcing.next_chance()
            if found >= FAILED - 1 or time.monotonic() > self._until or (failed and number):
                break

    def _where(self) -> None:
        """Tell between which lines it is enough that the others run."""
        until = time.monotonic() + WHERE_S
        patience = 0.1 + 5 * self._first.seconds
        order = self._held(None, patience).points
        lines = list({point[:2]: point for point in reversed(order)}.values())[::-1]
        for points in (lines, list(order)):
            found = self._searched(points, patience, until)
            if found:
                self._tell("line", **found)
                return

    def _searched(self, points: list[Point], patience: float, until: float) -> dict[str, object]:
        """Return where it is enough that the others run: the line before, and the last one before which they may."""

        def fails(index: int) -> bool:
            if index not in tried and time.monotonic() < until:
                tried[index] = self._held(points[index], patience)
            return index in tried and tried[index].failed

        tried: dict[int, Holding] = {}
        hit = next((index for index in spread(len(points)) if fails(index)), None)
        if hit is None:
            return {}
        good = [index for index, held in tried.items() if not held.failed]
        first = _edge(max([i for i in good if i < hit], default=-1), hit, fails)
        last = _edge(min([i for i in good if i > hit], default=len(points)), hit, fails)
        before, after = tried[first].before or points[first], points[last]
        return {"place": self._place(before), "until": self._place(after), "tried": len(tried)}

    def _held(self, point: Point | None, patience: float) -> Holding:
        """Run a round in which the first worker is held at a point until the others are done."""
        held = Holding(self._places, point, patience)
        held.failed = self._bad(self._shorter.round(held))
        return held

    def _place(self, point: Point) -> list[object]:
        return [self._places.shown(point[0]), point[1], point[3]]

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


def _edge(good: int, bad: int, fails: Callable[[int], bool]) -> int:
    """Return the index next to the good one that still fails, between a good one and one that fails."""
    while abs(bad - good) > 1:
        middle = (good + bad) // 2
        good, bad = (good, middle) if fails(middle) else (middle, bad)
    return bad
