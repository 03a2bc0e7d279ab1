"""Samples that nobody took: typed in, made up by a rule, or of a comparison that cannot differ.

Each doubt holds at every number of samples that can decide, and for every source of them alike. Counts (bytes, steps,
calls) may be the same each time; times, rates and what is compared as a difference may not.
"""

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

from gates.measuring.interval import NEEDED, TIME_UNITS, Estimate, NotEnough, compare, estimate, is_time, values_of
from gates.measuring.samples import Metric, Samples
from gates.measuring.taken import Taken
from gates.model import Outcome
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


WALL = "step_time_s"
CPU = "step_cpu_time_s"
RATE = "items_per_s"
ANY_WAY = 1.25  # by which a level may be longer on the way of question and answer
OPPOSITE = {(Outcome.PASSED, Outcome.FAILED), (Outcome.FAILED, Outcome.PASSED)}


def contradicted(measure: Measure, name: str, samples: Samples, taken: Taken, seen: Estimate) -> Iterator[str]:
    """Yield why what the workers told is not believed: by the gate's clock it is on the other side of the limit.

    The gate sees when it asks and when it is answered. In between lies more than the timed steps: the step that is
    discarded, and the way of question and answer. Segments of all arms are about as long, so that in a comparison this
    cancels; where it does not, the work was done outside of what was timed, or the clock of the worker is not one.
    """
    metric = samples.metrics.get(WALL if name == CPU else name)
    if name not in {WALL, CPU, RATE} or metric is None or measure.kind == "slope":
        return
    own = _by_own_clock(metric, taken, rate=name == RATE)
    if own is None or set(measure.arms) - set(own.arms):
        return
    decided = compare(seen, *measure.bound)
    try:
        ours = _middle(measure, _by_start(own, taken)) if name != CPU else estimate(measure, own)
    except NotEnough:
        return
    if (decided, compare(ours, *measure.bound)) in OPPOSITE and not _on_the_way(measure, taken):
        clock = "the CPU time of its process" if name == CPU else "the worker's clock"
        yield (
            f"by {clock} it is {seen.value:.4g}, by the gate's own from question to answer {ours.value:.4g}: "
            "some of the work is done where it is not timed"
        )


def _by_own_clock(metric: Metric, taken: Taken, *, rate: bool) -> Metric | None:
    """Return times as the gate's clock saw them; `None` where it did not see every pair."""
    arms = {}
    for arm, values in metric.arms.items():
        whole = taken.whole.get(arm, ())
        if len(whole) != len(values):
            return None
        arms[arm] = tuple(v / w if rate else v * w for v, w in zip(values, whole, strict=True))
    return metric.model_copy(update={"arms": arms})


def _by_start(metric: Metric, taken: Taken) -> Metric:
    """Return the mean of each start of the processes: work that is put off in one pair is done in a later one of it."""
    if len(taken.restarts) != len(next(iter(metric.arms.values()))):
        return metric
    arms = {
        arm: tuple(
            statistics.fmean(value for _, value in of_one)
            for _, of_one in itertools.groupby(zip(taken.restarts, values, strict=True), key=itemgetter(0))
        )
        for arm, values in metric.arms.items()
    }
    return metric.model_copy(update={"arms": arms})


def _middle(measure: Measure, metric: Metric) -> Estimate:
    values = values_of(measure, metric)
    middle = statistics.median(values)
    return Estimate(middle, middle, middle, len(values), 0.0)


def _on_the_way(measure: Measure, taken: Taken) -> bool:
    """Return whether a level is only as much longer as question and answer take on a crowded machine."""
    return measure.kind == "value" and statistics.median(taken.whole[measure.arms[0]]) <= ANY_WAY
