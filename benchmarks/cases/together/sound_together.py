"""Callables that come to the same at once as alone, in ways that look as if they might not."""

import itertools
import logging
import queue
import random
import sqlite3
import threading
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

LOCAL = threading.local()
LOCK = threading.RLock()


class LockedTracker:
    """Counts under a lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def log(self, value: int) -> None:
        """Count one more."""
        with self._lock:
            self.count += 1 + 0 * value


class AppendingTracker:
    """Appends, which is one step."""

    def __init__(self) -> None:
        self.kept: list[int] = []

    def log(self, value: int) -> None:
        """Keep a value."""
        self.kept.append(value)

    @property
    def count(self) -> int:
        """Return how many were kept."""
        return len(self.kept)


class QueueTracker:
    """Puts what it is told into a queue."""

    def __init__(self) -> None:
        self._queue: queue.Queue[int] = queue.Queue()

    def log(self, value: int) -> None:
        """Put a value."""
        self._queue.put(value)

    @property
    def count(self) -> int:
        """Return how many there are."""
        return self._queue.qsize()


class DatabaseTracker:
    """Writes to a database that all threads share, under its lock."""

    def __init__(self) -> None:
        self._base = sqlite3.connect(":memory:", check_same_thread=False)
        self._base.execute("create table steps (value integer)")
        self._lock = threading.Lock()

    def log(self, value: int) -> None:
        """Insert a row."""
        with self._lock, self._base:
            self._base.execute("insert into steps values (?)", (value,))

    @property
    def count(self) -> int:
        """Return how many rows there are."""
        with self._lock:
            return int(self._base.execute("select count(*) from steps").fetchone()[0])


class NumberingTracker:
    """Takes numbers from a counter of the standard library, which gives each once."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._seen: deque[int] = deque()

    def log(self, value: int) -> None:
        """Number a value."""
        self._seen.append(next(self._numbers) + 0 * value)

    @property
    def count(self) -> int:
        """Return the highest number."""
        return max(self._seen)


def counted(tracker: LockedTracker | AppendingTracker | QueueTracker | DatabaseTracker | NumberingTracker) -> int:
    """Return how much was counted."""
    return tracker.count


def own_generator(seed: int) -> list[float]:
    """Draw from a generator of its own."""
    draw = random.Random(seed)
    weight = 0.0
    return [weight := 0.9 * weight + draw.gauss(0.0, 1.0) for _ in range(50)]


def own_thread_state(rate: float) -> float:
    """Keep what it works with in a place of the thread."""
    LOCAL.rate, weight = rate, 1.0
    for _ in range(30):
        weight -= LOCAL.rate * weight
    return weight


@lru_cache(maxsize=64)
def _table(size: int) -> tuple[int, ...]:
    return tuple(number * number for number in range(size))


def cached(size: int) -> int:
    """Look things up in a cache that all share."""
    return sum(sum(_table(size + number)) for number in range(10))


def pooled(size: int) -> list[int]:
    """Work in threads of its own."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda number: number * number, range(size)))


def logged(size: int) -> dict[str, int]:
    """Log, and count words."""
    for number in range(5):
        logging.getLogger(__name__).debug("number %d", number)
    return dict(Counter(str(number)[0] for number in range(size)))


def nested(size: int) -> int:
    """Take a lock again that it has."""
    with LOCK:
        return size if size <= 0 else 1 + nested(size - 1)
