"""Makers of steps that grow faster than linearly with a size."""

from collections.abc import Callable

Step = Callable[[], object]


def duplicates(batch: int) -> Step:
    """Look for equal items, each beside each."""
    items = [(number * 7919) % 1_000_003 for number in range(batch)]

    def step() -> int:  # <- here
        found = 0
        for one in items:
            for other in items:
                if one == other:
                    found += 1
        return found

    return step


def searched(batch: int) -> Step:
    """Look each item up in a list, beside work that is linear."""
    known = list(range(batch))

    def step() -> int:  # <- here
        total = 0
        for number in range(batch):
            total += known.index(number)
        return total + sum(value * value for value in known)

    return step


def joined(batch: int) -> Step:
    """Put a history together anew for each item."""

    def step() -> int:  # <- here
        history: tuple[int, ...] = ()
        for number in range(batch):
            history = (*history, number)
        return len(history)

    return step


def overhead_hides_it(batch: int) -> Step:
    """Do a quadratic part beside a constant one that is large at the small sizes."""
    items = list(range(batch))

    def step() -> int:  # <- here
        constant = sum(range(20_000))
        for one in items:
            constant += sum(one * other for other in items)  # <- here
        return constant

    return step


def all_pairs(batch: int) -> Step:
    """Hold a table of all by all."""

    def step() -> int:  # <- here
        table = [bytearray(64 * batch) for _ in range(batch)]
        return len(table)

    return step


def helper(items: list[int]) -> int:  # <- here
    """Compare neighbours, after a sort for each of them."""
    found = 0
    for number in items:
        found += sorted(items)[0] == number
    return found


def calls_of_calls(batch: int) -> Step:
    """Call a function for each pair."""
    items = list(range(batch))

    def step() -> int:  # <- here
        return sum(max(one, other) for one in items for other in items)  # <- here

    return step


def in_a_helper(batch: int) -> Step:
    """Leave the work to a function."""
    items = list(range(batch))

    def step() -> int:
        return helper(items)

    return step
