"""What a number that is open would need: the smallest effect that could be seen, and how many pairs more."""

import math

from gates.measuring.interval import Estimate
from gates.task.task import Measure

MOST = 1_000_000


def smallest_effect(seen: Estimate, measure: Measure) -> float:
    """Return how far the interval reaches from its number: relative for ratios and levels, else as it is."""
    if measure.kind == "ratio" and min(seen.low, seen.value) > 0:
        return max(seen.high / seen.value, seen.value / seen.low) - 1
    reach = max(seen.high - seen.value, seen.value - seen.low)
    return reach / abs(seen.value) if measure.kind == "value" and seen.value else reach


def pairs_needed(seen: Estimate, measure: Measure, split: int = 1) -> int | None:
    """Return about how many pairs would settle it at this noise: intervals shrink with the root of the pairs.

    They are counted as a task asks for them, each of which was split into so many.
    """
    limit = measure.bound[1]
    numbers = (seen.value, limit, seen.low, seen.high)
    if measure.kind == "ratio" and min(numbers) > 0:
        value, limit, low, high = map(math.log, numbers)
    else:
        value, limit, low, high = numbers
    reach = value - low if limit < value else high - value
    if value == limit or reach <= 0:
        return None
    taken = seen.n / split
    needed = math.ceil(taken * (reach / abs(value - limit)) ** 2 * 1.2)
    return needed if taken < needed <= MOST else None
