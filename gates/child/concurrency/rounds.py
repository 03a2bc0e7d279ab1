"""Rounds in which threads do something at once: started together, watched, and told about."""

import sys
import threading
import time
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING

from ..asking import said
from .work import repeated

if TYPE_CHECKING:
    from ..places import Places
    from .holding import Forcing, Holding
    from .work import Work

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

    def __init__(self, work: "Work", places: "Places", enough_s: float, alone_s: float) -> None:
        self._work = work
        self._places = places
        self._enough_s = enough_s
        expected = (alone_s + enough_s) * work.workers
        self._still_s = STILL_S + 5 * expected
        self._limit_s = PATIENCE + 50 * expected

    def round(self, forcing: "Forcing | Holding | None" = None) -> Round:
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
                seen.stood = [(w.number, self._places.stack(frames.get(w.thread.ident or 0)))
                              for w in lot if w.thread.is_alive()]  # fmt: skip
                return False
        return True


class _Worker:
    """One thread of a round."""

    def __init__(self, number: int, work: "Work", enough_s: float, forcing: "Forcing | Holding | None") -> None:
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
