"""A number with its interval: the median of paired samples and the sign-test interval around it.

The interval between the k-th smallest and the k-th largest of n independent values covers their median with probability
1 - 2 P(Bin(n, 1/2) < k), whatever their distribution (Thompson 1936; Conover, Practical Nonparametric Statistics, 3.2).
It needs no assumption about the noise, and at least 6 values for a level of 95 %.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gates.model import Outcome
from gates.samples import Metric
from gates.task import Measure

LEVEL = 0.95
METHOD = "median with sign-test interval"
NEEDED = 6
FAR = 5  # times sqrt(n): ten standard deviations of Bin(n, 1/2)
IMPLAUSIBLE = 40.0  # of a log ratio: no two arms of one benchmark are 17 orders of magnitude apart


class NotEnough(Exception):
    """Samples that cannot answer the question, and why."""


@dataclass(frozen=True)
class Estimate:
    """A median and its interval; `level` is the coverage that the order statistics really have."""

    value: float
    low: float
    high: float
    n: int
    level: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def estimate(measure: Measure, metric: Metric) -> Estimate:
    """Compute a measure from raw samples; raise `NotEnough` with the reason where they do not suffice."""
    missing = [arm for arm in measure.arms if arm not in metric.arms]
    if missing:
        raise NotEnough(f"{measure.of} has no arm {missing[0]!r}; it has {', '.join(sorted(metric.arms))}")
    if len(measure.arms) > 1 and not metric.paired:
        raise NotEnough(f"the samples of {measure.of} are not paired; take the arms in turn")
    columns = [metric.arms[arm] for arm in measure.arms]
    if measure.kind in {"ratio", "reduction"} and any(value <= 0 for column in columns for value in column):
        raise NotEnough(f"a {measure.kind} needs samples above 0; {measure.of} has one that is not")
    if measure.kind == "value":
        return _around_median(columns[0])
    pairs = list(zip(*columns, strict=True))
    if measure.kind == "difference":
        return _around_median([a - b for a, b in pairs])
    if any(abs(math.log(a) - math.log(b)) > IMPLAUSIBLE for a, b in pairs):
        raise NotEnough(f"two arms of {measure.of} differ by more than e^{IMPLAUSIBLE:g}; are the units the same?")
    # plain quotients, whose order is that of their logarithms: a ratio of exactly the limit stays exactly that
    return _around_median([a / b if measure.kind == "ratio" else 1 - b / a for a, b in pairs])


def compare(seen: Estimate, sign: str, limit: float) -> Outcome:
    """Let the number decide with its interval: wholly on one side of the limit, or unknown."""
    if sign == ">=":
        good, bad = seen.low >= limit, seen.high < limit
    elif sign == "<=":
        good, bad = seen.high <= limit, seen.low > limit
    else:
        good, bad = seen.high < limit, seen.low >= limit
    return Outcome.PASSED if good else Outcome.FAILED if bad else Outcome.UNKNOWN


def rank(n: int, level: float = LEVEL) -> tuple[int, float]:
    """Return the largest k whose interval still has the level, and the coverage that it really has.

    The sum starts ten standard deviations below the middle, where what is left out is below 1e-22.
    """
    first = max(0, n // 2 - FAR * math.isqrt(n))
    log_term = math.lgamma(n + 1) - math.lgamma(first + 1) - math.lgamma(n - first + 1) - n * math.log(2)
    term, below, k = math.exp(log_term), 0.0, first
    while 2 * (below + term) <= 1 - level:
        below += term
        term *= (n - k) / (k + 1)
        k += 1
    return k, 1 - 2 * below


def _around_median(values: Sequence[float]) -> Estimate:
    n = len(values)
    if n < NEEDED:
        raise NotEnough(f"{n} sample{'s' * (n != 1)}, at least {NEEDED} needed for an interval of {LEVEL:.0%}")
    ordered = sorted(values)
    middle = ordered[(n - 1) // 2] / 2 + ordered[n // 2] / 2  # halved first: the sum of two huge numbers overflows
    if not all(map(math.isfinite, (ordered[0], middle, ordered[-1]))):
        raise NotEnough("the numbers are too large to compute with")
    k, level = rank(n)
    return Estimate(middle, ordered[k - 1], ordered[n - k], n, level)
