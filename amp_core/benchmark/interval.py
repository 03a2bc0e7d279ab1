"""A median with its interval, from paired samples.

The interval between the k-th smallest and the k-th largest of n independent values covers their median with probability
1 - 2 P(Bin(n, 1/2) < k), whatever their distribution (Thompson 1936; Conover, Practical Nonparametric Statistics, 3.2).
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

LEVEL = 0.95
LEAST = 6  # fewer values give no interval at 95 %: 2 * 0.5**5 is above 5 %


@dataclass(frozen=True)
class Interval:
    """A median of `n` values with its interval at 95 % or above."""

    value: float
    low: float
    high: float
    n: int

    def __format__(self, spec: str) -> str:
        return f"{self.value:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"

    def within(self, bar: float) -> bool:
        """Return whether the whole interval is nearer to 0 than `bar`."""
        return max(abs(self.low), abs(self.high)) < bar


def around_median(values: Sequence[float]) -> Interval:
    """Return the median with its sign-test interval.

    Raises:
        ValueError: there are fewer than six values.
    """
    if len(values) < LEAST:
        raise ValueError(f"an interval at {LEVEL:.0%} needs at least {LEAST} values, found {len(values)}")
    ordered = sorted(values)
    k = _rank(len(ordered))
    return Interval(statistics.median(ordered), ordered[k - 1], ordered[-k], len(ordered))


def ratio(above: Sequence[float], below: Sequence[float]) -> Interval:
    """Return the interval around the median of paired quotients."""
    return around_median([a / b for a, b in zip(above, below, strict=True)])


def difference(left: Sequence[float], right: Sequence[float]) -> Interval:
    """Return the interval around the median of paired differences."""
    return around_median([a - b for a, b in zip(left, right, strict=True)])


def _rank(n: int) -> int:
    """Return the largest k whose interval still has the level."""
    k, below = 0, 0.0
    while 2 * (below + math.comb(n, k) / 2**n) <= 1 - LEVEL:
        below += math.comb(n, k) / 2**n
        k += 1
    return k
