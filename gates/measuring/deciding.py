"""When measuring ends: how many pairs there are at most, at which looks it may end, and the slope of a series."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

LEAST_RESTARTS, FEW_RESTARTS, MANY_RESTARTS = 3, 5, 8
POCOCK = 0.76


@dataclass(frozen=True)
class Design:
    """Pairs that were looked at while they came in; `most` in the last attempt, after `before` of earlier ones.

    `restarts` tells for each pair which start of the processes it came from, `split` into how many shorter ones each
    pair was split.
    """

    most: int
    restarts: tuple[int, ...] = ()
    before: int = 0
    attempt: int = 1
    split: int = 1

    def alpha(self, alpha: float) -> float:
        """Return what the last attempt may spend of an error."""
        return alpha_of(self.attempt, alpha)

    def rank(self, n: int, alpha: float) -> int:
        """Return k: the interval from the k-th least to the k-th greatest of `n` values, or 0."""
        return rank_at(n, self.most, self.alpha(alpha), self.before, self.split)

    def blocks(self, values: list[float]) -> list[list[float]]:
        """Return the values of each start of the processes, without a last one of which there is less than half.

        Where there are many starts, short ones that follow one another are put together: the median of four values is
        moved by two that were disturbed, that of eight by four.
        """
        blocks: dict[int, list[float]] = {}
        for restart, value in zip(self.restarts, values, strict=True):
            blocks.setdefault(restart, []).append(value)
        found = list(blocks.values())
        if len(found) > 1 and 2 * len(found[-1]) < len(found[0]):
            found.pop()
        return _joined(found) if len(found) >= LEAST_RESTARTS else []

    def look_level(self, alpha: float) -> float:
        """Return the level of an interval over restarts, the same at each look, so that all together keep the error.

        Pocock's (1977) for one to five looks lie a little above, as these looks share their samples.
        """
        return 1 - self.alpha(alpha) * math.pow(len(looks_until(self.most, self.split)), -POCOCK)


def _joined(blocks: list[list[float]]) -> list[list[float]]:
    """Return as many starts together as make the longest one; none are where there are few."""
    longest = max(map(len, blocks))
    joined: list[list[float]] = [[]]
    for block in blocks:
        joined = [*joined, block] if len(joined[-1]) >= longest else [*joined[:-1], joined[-1] + block]
    if len(joined) > 1 and 2 * len(joined[-1]) < longest:
        joined.pop()
    return joined if len(blocks) >= MANY_RESTARTS and len(joined) >= FEW_RESTARTS else blocks


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


def student(values: Sequence[float], level: float) -> tuple[float, float]:
    """Return Student's interval of the mean."""
    mean = statistics.fmean(values)
    reach = quantile(level, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return mean - reach, mean + reach


LOOKS = (16, 24, 32, 48, 64)
MANY = 2 * LOOKS[0]  # of fewer all are taken, and looked at once
KEPT_FOR_LATER = 0.2
POWER = 3


def looks_until(most: int, split: int = 1) -> tuple[int, ...]:
    """Return after how many pairs to look: five times up to 64, then after every further 64, and at the end.

    Where each pair was split into shorter ones, the looks are as far apart in time as they were.
    """
    whole = most // split
    if whole < MANY:
        return (most,)
    later = range(2 * LOOKS[-1], whole, LOOKS[-1])
    return (*(n * split for n in (*LOOKS, *later) if n < whole), most)


def alpha_of(attempt: int, alpha: float) -> float:
    """Return the share of the error that an attempt, counted from 1, may spend; all together spend no more than it."""
    if attempt == 1:
        return alpha * (1 - KEPT_FOR_LATER)
    return alpha * KEPT_FOR_LATER * 6 / (math.pi * (attempt - 1)) ** 2  # the sum of 1/n^2 is pi^2/6


def spent(fraction: float, one_sided: float) -> float:
    """Return how much of a one-sided error may have been spent at a fraction of the samples."""
    return one_sided * min(fraction, 1.0) ** POWER


@lru_cache(maxsize=4096)
def rank_at(n: int, most: int, alpha: float, before: int = 0, split: int = 1) -> int:
    """Return k: the interval from the k-th least to the k-th greatest of `n` values; 0 where there is none yet.

    `before` values came from earlier attempts; the present one looks after so many more as `looks_until` says. An end
    at a number that is no look, for want of time, is the last look and may spend the rest.
    """
    looks = [before + look for look in looks_until(most, split)]
    past = [look for look in looks if look < n]
    fractions = [look / looks[-1] for look in past] + [n / looks[-1] if n in looks else 1.0]
    return _ranks((*past, n), tuple(fractions), alpha / 2)[-1]


def reaches(n: int, most: int, split: int = 1) -> bool:
    """Return whether a number of pairs is one of the looks."""
    return n in looks_until(most, split)


@lru_cache(maxsize=1024)
def _ranks(looks: tuple[int, ...], fractions: tuple[float, ...], one_sided: float) -> tuple[int, ...]:
    """Return the rank at each look: walk the number of values below the median, and stop where it is too small."""
    chances, at, used = [1.0], 0, 0.0  # chances[i]: i values below so far, and no look has stopped
    ranks = []
    for look, fraction in zip(looks, fractions, strict=True):
        chances = _further(chances, look - at)
        at, k = look, 0
        allowed = spent(fraction, one_sided)
        while k < look // 2 and used + chances[k] <= allowed:
            used += chances[k]
            chances[k] = 0.0
            k += 1
        ranks.append(k)
    return tuple(ranks)


def _further(chances: list[float], steps: int) -> list[float]:
    for _ in range(steps):
        padded = [0.0, *chances, 0.0]
        chances = [(padded[i] + padded[i + 1]) / 2 for i in range(len(padded) - 1)]
    return chances
