"""What is done at once, and what comes of it alone: the measure for what comes of it at once."""

import inspect
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from time import monotonic, sleep
from types import FrameType
from typing import Any

from ..asking import found
from ..calculating.session import Target, built, run_to_end
from ..calculating.values import encode
from ..places import Places


class Calls:
    """Each calls the same function, with arguments made afresh; each result is compared with that of its own alone."""

    repeated = True  # in a round, where it takes no time

    def __init__(self, asked: dict[str, Any]) -> None:
        self._target = Target(asked["call"], None, asked["take"])
        self._each = asked["each"]
        self.workers = len(self._each)

    def fresh(self) -> None:
        """Begin a round."""

    def job(self, worker: int) -> object:
        """Do what one of them does once."""
        function = self._target.bound()
        return self._target.taken(run_to_end(function(*built(self._each[worker])), self._target.takes))

    def told(self, returned: list[list[object]]) -> list[tuple[int, str]]:
        """Return each result that came of a round, as text, and whose it is."""
        return [(worker, text) for worker, own in enumerate(returned) for text in dict.fromkeys(map(_text, own))]


class Uses:
    """All use one object, which is made afresh for each round; what is read of it afterwards is compared."""

    repeated = False

    def __init__(self, asked: dict[str, Any]) -> None:
        self._make, self._use, self._read = (found(asked[name]) for name in ("shared", "use", "read"))
        self._args = asked["args"]
        self._numbered = _takes_two(self._use)
        self._times = asked["times"]
        self.workers = asked["workers"]
        self._object: object = None

    def fresh(self) -> None:
        """Make the object."""
        self._object = self._make(*built(self._args))

    def job(self, worker: int) -> object:
        """Use the object as often as one of them does; a second argument numbers the uses of all."""
        use, shared = self._use, self._object
        if self._numbered:
            for number in range(worker * self._times, (worker + 1) * self._times):
                use(shared, number)
        else:
            for _ in range(self._times):
                use(shared)
        return None

    def told(self, returned: list[list[object]]) -> list[tuple[int, str]]:  # noqa: ARG002  # as `Calls` has it
        """Return what is read of the object now."""
        return [(0, _text(run_to_end(self._read(self._object))))]


Work = Calls | Uses


def work_of(asked: dict[str, Any]) -> Work:
    """Return what was asked for; raise `Unreachable` where it is not there."""
    return Calls(asked) if asked["call"] else Uses(asked)


def _text(value: object) -> str:
    return json.dumps(encode(value), sort_keys=True)


def _takes_two(function: Callable[..., object]) -> bool:
    try:
        inspect.signature(function).bind(None, 0)
    except TypeError:
        return False
    except ValueError:  # built in, and does not say
        return True
    return True


ENOUGH_S = 0.01  # of work of each thread in a round
MOST = 2000


@dataclass(frozen=True)
class Alone:
    """The results by worker, those of later times, how long it takes, and for how long it is repeated in a round."""

    results: dict[int, str]
    again: dict[int, str]
    seconds: float
    enough_s: float


def alone(work: "Work", enough_s: float) -> Alone:
    """Do the work of each by itself, in a thread, as it is done at once; raise what it raises.

    It is repeated as in a round, so that what changes with each call is seen to.
    """
    first, _ = _done(work, 0.0)
    again, seconds = _done(work, 0.0)
    results, last = dict(first), dict(again)
    if work.repeated and seconds < enough_s:
        again += _done(work, enough_s)[0]
    last |= {worker: text for worker, text in again if text != results[worker]}
    return Alone(results, last, seconds, enough_s if work.repeated else 0.0)


def repeated(work: "Work", worker: int, enough_s: float) -> Iterator[object]:
    """Yield what comes of the work of one, done until it took long enough, once at least."""
    until = time.monotonic() + enough_s
    for _ in range(MOST):
        yield work.job(worker)
        if time.monotonic() >= until:
            return


def _done(work: "Work", enough_s: float) -> tuple[list[tuple[int, str]], float]:
    work.fresh()
    returned: list[list[object]] = []
    raised: list[BaseException] = []
    began = time.monotonic()

    def run() -> None:
        try:
            returned.extend([*repeated(work, worker, enough_s)] for worker in range(work.workers))
        except BaseException as error:  # noqa: BLE001  # raised on, below
            raised.append(error)

    thread = threading.Thread(target=run, name="alone", daemon=True)
    thread.start()
    thread.join()
    seconds = (time.monotonic() - began) / work.workers
    if raised:
        raise raised[0]
    return work.told(returned), seconds


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
MOST_POINTS = 20_000


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
        if (
            self._places.shown(frame.f_code.co_filename) is None
            or self._held.is_set()
            or len(self.points) > MOST_POINTS
        ):
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
