"""What is done at once, and what comes of it alone: the measure for what comes of it at once."""

import inspect
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..asking import found
from ..calculating.calling import Target, built, run_to_end
from ..calculating.values import encode


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
ENOUGH_OF_PROCESS_S = 0.04
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
