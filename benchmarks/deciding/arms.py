"""An arm whose work is known exactly."""

from collections.abc import Callable

LOOPS = 16_000


def make(factor: float) -> Callable[[], int]:
    """Return a step that takes a known multiple of the work of another."""
    loops = range(round(LOOPS * factor))

    def step() -> int:
        total = 0
        for i in loops:
            total += i * i
        return total

    return step
