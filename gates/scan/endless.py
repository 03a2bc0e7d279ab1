"""The time that a project's own rule may take in one folder: a pattern or an expression of it may come to no end."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

LIMIT_S = 20.0  # of processor time


class Endless(Exception):
    """A rule that comes to no end."""

    def __init__(self) -> None:
        super().__init__(f"it came to no end: stopped after {LIMIT_S:g} s of processor time")


@contextmanager
def limited() -> Iterator[None]:
    """Raise `Endless` in what takes too long; in the main thread alone, where signals arrive."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise Endless
