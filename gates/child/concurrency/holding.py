"""Forces switches between threads: at random steps of the interpreter, or with one held until others are done."""

import sys
import threading
from collections.abc import Iterator
from random import Random
from time import monotonic, sleep
from types import FrameType
from typing import Any

from ..places import Places

PAUSE_S = 1e-5
PAUSES = 400  # that a round is given, about
OFTEN = 0.25


class Forcing:
    """Pauses at random steps of the project's lines.

    What the interpreter promises to do in one step stays whole (`list.append`, `d[k] = v`); `x.n += 1` is several.
    """

    def __init__(self, places: Places, seed: int, chance: float) -> None:
        self._places = places
        self._draw = Random(seed).random  # noqa: S311  # one of our own: the project's must not notice
        self._chance = chance
        self.steps = 0
        self.pauses = 0
        self.until = float("inf")

    def begin(self, _worker: int) -> None:
        """Look at each step of this thread from now on."""
        sys.settrace(self._entered)

    def end(self, _worker: int) -> None:
        """Look away."""
        sys.settrace(None)

    def next_chance(self) -> float:
        """Return how often the next round should pause, so that it is given about as many pauses as it can bear."""
        return min(OFTEN, max(1e-5, PAUSES / max(1, self.steps)))

    def _entered(self, frame: FrameType, _event: str, _arg: object) -> Any:  # noqa: ANN401  # as `sys.settrace` has it
        if self._places.shown(frame.f_code.co_filename) is None or monotonic() > self.until:
            return None
        frame.f_trace_opcodes = True
        return self._stepped

    def _stepped(self, _frame: FrameType, event: str, _arg: object) -> Any:  # noqa: ANN401
        if event != "opcode":
            return self._stepped
        self.steps += 1
        if self._draw() < self._chance:
            self.pauses += 1
            sleep(PAUSE_S)
        return self._stepped


Point = tuple[str, int, int, str]  # file, line, step in the code, function
MOST = 20_000


class Holding:
    """Holds the first worker when it comes to a point for the first time; without one, tells what it comes by.

    The others begin when it is held, or has ended. Where it holds a lock that they need, they wait, and so
    it goes on after a while.
    """

    def __init__(self, places: Places, point: Point | None, patience_s: float) -> None:
        self._places = places
        self._point = point
        self._patience_s = patience_s
        self._held = threading.Event()
        self._done = threading.Event()
        self._others = 0
        self._lock = threading.Lock()
        self._last: Point | None = None
        self.before: Point | None = None
        self.points: dict[Point, None] = {}
        self.failed = False

    def begin(self, worker: int) -> None:
        """Look at each step of the first worker; have the others wait for it."""
        if worker:
            with self._lock:
                self._others += 1
            self._held.wait()
        else:
            sys.settrace(self._entered)

    def end(self, worker: int) -> None:
        """Let the others begin, or the held one go on when the last of them has ended."""
        if not worker:
            sys.settrace(None)
            self._held.set()
            return
        with self._lock:
            self._others -= 1
            if not self._others:
                self._done.set()

    def _entered(self, frame: FrameType, _event: str, _arg: object) -> Any:  # noqa: ANN401  # as `sys.settrace` has it
        if self._places.shown(frame.f_code.co_filename) is None or self._held.is_set() or len(self.points) > MOST:
            return None
        frame.f_trace_opcodes = True
        return self._stepped

    def _stepped(self, frame: FrameType, event: str, _arg: object) -> Any:  # noqa: ANN401
        if event != "opcode" or self._held.is_set():
            return self._stepped
        point = (frame.f_code.co_filename, frame.f_lineno, frame.f_lasti, frame.f_code.co_qualname)
        if self._point is None:
            self.points.setdefault(point)
        elif point == self._point:
            self.before = self._last
            self._held.set()
            self._done.wait(self._patience_s)
        self._last = point
        return self._stepped


def spread(count: int) -> Iterator[int]:
    """Yield the numbers below `count`, each once, far apart from those before."""
    bits = max(1, (count - 1).bit_length())
    for number in range(1 << bits):
        turned = int(f"{number:0{bits}b}"[::-1], 2)
        if turned < count:
            yield turned
