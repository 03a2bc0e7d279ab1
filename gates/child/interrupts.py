"""Ctrl-C and SIGTERM: each ends a run, wherever in it they come.

Python raises them as an exception in whatever is under way. What is called back from C (the validators that are built
while modules are loaded, `__set_name__`, finalizers) turns that into another exception, or drops it. So it is noted,
too, and asked for where there is time to stop.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM. Not `KeyboardInterrupt` itself, after which Python would end itself by that signal."""


class _Told:
    """Whether either of the two has come."""

    so = False


def listen() -> None:
    """Take up both signals; one that the shell wants ignored stays so."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it was ignored, every child would seem to end with code 0
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def end() -> None:
    """Take no notice of either signal any more: the run is ending as they ask."""
    for number in SIGNALS:
        if signal.getsignal(number) is _interrupt:
            signal.signal(number, _ignore)  # a function, as below


def interrupted() -> bool:
    """Return whether a signal has come, even if what it interrupted took no notice."""
    return _Told.so


def stop_if_interrupted() -> None:
    """Raise `Interrupted` where a signal has come."""
    if _Told.so:
        raise Interrupted


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold both signals back while something must be done as a whole; they come after it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []

    # a function, not SIG_IGN: a child that is started meanwhile would inherit that it ignores the signal
    def hold(number: int, _frame: FrameType | None) -> None:
        held.append(number)

    before = {number: signal.signal(number, hold) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if held:
        _interrupt(held[0], None)


def _ignore(_number: int, _frame: FrameType | None) -> None:
    return None


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    _Told.so = True
    raise Interrupted
