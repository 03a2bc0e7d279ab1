"""Callables that leak about 1 MB an epoch without torch; a line that may be named for it is marked."""

import ctypes
import functools
import threading
from collections.abc import Callable

import numpy as np

MB = 1 << 20


def records() -> Callable[[], None]:
    history: dict[int, list[dict[str, float]]] = {}

    def epoch() -> None:
        history[len(history)] = [{"step": i, "loss": i / 3} for i in range(4000)]  # <- here

    return epoch


@functools.cache
def encode(text: str) -> bytes:
    return text.encode() * 10_000  # <- here


def cache_without_a_bound() -> Callable[[], None]:
    count = iter(range(1_000_000))

    def epoch() -> None:
        for _ in range(20):
            encode(f"{next(count):05}")  # <- here

    return epoch


class Link:
    """An element of a chain."""

    def __init__(self, before: "Link | None") -> None:
        self.before = before
        self.payload = bytearray(MB)  # <- here


def a_chain() -> Callable[[], None]:
    last = None

    def epoch() -> None:
        nonlocal last
        last = Link(last)  # <- here

    return epoch


def arrays_of_a_session() -> Callable[[], None]:
    arrays: list[np.ndarray] = []

    def epoch() -> None:
        arrays.append(np.ones(MB // 8))  # <- here

    return epoch


def errors_with_their_frames() -> Callable[[], None]:
    errors: list[Exception] = []

    def fails() -> None:
        batch = bytearray(MB)  # <- here
        raise ValueError(len(batch))

    def epoch() -> None:
        try:
            fails()
        except ValueError as error:
            errors.append(error)  # <- here

    return epoch


def threads_that_wait() -> Callable[[], None]:
    gate = threading.Event()

    def waits(_held: bytearray) -> None:
        gate.wait()

    def epoch() -> None:
        threading.Thread(target=waits, args=(bytearray(MB),), daemon=True).start()  # <- here

    return epoch


async def asynchronous() -> Callable[[], object]:
    kept: list[bytes] = []

    async def epoch() -> None:
        kept.append(b"x" * MB)  # <- here

    return epoch


def memory_of_a_library() -> Callable[[], None]:
    """Leak what only the C library knows of."""
    library = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    library.malloc.argtypes = [ctypes.c_size_t]

    def epoch() -> None:
        ctypes.memset(library.malloc(MB), 1, MB)

    return epoch
