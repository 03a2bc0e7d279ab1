"""Something that is done again and again while a block runs, beside it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def every(seconds: float, beat: Callable[[], None]) -> Iterator[None]:
    """Do something every so many seconds while this is open; it is not under way any more afterwards."""
    ended = threading.Event()

    def beats() -> None:
        while not ended.wait(seconds):
            beat()

    thread = threading.Thread(target=beats, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
