"""What the gate's own clock says of times that workers told: an answer that holds by the worker's clock alone is none.

The gate sees when it asks and when it is answered. In between lies more than the timed steps: the step that is
discarded, and the way of question and answer. Segments of all arms are about as long, so that in a comparison this
cancels; where it does not, the work was done outside of what was timed, or the clock of the worker is not one.
"""

import itertools
import statistics
from collections.abc import Iterator
from operator import itemgetter

from gates.measuring.interval import Estimate, NotEnough, compare, estimate, values_of
from gates.measuring.samples import Metric, Samples
from gates.measuring.taken import Taken
from gates.model import Outcome
from gates.task.task import Measure

WALL = "step_time_s"
CPU = "step_cpu_time_s"
RATE = "items_per_s"
ANY_WAY = 1.25  # by which a level may be longer on the way of question and answer
OPPOSITE = {(Outcome.PASSED, Outcome.FAILED), (Outcome.FAILED, Outcome.PASSED)}


def contradicted(measure: Measure, name: str, samples: Samples, taken: Taken, seen: Estimate) -> Iterator[str]:
    """Yield why what the workers told is not believed: by the gate's clock it is on the other side of the limit."""
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
