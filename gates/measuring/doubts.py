"""Samples that nobody took: typed in, made up by a rule, or of a comparison that cannot differ.

Each doubt holds at every number of samples that can decide, and for every source of them alike. Counts (bytes, steps,
calls) may be the same each time; times, rates and what is compared as a difference may not.
"""

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

from gates.measuring.interval import NEEDED, TIME_UNITS, is_time
from gates.measuring.samples import Metric
from gates.task.task import Measure

COUNTS = frozenset({"B", "bytes", "KiB", "MiB", "GiB", "calls", "count", "steps", "operators", "instructions"})
CHANCE = 1e-5  # that clocks give samples which fit a rule so well
FINE = 1e-3  # of their level: coarser samples of arms that wait for one machine may agree by themselves
EXACT = 1e-12  # relative: what arithmetic alone leaves of two equal numbers
DIGITS = 12  # decimals: what is finer is not rounded


def doubts(measure: Measure, metric: Metric) -> Iterator[str]:
    """Yield why the samples that answer a measure are none; nothing where they may be what they are said to be."""
    arms = {arm: metric.arms.get(arm, ()) for arm in measure.arms}
    if any(len(values) < NEEDED for values in arms.values()):
        return
    if is_clocked(measure, metric):
        yield from _made_up(arms, metric.unit)
    if measure.kind == "difference" and metric.unit not in COUNTS and len(arms) == 2:
        one, other = arms.values()
        if one == other:
            yield (
                f"all {len(one)} pairs of {' and '.join(arms)} are equal to the last digit: this comparison was not "
                "seen to differ at all; measure what can tell a worse model from a better one"
            )


def is_clocked(measure: Measure, metric: Metric) -> bool:
    """Return whether a metric is read off a clock: a time or a rate."""
    rate = metric.unit.endswith(("/s", "/ms", "/us")) or measure.of.endswith("_per_s") or metric.unit == "Hz"
    return metric.unit in TIME_UNITS or is_time(measure.of) or rate


def _made_up(arms: Mapping[str, Sequence[float]], unit: str) -> Iterator[str]:
    """Yield in which way times or rates are none that a clock gave."""
    for arm, values in arms.items():
        if min(values) == max(values):
            yield (
                f"all {len(values)} samples of {arm} are {values[0]:g} {unit}, which no clock gives; "
                "write them as they were measured, unrounded"
            )
        elif _on_a_line(range(len(values)), values):
            yield f"the samples of {arm} go up or down by the same amount each time, which no clock gives"
    for (one, first), (other, second) in itertools.combinations(arms.items(), 2):
        if min(first) == max(first) or len(first) != len(second):
            continue
        if _is_multiple(first, second) or _on_a_line(second, first) or _on_a_line(first, second):
            yield f"the samples of {one} are those of {other} {_line(second, first)}, which no two clocks give"


def _line(given: Sequence[float], found: Sequence[float]) -> str:
    """Return how samples come from others, in words."""
    slope, offset = statistics.linear_regression(given, found)
    if abs(offset) <= 0.01 * statistics.fmean(found):
        return f"times {slope:.4g}"
    return f"times {slope:.4g} {'plus' if offset > 0 else 'minus'} {abs(offset):.3g}"


def _is_multiple(one: Sequence[float], other: Sequence[float]) -> bool:
    ratios = [a / b for a, b in zip(one, other, strict=True) if b]
    return len(ratios) == len(one) and all(math.isclose(ratio, ratios[0], rel_tol=EXACT) for ratio in ratios)


def _on_a_line(given: Sequence[float], found: Sequence[float]) -> bool:
    """Return whether values lie on a straight line over others, as near as they are rounded and nearer than by chance.

    Two values fix the line. Each other one lies within the rounding of it with the chance that the rounding has of the
    range of the values. A series of whole steps is one however coarse it is.
    """
    steps = [b - a for a, b in itertools.pairwise(found)]
    if isinstance(given, range) and max(steps) - min(steps) <= 2 * EXACT * max(map(abs, found)):
        return True
    levels, spread = len({*given}), max(found) - min(found)
    if levels < 3 or not spread:
        return False
    slope, offset = statistics.linear_regression(given, found)
    near = 0.55 * rounding(found)  # the line is fitted to what was rounded
    off = max(abs(offset + slope * x - y) for x, y in zip(given, found, strict=True))
    is_fine = near <= FINE * statistics.fmean(map(abs, found))
    return is_fine and off <= near and bool((2 * near / spread) ** (levels - 2) < CHANCE)


def rounding(values: Sequence[float]) -> float:
    """Return the unit of the last decimal that values are written with; where that is none, what arithmetic leaves."""
    least = 2 * EXACT * max(map(abs, values))
    units = (10.0**-digits for digits in range(DIGITS))
    written = (unit for unit in units if all(abs(v - round(v / unit) * unit) <= least for v in values))
    return max(least, next(written, 0.0))
