"""An arm of the gate's own, whose work is always the same; it is imported by a worker, not by the gate."""

from collections.abc import Callable

LOOPS = range(16_000)


def make() -> Callable[[], int]:
    """Return a step of about a millisecond that only computes."""

    def step() -> int:
        total = 0
        for i in LOOPS:
            total += i * i
        return total

    return step
