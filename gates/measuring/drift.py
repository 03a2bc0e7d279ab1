"""Whether a series goes on growing, and by how much: slopes with their intervals, of all of it and of its end."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from gates.measuring.deciding.slope import slope

METHOD = "Theil-Sen slope with Sen's interval of 95 %"
ALPHA = 0.05
DROPPED = 0.3
LEAST = 10  # values of which a slope is taken
ENOUGH = 15  # values that show by themselves that a growth has ended
SLOWED = 0.5  # of the slope before: what grows ever more slowly may end
ENDS = 3  # values at each end that the whole change is taken from


class Drift(StrEnum):
    """What a series does in the end."""

    FLAT = "flat"
    GROWS = "grows"
    OPEN = "open"


@dataclass(frozen=True)
class Slope:
    """By how much a value changes from one to the next, and the interval of that."""

    value: float
    low: float
    high: float
    n: int


def theil_sen(values: Sequence[float]) -> Slope:
    """Return the slope of two or more values that were taken at equal distances."""
    value, low, high = slope(values, ALPHA)
    return Slope(value, low, high, len(values))


def kept(values: Sequence[float]) -> Sequence[float]:
    """Return the values without the first 30 %, in which caches fill and allocators find their size."""
    return values[math.ceil(DROPPED * len(values)) :]


def drift(values: Sequence[float], tolerance: float) -> Drift:
    """Say whether a series goes on growing by more than the tolerance from one value to the next.

    It grows where both the slope of what is kept and that of its second half lie above the tolerance with their whole
    intervals, and the growth does not slow down: a cache that fills ends, a leak does not. It is flat where slope and
    whole change of the second half lie below; unless that is long, also of all that is kept.
    """
    used = kept(values)
    first, last = used[: len(used) // 2], used[len(used) // 2 :]
    if len(last) < LEAST // 2 or len(used) < LEAST:
        return Drift.OPEN
    whole, before, end = theil_sen(used), theil_sen(first), theil_sen(last)
    slows = end.high < SLOWED * before.value
    if whole.low > tolerance and end.low > tolerance and not slows:
        return Drift.GROWS
    long = len(last) >= ENOUGH
    flat = end.high <= tolerance and _change(last) <= tolerance
    return Drift.FLAT if flat and (long or (whole.high <= tolerance and _change(used) <= tolerance)) else Drift.OPEN


def _change(values: Sequence[float]) -> float:
    """Return the mean change from one value to the next, so that a few large steps do not hide among equal values."""
    return (statistics.median(values[-ENDS:]) - statistics.median(values[:ENDS])) / (len(values) - ENDS)
