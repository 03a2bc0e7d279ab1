"""A trend with its interval: the median of all slopes between two samples, bounded by Kendall's statistic.

No assumption is made about the noise but that it is the same throughout (Theil 1950; Sen 1968, JASA 63).
"""

import math
import statistics
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

EXACT = 60


def slope(values: Sequence[float], alpha: float) -> tuple[float, float, float]:
    """Return the slope per sample and its interval; (-inf, inf) where there are too few samples for the level."""
    n = len(values)
    slopes = sorted((values[j] - values[i]) / (j - i) for i, j in combinations(range(n), 2))
    most = len(slopes)
    apart = _bound(n, alpha / 2)
    if apart is None:
        return statistics.median(slopes), float("-inf"), float("inf")
    k = (most - apart) // 2  # so many slopes may be left out at each end
    return statistics.median(slopes), slopes[k], slopes[most - 1 - k]


def _bound(n: int, tail: float) -> int | None:
    """Return the least s with P(S > s) <= `tail`, where S is Kendall's statistic without a trend; `None` if none."""
    most = n * (n - 1) // 2
    if n > EXACT:
        deviation = (n * (n - 1) * (2 * n + 5) / 18) ** 0.5
        return min(most, int(statistics.NormalDist().inv_cdf(1 - tail) * deviation) + 2)
    above = 0.0
    for inversions, chance in enumerate(_inversions(n)):  # S = most - 2 * inversions
        if above + chance > tail:
            return most - 2 * inversions if inversions else None
        above += chance
    return None


@lru_cache(maxsize=128)
def _inversions(n: int) -> tuple[float, ...]:
    """Return the chance of each number of inversions of a random order of `n`."""
    chances = [1.0]
    for size in range(2, n + 1):
        longer = [0.0] * (len(chances) + size - 1)
        running = 0.0
        for i in range(len(longer)):
            running += chances[i] if i < len(chances) else 0.0
            running -= chances[i - size] if 0 <= i - size < len(chances) else 0.0
            longer[i] = running / size
        chances = longer
    return tuple(chances)


def within(t: float, freedom: int) -> float:
    """Return the probability that |T| is at most `t` (Abramowitz and Stegun, Handbook, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine = math.cos(angle)
    odd = freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for i in range(freedom // 2):
        total += term
        term *= cosine**2 * (2 * i + 1 + odd) / (2 * i + 2 + odd)
    if not odd:
        return math.sin(angle) * total
    return 2 / math.pi * (angle + math.sin(angle) * total)


def quantile(level: float, freedom: int) -> float:
    """Return t so that |T| is at most t with the probability `level`."""
    low, high = 0.0, 1.0
    while within(high, freedom) < level:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle, freedom) < level else (low, middle)
    return high
