"""Does one thing of the tested project several times at once, and tells what came of it beside what comes of it alone.

Run as `python -m gates_probe.concurrency QUESTION`.
"""

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from ..asking import Teller, Unreachable, asked, give_up, leave, said
from ..calculating.values import TooMuch
from ..places import Places
from .work import ENOUGH_S, Alone, Forcing, Holding, Point, Work, alone, repeated, spread, work_of

LOOK_S = 0.05
STILL_S = 2.0
PATIENCE = 10.0
IDLE_S = 0.01  # CPU time that a thread which stands still may use


@dataclass
class Round:
    """What came of a round: the results, errors by worker, for how long all were at it, and who stands still."""

    results: list[tuple[int, str]] = field(default_factory=list)
    errors: list[tuple[int, str, list[object] | None]] = field(default_factory=list)
    overlap_s: float = 0.0
    seconds: float = 0.0
    stood: list[tuple[int, list[list[object]]]] = field(default_factory=list)
    slow: bool = False


class Threads:
    """Runs rounds; `alone_s` is how long one of them takes by itself."""

    def __init__(self, work: Work, places: Places, enough_s: float, alone_s: float) -> None:
        self._work = work
        self._places = places
        self._enough_s = enough_s
        expected = (alone_s + enough_s) * work.workers
        self._still_s = STILL_S + 5 * expected
        self._limit_s = PATIENCE + 50 * expected

    def round(self, forcing: Forcing | Holding | None = None) -> Round:
        """Run one round; where a thread does not come to its end, it cannot be followed by another."""
        self._work.fresh()
        lot = [_Worker(i, self._work, self._enough_s, forcing) for i in range(self._work.workers)]
        here: list[int] = []
        for worker in lot:
            worker.begin(here, len(lot))
        seen = Round()
        if not self._ended(lot, seen, 20 if forcing else 1):
            return seen
        seen.errors = [(w.number, w.error[0], self._places.innermost(w.error[1].__traceback__)) for w in lot if w.error]
        seen.overlap_s = sorted(w.end for w in lot)[0] - sorted(w.start for w in lot)[-1]
        seen.seconds = max(w.end for w in lot) - min(w.start for w in lot)
        if not seen.errors:
            try:
                seen.results = self._work.told([w.returned for w in lot])
            except Exception as error:  # noqa: BLE001  # what is read runs the project's code
                seen.errors = [(0, said(error), self._places.innermost(error.__traceback__))]
        return seen

    def _ended(self, lot: "list[_Worker]", seen: Round, slower: int) -> bool:
        """Wait for all; say whether they ended, or else where they are."""
        began = still_since = time.monotonic()
        before: object = None
        while any(worker.thread.is_alive() for worker in lot):
            lot[-1].thread.join(LOOK_S) if lot[-1].thread.is_alive() else time.sleep(LOOK_S / 10)
            now = time.monotonic()
            if now - began < STILL_S:
                still_since = now
                continue
            frames = sys._current_frames()  # noqa: SLF001  # as faulthandler does
            at = [(w.number, *_where(frames.get(w.thread.ident or 0))) for w in lot if w.thread.is_alive()]
            cpu = sum(w.cpu() for w in lot)
            state = (at, round(cpu / IDLE_S))
            if state != before:
                before, still_since = state, now
            slow = now - began > self._limit_s * slower
            if at and (slow or now - still_since > self._still_s):
                seen.slow = slow
                seen.stood = [
                    (w.number, self._places.stack(frames.get(w.thread.ident or 0))) for w in lot if w.thread.is_alive()
                ]
                return False
        return True


class _Worker:
    """One thread of a round."""

    def __init__(self, number: int, work: Work, enough_s: float, forcing: Forcing | Holding | None) -> None:
        self.number = number
        self._work = work
        self._enough_s = enough_s
        self._forcing = forcing
        self.returned: list[object] = []
        self.error: tuple[str, BaseException] | None = None
        self.start = self.end = 0.0
        self.thread = threading.Thread(target=self._run, name=f"worker {number + 1}", daemon=True)

    def begin(self, here: list[int], count: int) -> None:
        self._here, self._count = here, count
        self.thread.start()

    def cpu(self) -> float:
        """Return the CPU time of the thread, 0 where the system does not say."""
        try:
            return time.clock_gettime(time.pthread_getcpuclockid(self.thread.ident or 0))
        except (OSError, AttributeError, OverflowError):
            return 0.0

    def _run(self) -> None:
        self._here.append(self.number)
        while len(self._here) < self._count:  # busy: who waits for a lock comes late
            pass
        self.start = time.monotonic()
        if self._forcing:
            self._forcing.begin(self.number)
        try:
            self.returned.extend(repeated(self._work, self.number, self._enough_s))
        except BaseException as error:  # noqa: BLE001  # whatever the project raises is told
            self.error = (said(error), error)
        finally:
            if self._forcing:
                self._forcing.end(self.number)
            self.end = time.monotonic()


def _where(frame: FrameType | None) -> tuple[int, int]:
    return (id(frame), frame.f_lasti) if frame is not None else (0, 0)


SWITCH_S = 1e-6
OWN_SHARE = 0.6  # of the time, that rounds without forced switches may take
FORCED = 12
FAILED = 3  # rounds that failed are enough
WHERE_S = 15.0


class AtOnce:
    """Runs all rounds, and tells of each; a failure is looked for until it was seen a few times."""

    def __init__(
        self, asked: dict[str, Any], work: Work, first: Alone, places: Places, tell: Teller, until: float
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


LATE = 0.9  # of the time limit: then every thread's place is written down


def main() -> None:
    """Do what was asked for, and leave at once when it was told."""
    question, tell = asked()
    faulthandler.dump_traceback_later(LATE * question["limit_s"], exit=True)
    places = Places(question["root"])
    tell("start", free_threaded=not getattr(sys, "_is_gil_enabled", lambda: True)())
    work = _made(question, places, tell)
    first = _alone(work, places, tell)
    AtOnce(question, work, first, places, tell, time.monotonic() + question["budget_s"]).run()
    tell("threading", free_threaded=not getattr(sys, "_is_gil_enabled", lambda: True)())
    tell("end")
    leave()


def _made(question: dict[str, Any], places: Places, tell: Teller) -> Work:
    try:
        return work_of(question)
    except Unreachable as error:
        give_up(tell, str(error))
    except BaseException as error:  # noqa: BLE001  # an import may raise anything, SystemExit too
        give_up(tell, said(error), places.innermost(error.__traceback__))


def _alone(work: Work, places: Places, tell: Teller) -> Alone:
    try:
        found = alone(work, ENOUGH_S)
    except TooMuch as error:
        give_up(tell, f"what it returns cannot be compared: {error}")
    except BaseException as error:  # noqa: BLE001  # whatever the project raises
        give_up(tell, f"alone it raises {said(error)}", places.innermost(error.__traceback__))
    for worker, text in found.results.items():
        tell("alone", worker=worker, result=text, again=found.again[worker])
    tell("took", seconds=found.seconds)
    return found


if __name__ == "__main__":
    main()
