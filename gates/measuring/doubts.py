"""Samples that nobody took: typed in, made up by a rule, or of a comparison that cannot differ.

Each doubt holds at every number of samples that can decide, and for every source of them alike. Counts (bytes, steps,
calls) may be the same each time; times, rates and what is compared as a difference may not.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from gates.measuring.interval import NEEDED, TIME_UNITS, is_time
from gates.measuring.samples import Metric
from gates.task.task import Measure

COUNTS = frozenset({"B", "bytes", "KiB", "MiB", "GiB", "calls", "count", "steps", "operators", "instructions"})
EXACT = 1e-12  # relative: what arithmetic alone leaves of two equal numbers


def doubts(measure: Measure, metric: Metric) -> Iterator[str]:
    """Yield why the samples that answer a measure are none; nothing where they may be what they are said to be."""
    arms = {arm: metric.arms.get(arm, ()) for arm in measure.arms}
    if any(len(values) < NEEDED for values in arms.values()):
        return
    if _is_clocked(measure, metric):
        yield from _made_up(arms, metric.unit)
    if measure.kind == "difference" and metric.unit not in COUNTS and len(arms) == 2:
        one, other = arms.values()
        if one == other:
            yield (
                f"all {len(one)} pairs of {' and '.join(arms)} are equal to the last digit: this comparison was not "
                "seen to differ at all; measure what can tell a worse model from a better one"
            )


def _is_clocked(measure: Measure, metric: Metric) -> bool:
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
        elif _same([b - a for a, b in itertools.pairwise(values)]):
            yield f"the samples of {arm} go up or down by the same amount each time, which no clock gives"
    for (one, first), (other, second) in itertools.combinations(arms.items(), 2):
        pairs = list(zip(first, second, strict=False))
        if min(first) != max(first) and all(b for _, b in pairs) and _same([a / b for a, b in pairs]):
            yield f"the samples of {one} are those of {other} times {first[0] / second[0]:g}, to the last digit"


def _same(values: Sequence[float]) -> bool:
    return all(math.isclose(value, values[0], rel_tol=EXACT) for value in values)
