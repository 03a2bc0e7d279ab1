"""A number with its interval: the median of paired samples and the sign-test interval around it; when measuring ends.

The interval between the k-th smallest and the k-th largest of n independent values covers their median with probability
1 - 2 P(Bin(n, 1/2) < k), whatever their distribution (Thompson 1936; Conover, Practical Nonparametric Statistics, 3.2).
It needs no assumption about the noise, and at least 6 values for a level of 95 %. Where pairs are looked at while they
come in, all looks share the error.
"""

import itertools
import math
import operator
import statistics
from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from gates.measuring.samples import Metric
from gates.model import Outcome
from gates.task.task import Measure
from gates.words import counted

LEVEL = 0.95
METHOD = "median with sign-test interval"
NEEDED = 6
FAR = 5  # times sqrt(n): ten standard deviations of Bin(n, 1/2)
# that names end in
UNITS: dict[str, tuple[str, ...]] = {unit.lower(): (unit,) for unit in ("s", "ms", "us", "ns", "KiB", "MiB", "GiB")}
UNITS |= {"bytes": ("B", "bytes"), "kb": ("KB", "kB", "KiB"), "mb": ("MB", "MiB"), "gb": ("GB", "GiB")}
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


class NotEnough(Exception):
    """Samples that cannot answer the question, and why."""


class Estimate(NamedTuple):
    """A median and its interval; `level` is the coverage that the order statistics really have."""

    value: float
    low: float
    high: float
    n: int
    level: float

    def __str__(self) -> str:
        return self.said("{:.4g}".format)

    def said(self, form: Callable[[float], str]) -> str:
        """Return the number with its interval, in a form."""
        return f"{form(self.value)} [{form(self.low)}, {form(self.high)}]"


def estimate(measure: Measure, metric: Metric, design: "Design | None" = None, alpha: float = 1 - LEVEL) -> Estimate:
    """Compute a measure that may err by `alpha`, looked at as a `design` says; raise `NotEnough` with the reason."""
    values = values_of(measure, metric)
    ordered, n = sorted(values), len(values)
    if n < NEEDED:
        raise NotEnough(f"{counted(n, 'sample')}, at least {NEEDED} needed for an interval of {LEVEL:.0%}")
    if not all(map(math.isfinite, (ordered[0], statistics.median(ordered), ordered[-1]))):
        raise NotEnough("the numbers are too large to compute with")
    look = design.level(n, alpha) if design else 1 - alpha
    k, level = rank(n, look)
    if k == 0:
        raise NotEnough(f"{counted(n, 'sample')}, too few for an interval that may be wrong in {alpha:.2%}")
    low, high = ordered[k - 1], ordered[-k]
    if design and design.restarts and (blocks := design.blocks(values)):
        least, most = student([statistics.median(block) for block in blocks], look)
        low, high = min(low, least), max(high, most)
    return Estimate(statistics.median(ordered), low, high, n, 1 - alpha_of(design.attempt, alpha) if design else level)


def values_of(measure: Measure, metric: Metric) -> list[float]:
    """Return what each sample or pair of them says by itself; raise `NotEnough` where they do not fit the measure."""
    if missing := [arm for arm in measure.arms if arm not in metric.arms]:
        raise NotEnough(f"{measure.of} has no arm {missing[0]!r}; it has {', '.join(sorted(metric.arms))}")
    if len(measure.arms) > 1 and not metric.paired:
        raise NotEnough(f"the samples of {measure.of} are not paired; take the arms in turn")
    columns = [metric.arms[arm] for arm in measure.arms]
    if measure.kind in {"ratio", "reduction"} and any(value <= 0 for column in columns for value in column):
        raise NotEnough(f"a {measure.kind} needs samples above 0; {measure.of} has one that is not")
    units = _units_of(measure.of)
    if units and metric.unit not in (*units, "none") and measure.kind not in {"ratio", "reduction"}:
        raise NotEnough(f"{measure.of} is in {metric.unit!r:.40}; its name and the limit are in {units[0]!r}")
    wrong = next((value for column in columns for value in column if units and value <= 0), None)
    if wrong is not None:
        raise NotEnough(f"{measure.of} has a sample of {wrong:g}, expected above 0")
    if measure.kind == "value":
        return list(columns[0])
    pairs = list(zip(*columns, strict=True))
    if measure.kind == "difference":
        return [a - b for a, b in pairs]
    # plain quotients, whose order is that of their logarithms: a ratio of exactly the limit stays exactly that
    return [a / b if measure.kind == "ratio" else 1 - b / a for a, b in pairs]


def is_clocked(metric: str, unit: str) -> bool:
    """Return whether a metric is read off a clock, by its name or its unit: a time or a rate."""
    is_rate = unit.endswith(("/s", "/ms", "/us")) or metric.endswith("_per_s") or unit == "Hz"
    return is_rate or not SECONDS.keys().isdisjoint({unit, *_units_of(metric)})


def _units_of(metric: str) -> tuple[str, ...]:
    """Return the units that the end of a metric's name allows; none where it names none."""
    return UNITS.get(metric.rpartition("_")[2], ()) if "_per_" not in metric else ()


def compare(seen: Estimate, sign: str, limit: float) -> Outcome:
    """Let the number decide with its interval: wholly on one side of the limit, or unknown."""
    met = {">=": operator.ge, "<=": operator.le, "<": operator.lt}[sign]
    ends = {met(seen.low, limit), met(seen.high, limit)}
    return Outcome.UNKNOWN if len(ends) > 1 else Outcome.PASSED if True in ends else Outcome.FAILED


def rank(n: int, level: float = LEVEL) -> tuple[int, float]:
    """Return the largest k whose interval has the level, and its coverage; the sum leaves out less than 1e-22."""
    first = max(0, n // 2 - FAR * math.isqrt(n))
    log_term = math.lgamma(n + 1) - math.lgamma(first + 1) - math.lgamma(n - first + 1) - n * math.log(2)
    term, below, k = math.exp(log_term), 0.0, first
    while 2 * (below + term) <= 1 - level:
        below += term
        term *= (n - k) / (k + 1)
        k += 1
    return k, 1 - 2 * below


MOST = 1_000_000


def pairs_needed(seen: Estimate, measure: Measure, split: int = 1) -> int | None:
    """Return about how many pairs of the task would settle it at this noise: intervals shrink with their root."""
    limit = measure.bound[1]
    numbers = (seen.value, limit, seen.low, seen.high)
    value, limit, low, high = map(math.log, numbers) if measure.kind == "ratio" and min(numbers) > 0 else numbers
    reach = value - low if limit < value else high - value
    if value == limit or reach <= 0:
        return None
    taken = seen.n / split
    needed = math.ceil(taken * (reach / abs(value - limit)) ** 2 * 1.2)
    return needed if taken < needed <= MOST else None


LEAST_RESTARTS, FEW_RESTARTS, MANY_RESTARTS = 3, 5, 8
FINE, FURTHEST = 1e-6, 10**15  # of a quantile: its steps, and how many there may be


class Design(NamedTuple):
    """Pairs that were looked at while they came in, `most` in the last attempt, and the start that each came from."""

    most: int
    restarts: tuple[Hashable, ...] = ()
    attempt: int = 1

    def level(self, n: int, alpha: float) -> float:
        """Return the level of the intervals at a look after `n` pairs: the same at each, so that all keep the error.

        Each has an equal share of the error (Bonferroni): little more than Pocock's (1977) costs, where each look has
        twice the pairs. Where time was up before the first one, the end is the only look.
        """
        looks = looks_until(self.most)
        return 1 - alpha_of(self.attempt, alpha) / (len(looks) if n >= looks[0] else 1)

    def blocks(self, values: list[float]) -> list[list[float]]:
        """Return the values of each start, without a short last one; short ones are joined, as their medians jump."""
        found = by_start(values, self.restarts)
        if len(found) > 1 and 2 * len(found[-1]) < len(found[0]):
            found.pop()
        return _joined(found) if len(found) >= LEAST_RESTARTS else []


def by_start(values: Sequence[float], restarts: Sequence[Hashable]) -> list[list[float]]:
    """Return the values of each start of the processes."""
    starts = itertools.groupby(zip(restarts, values, strict=True), key=operator.itemgetter(0))
    return [[value for _, value in of_one] for _, of_one in starts]


def _joined(blocks: list[list[float]]) -> list[list[float]]:
    """Return as many starts together as make the longest one; none are where there are few."""
    longest = max(map(len, blocks))
    joined: list[list[float]] = [[]]
    for block in blocks:
        joined = [*joined, block] if len(joined[-1]) >= longest else [*joined[:-1], joined[-1] + block]
    if len(joined) > 1 and 2 * len(joined[-1]) < longest:
        joined.pop()
    return joined if len(blocks) >= MANY_RESTARTS and len(joined) >= FEW_RESTARTS else blocks


def within(t: float, freedom: int) -> float:
    """Return the probability that |T| is at most `t` (Abramowitz and Stegun, Handbook, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine, odd = math.cos(angle), freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for i in range(freedom // 2):
        total += term
        term *= cosine**2 * (2 * i + 1 + odd) / (2 * i + 2 + odd)
    return 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total


def quantile(level: float, freedom: int) -> float:
    """Return t so that |T| is at most t with the probability `level`."""
    return bisect_left(range(FURTHEST), level, key=lambda i: within(i * FINE, freedom)) * FINE


def student(values: Sequence[float], level: float) -> tuple[float, float]:
    """Return Student's interval of the mean."""
    mean = statistics.fmean(values)
    reach = quantile(level, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return mean - reach, mean + reach


LOOKS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)  # of the pairs
MANY = 32  # of fewer all are taken, and looked at once
KEPT_FOR_LATER = 0.2


def looks_until(most: int) -> tuple[int, ...]:
    """Return after how many pairs to look: not before there are some."""
    return tuple(look for share in LOOKS if (look := round(share * most)) >= MANY // 2) if most >= MANY else (most,)


def alpha_of(attempt: int, alpha: float) -> float:
    """Return the share of the error that an attempt, counted from 1, may spend; all together spend no more than it."""
    if attempt == 1:
        return alpha * (1 - KEPT_FOR_LATER)
    return alpha * KEPT_FOR_LATER * 6 / (math.pi * (attempt - 1)) ** 2  # the sum of 1/n^2 is pi^2/6
