"""Looking at samples while they come in, without fooling oneself: ranks of a sign-test interval at several looks.

Whoever stops as soon as the interval decides looks several times, and each look is a chance to be wrong. The chances
are added up exactly, on the random walk of the signs, and bounded at each look by what the cube of the share of samples
allows to have been spent by then (Kim and DeMets 1987; Jennison and Turnbull, Group Sequential Methods, 1999, ch. 7).
As O'Brien and Fleming's boundary it spends almost nothing early and nearly all at the last look, but enough after 16
pairs that one disturbed pair does not forbid a decision. The intervals of all looks together hold the true median with
the stated probability.
"""

import math
from functools import lru_cache

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
