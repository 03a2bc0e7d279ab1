"""What comes of the work where nobody else is at it: the measure for what comes of it at once."""

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .work import Work

ENOUGH_S = 0.01  # of work of each thread in a round
MOST = 500


@dataclass(frozen=True)
class Alone:
    """The results by worker, those of later times, how long one worker takes, and how often it does it in a round."""

    results: dict[int, str]
    again: dict[int, str]
    seconds: float
    repeats: int


def alone(work: "Work") -> Alone:
    """Do the work of each by itself, in a thread, as it is done at once; raise what it raises.

    It is done again as often as in a round, so that what changes with each call is seen to.
    """
    first, _ = _done(work, 1)
    again, seconds = _done(work, 1)
    repeats = max(1, min(MOST, round(ENOUGH_S / max(seconds, 1e-6)))) if work.repeated else 1
    results, last = dict(first), dict(again)
    if repeats > 1:
        again += _done(work, repeats)[0]
    last |= {worker: text for worker, text in again if text != results[worker]}
    return Alone(results, last, seconds, repeats)


def _done(work: "Work", repeats: int) -> tuple[list[tuple[int, str]], float]:
    work.fresh()
    returned: list[list[object]] = []
    raised: list[BaseException] = []
    began = time.monotonic()

    def run() -> None:
        try:
            returned.extend([work.job(worker) for _ in range(repeats)] for worker in range(work.workers))
        except BaseException as error:  # noqa: BLE001  # raised on, below
            raised.append(error)

    thread = threading.Thread(target=run, name="alone", daemon=True)
    thread.start()
    thread.join()
    seconds = (time.monotonic() - began) / work.workers
    if raised:
        raise raised[0]
    return work.told(returned), seconds
