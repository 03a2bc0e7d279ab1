"""Callables that come to something else at once than alone; what each is for is in its name."""

import random
import threading

CONFIG: dict[str, float] = {}
CACHE: dict[str, list[float]] = {}


class CountingTracker:
    """Counts what it is told."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0

    def log(self, value: int) -> None:
        """Count one more, which is a read and a write."""
        self.count += 1  # <- lost updates
        self.total += value  # <- lost updates


def counted(tracker: CountingTracker) -> int:
    """Return how much was counted."""
    return tracker.count


class StepTracker(CountingTracker):
    """Numbers its steps by a call of its own between read and write."""

    def log(self, value: int) -> None:
        """Number a step."""
        step = self.count  # <- lost updates
        step = max(step + 1, value * 0)  # <- lost updates
        self.count = step  # <- lost updates


class BatchedTracker(CountingTracker):
    """Keeps what it is told until it is flushed; what comes in between is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.pending: list[int] = []
        self.written: list[int] = []

    def log(self, value: int) -> None:
        """Keep a value, and flush now and then."""
        self.pending.append(value)
        if len(self.pending) >= 8:
            self.written.extend(self.pending)  # <- lost updates
            self.pending.clear()  # <- lost updates


def flushed(tracker: BatchedTracker) -> int:
    """Return how many were written or are still kept."""
    return len(tracker.written) + len(tracker.pending)


def configured(rate: float) -> list[float]:
    """Train with a learning rate that stands in the module."""
    CONFIG["rate"] = rate  # <- shared state
    weight, losses = 1.0, []
    for _ in range(20):
        weight -= CONFIG["rate"] * weight  # <- shared state
        losses.append(weight)
    return losses


def seeded(seed: int) -> list[float]:
    """Draw from the generator that all share, seeded first."""
    random.seed(seed)  # <- shared state
    return [random.random() for _ in range(50)]  # <- shared state


def buffered(size: int) -> float:
    """Sum into a buffer of the module."""
    buffer = CACHE.setdefault("buffer", [])
    buffer.clear()  # <- shared state
    for number in range(size):
        buffer.append(float(number))  # <- shared state
    return sum(buffer)  # <- shared state


def iterated(size: int) -> int:
    """Walk through a mapping of the module that others fill."""
    seen = 0
    for number in range(size):
        CONFIG[f"{threading.get_ident()}-{number}"] = 0.0
        for _name in CONFIG:  # <- raises
            seen += 1
    for name in [name for name in list(CONFIG) if name.startswith(f"{threading.get_ident()}-")]:
        del CONFIG[name]
    return size


FIRST, SECOND = threading.Lock(), threading.Lock()
TURN = iter(range(1 << 60))


def crossed() -> int:
    """Take two locks, every second time in the other order."""
    one, other = (FIRST, SECOND) if next(TURN) % 2 else (SECOND, FIRST)
    with one:
        total = sum(range(200))
        with other:  # <- stands
            return total
