"""What comes of the work where nobody else is at it: the measure for what comes of it at once."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .work import Work

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
