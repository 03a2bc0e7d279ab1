"""Makers of steps that grow linearly with a size, or less."""

from collections import Counter
from collections.abc import Callable

Step = Callable[[], object]


def linear(batch: int) -> Step:
    """Walk through the items once."""
    items = list(range(batch))

    def step() -> int:
        total = 0
        for number in items:
            total += number * number % 7
        return total

    return step


def with_overhead(batch: int) -> Step:
    """Do something constant first."""
    items = list(range(batch))

    def step() -> int:
        return sum(range(2_000)) + sum(number * number % 7 for number in items)

    return step


def constant(batch: int) -> Step:
    """Do the same at every size."""

    def step() -> int:
        return sum(number * number % 7 for number in range(2_000)) + 0 * batch

    return step


def ordered(batch: int) -> Step:
    """Sort, which is a little more than linear."""
    items = [(number * 7919) % 1_000_003 for number in range(batch)]

    def step() -> int:
        return sorted(items)[0] + sum(number * 3 % 5 for number in items)

    return step


def counted(batch: int) -> Step:
    """Look for equal items in a mapping."""
    items = [(number * 7919) % 10_007 for number in range(batch)]

    def step() -> int:
        return sum(count > 1 for count in Counter(items).values())

    return step


def held(batch: int) -> Step:
    """Hold so much for each item."""

    def step() -> int:
        return len([bytearray(16_384) for _ in range(batch)])

    return step


def called(batch: int) -> Step:
    """Call a function for each item."""

    def step() -> int:
        return sum(max(number, 1) for number in range(batch))

    return step
