"""By which power of a size something grows, and between which powers that lies.

A constant part, such as the start of a step, makes the slope in logarithms too small, a fit with a constant part
follows the noise of the smallest sizes. So the exponent lies between the two: `slope` over the upper half of the
sizes, below which it is not, and `affine`, the k of a + b * n ** k with a >= 0.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from gates.measuring.deciding.student import quantile

LEVEL = 0.95
STEP = 0.005
MOST = 5.0
HARDLY = math.log(1.1)  # what grows by less, from the least size to the largest, is all but constant


@dataclass(frozen=True)
class Power:
    """An exponent and its interval, of so many rounds in so many starts."""

    value: float
    low: float
    high: float
    n: int
    starts: int

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def power(sizes: Sequence[int], starts: Sequence[Sequence[Sequence[float]]]) -> Power:
    """Return the exponent from the values of each size in each round of each start.

    Each start gives its medians. The interval begins where Student's interval of the slopes of the starts begins, and
    ends where the higher of the two intervals ends; where nothing grows, no k can be told, and the slope alone counts.
    Raises `ValueError` where there are fewer than two starts, or values that are not above 0.
    """
    if len(starts) < 2:
        raise ValueError(f"{len(starts)} start, expected two or more")
    if any(not (math.isfinite(value) and value > 0) for rounds in starts for row in rounds for value in row):
        raise ValueError("a value that is not above 0")
    medians = [[statistics.median(column) for column in zip(*rounds, strict=True)] for rounds in starts]
    whole = [statistics.median(column) for column in zip(*medians, strict=True)]
    lower = _student([slope(sizes, row) for row in medians])
    upper = _student([affine(sizes, row) for row in medians])
    grown = _student([math.log(row[-1] / row[0]) for row in medians])
    high = lower[1] if grown[1] <= HARDLY else max(lower[1], upper[1])
    value = min(max(affine(sizes, whole), lower[0]), high)
    return Power(value, lower[0], high, sum(map(len, starts)), len(starts))


def slope(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Return the slope in logarithms over the upper half of the sizes, two at least."""
    first = min(len(sizes) // 2, len(sizes) - 2)
    x, y = [math.log(size) for size in sizes[first:]], [math.log(value) for value in values[first:]]
    middle_x, middle_y = statistics.fmean(x), statistics.fmean(y)
    above = sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True))
    return above / sum((a - middle_x) ** 2 for a in x)


def affine(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Return the k with which a + b * n ** k, a >= 0 and b >= 0, comes nearest to the values, relative to each."""
    steps = round(MOST / STEP)
    return min((_misfit(sizes, values, i * STEP), i * STEP) for i in range(1, steps + 1))[1]


def _misfit(sizes: Sequence[int], values: Sequence[float], k: float) -> float:
    """Return the sum of the squares that the best a and b leave, each value being 1."""
    rows = [(1 / value, (size / sizes[-1]) ** k / value) for size, value in zip(sizes, values, strict=True)]
    aa, bb = sum(x * x for x, _ in rows), sum(y * y for _, y in rows)
    ab, a1, b1 = sum(x * y for x, y in rows), sum(x for x, _ in rows), sum(y for _, y in rows)
    a, b, determinant = 0.0, b1 / bb, aa * bb - ab * ab
    if determinant > 1e-12 * aa * bb and a1 * bb > b1 * ab:
        a, b = (a1 * bb - b1 * ab) / determinant, (b1 * aa - a1 * ab) / determinant
    if b < 0:
        a, b = a1 / aa, 0.0
    return float(sum((a * x + b * y - 1) ** 2 for x, y in rows))


def _student(values: Sequence[float]) -> tuple[float, float]:
    middle, n = statistics.fmean(values), len(values)
    half = quantile(LEVEL, n - 1) * statistics.stdev(values) / math.sqrt(n)
    return middle - half, middle + half
