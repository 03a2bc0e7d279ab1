"""A number with its interval: the median of paired samples and the sign-test interval around it.

The interval between the k-th smallest and the k-th largest of n independent values covers their median with probability
1 - 2 P(Bin(n, 1/2) < k), whatever their distribution (Thompson 1936; Conover, Practical Nonparametric Statistics, 3.2).
It needs no assumption about the noise, and at least 6 values for a level of 95 %.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from gates.measuring.deciding import Design, slope, student
from gates.measuring.samples import Metric
from gates.model import Outcome
from gates.task.task import Measure

LEVEL = 0.95
METHOD = "median with sign-test interval"
NEEDED = 6
FAR = 5  # times sqrt(n): ten standard deviations of Bin(n, 1/2)
UNITS = {  # that names end in
    "s": ("s",), "ms": ("ms",), "us": ("us",), "ns": ("ns",), "bytes": ("B", "bytes"), "kb": ("KB", "kB", "KiB"),
    "mb": ("MB", "MiB"), "gb": ("GB", "GiB"), "kib": ("KiB",), "mib": ("MiB",), "gib": ("GiB",),
}  # fmt: skip
TIME_UNITS = frozenset({"s", "ms", "us", "ns"})
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


def estimate(measure: Measure, metric: Metric, design: Design | None = None, alpha: float = 1 - LEVEL) -> Estimate:
    """Compute a measure from raw samples; raise `NotEnough` with the reason where they do not suffice.

    Where they were looked at while they came in, `design` says how; `alpha` is the error that the interval may have.
    """
    values = values_of(measure, metric)
    return _trend(values, alpha) if measure.kind == "slope" else _interval(values, measure.kind, design, alpha)


def values_of(measure: Measure, metric: Metric) -> list[float]:
    """Return what each sample or pair of them says by itself; raise `NotEnough` where they do not fit the measure."""
    missing = [arm for arm in measure.arms if arm not in metric.arms]
    if missing:
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
    if measure.kind in {"value", "slope"}:
        return list(columns[0])
    pairs = list(zip(*columns, strict=True))
    if measure.kind == "difference":
        return [a - b for a, b in pairs]
    if any(abs(math.log(a) - math.log(b)) > IMPLAUSIBLE for a, b in pairs):
        raise NotEnough(f"two arms of {measure.of} differ by more than e^{IMPLAUSIBLE:g}; are the units the same?")
    # plain quotients, whose order is that of their logarithms: a ratio of exactly the limit stays exactly that
    return [a / b if measure.kind == "ratio" else 1 - b / a for a, b in pairs]


def is_time(metric: str) -> bool:
    """Return whether a metric is a time by its name."""
    return any(unit in TIME_UNITS for unit in _units_of(metric))


def _units_of(metric: str) -> tuple[str, ...]:
    """Return the units that the end of a metric's name allows; none where it names none."""
    return UNITS.get(metric.rpartition("_")[2], ()) if "_per_" not in metric else ()


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


def _interval(values: Sequence[float], kind: str, design: Design | None, alpha: float) -> Estimate:
    """Return the interval around the median; where processes were restarted, it also holds that over the restarts."""
    if design is None or (design.restarts and len(design.restarts) != len(values)):
        return _around_median(values, alpha if design is None else design.alpha(alpha))
    ordered = _ordered(values)
    k = design.rank(len(values), alpha)
    if k == 0:
        raise NotEnough(f"{_samples(len(values))}, too few for an interval that may be wrong in {alpha:.2%}")
    low, high = ordered[k - 1], ordered[-k]
    blocks = design.blocks(list(values)) if design.restarts else []
    if blocks:
        least, most = _over_restarts(blocks, kind, design.look_level(alpha))
        low, high = min(low, least), max(high, most)
    return Estimate(_middle(ordered), low, high, len(values), 1 - design.alpha(alpha))


def _over_restarts(blocks: list[list[float]], kind: str, level: float) -> tuple[float, float]:
    """Return Student's interval over the medians of the restarts; ratios and levels are taken by their logarithm."""
    medians = [statistics.median(block) for block in blocks]
    if kind == "ratio" or (kind == "value" and min(medians) > 0):
        low, high = student([math.log(value) for value in medians], level)
        return math.exp(low), math.exp(high)
    if kind == "reduction":
        low, high = student([math.log1p(-value) for value in medians], level)
        return 1 - math.exp(high), 1 - math.exp(low)
    return student(medians, level)


def _trend(values: Sequence[float], alpha: float) -> Estimate:
    """Return the slope of samples that were taken one after another, per sample."""
    if len(values) < NEEDED:
        raise NotEnough(f"{_samples(len(values))}, at least {NEEDED} needed for a slope")
    middle, low, high = slope(values, alpha)
    if not all(map(math.isfinite, (low, middle, high))):
        raise NotEnough(f"{_samples(len(values))}, too few for a slope that may be wrong in {alpha:.2%}")
    return Estimate(middle, low, high, len(values), 1 - alpha)


def _around_median(values: Sequence[float], alpha: float = 1 - LEVEL) -> Estimate:
    ordered = _ordered(values)
    k, level = rank(len(values), 1 - alpha)
    if k == 0:
        raise NotEnough(f"{_samples(len(values))}, too few for an interval that may be wrong in {alpha:.2%}")
    return Estimate(_middle(ordered), ordered[k - 1], ordered[-k], len(values), level)


def _ordered(values: Sequence[float]) -> list[float]:
    """Return the values in order; raise `NotEnough` where they are too few or too large to compute with."""
    if len(values) < NEEDED:
        raise NotEnough(f"{_samples(len(values))}, at least {NEEDED} needed for an interval of {LEVEL:.0%}")
    ordered = sorted(values)
    if not all(map(math.isfinite, (ordered[0], _middle(ordered), ordered[-1]))):
        raise NotEnough("the numbers are too large to compute with")
    return ordered


def _middle(ordered: Sequence[float]) -> float:
    n = len(ordered)
    return ordered[(n - 1) // 2] / 2 + ordered[n // 2] / 2  # halved first: the sum of two huge numbers overflows


def _samples(n: int) -> str:
    return f"{n} sample{'s' * (n != 1)}"


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
