"""Whether a machine was fit to measure: what overrules an interval, however narrow that is."""

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

from gates.measuring.interval import NEEDED, Estimate, by_start, compare, estimate, is_clocked, rank, values_of
from gates.measuring.samples import Metric, Samples
from gates.measuring.taken import Taken
from gates.model import Outcome
from gates.task.task import Measure

CROWDED, SOME_WAITING, STRETCHED = 0.30, 0.10, 1.2
PREEMPTED = 2  # times in a whole pair
THROTTLED, SLOW_CLOCK = 0.05, 0.75
TIMES = ("step_time_s", "run_time_s", "items_per_s")
CPU_TIME = {"step_time_s": "step_cpu_time_s", "run_time_s": "run_cpu_time_s"}
TIMED = frozenset({*TIMES, *CPU_TIME.values()})  # what has a value for each pair


def noise(taken: Taken, metric: str = TIMES[0]) -> Estimate | None:
    """Return the ratio of the times of the baseline and its copy, which should be 1; `None` where there is none."""
    ratios = sorted(copy / own for own, copy in (taken.cpu_copies if metric in CPU_TIME.values() else taken.copies))
    if not ratios:
        return None
    k, level = rank(len(ratios)) if len(ratios) >= NEEDED else (1, 0.0)  # of fewer, all that was seen
    return Estimate(statistics.median(ratios), ratios[k - 1], ratios[-k], len(ratios), level)


def differing(taken: Taken) -> tuple[str, Outcome]:
    """Return which arm had another result than the first, and what that means; nothing where all had the same."""
    changing = next((arm for arm, digests in taken.digests.items() if len(digests) > 1), "")
    if changing or not taken.digests:
        why = f"the step of {changing} returns now this, now that" if changing else "no arm told its result"
        return f"{why}: whether the results are the same was not seen", Outcome.UNKNOWN
    for arm, digests in taken.digests.items():
        if digests != taken.digests.get(taken.baseline):
            return f"{arm} does not return what {taken.baseline} returns: it is not the same work", Outcome.FAILED
    return "", Outcome.PASSED


def disturbed(taken: Taken) -> Iterator[str]:
    """Yield why no number of this measurement can be believed, whatever it is."""
    before, after = taken.before, taken.after
    if before.cores != after.cores:
        yield f"the processor cores that may be used changed from {before.cores} to {after.cores}"
    if before.quota != after.quota:
        yield f"the processor quota changed from {before.quota!r} to {after.quota!r}"
    if taken.threads > before.cores:
        yield f"{taken.threads} threads on {before.cores} cores"


def contended(taken: Taken) -> Iterator[str]:
    """Yield why the wall clock cannot be believed: the work waited for a processor, or its clock was held down."""
    if taken.threads > 1 and (taken.waiting or 0.0) > CROWDED:
        yield f"something waited for a processor {taken.waiting:.0%} of the time (at most {CROWDED:.0%} with threads)"
    throttled = (taken.after.throttled_s or 0.0) - (taken.before.throttled_s or 0.0)
    if throttled > THROTTLED * max(taken.measured_s, 1e-9):
        yield f"the processor quota held the work up for {throttled:.2g} of {taken.measured_s:.2g} s"
    if taken.threads == 1:
        for arm, values in taken.stretch.items():
            stretch, switches = statistics.median(values), taken.switches.get(arm) or (PREEMPTED,)
            pushed = statistics.fmean(switches) * taken.split >= PREEMPTED
            if stretch > STRETCHED and (pushed if taken.waiting is None else taken.waiting > SOME_WAITING):
                share = f" {taken.waiting:.0%} of the time" if taken.waiting is not None else ""
                took = f"{arm} took {stretch:.3g} times its CPU time (at most {STRETCHED:g})"
                yield f"{took} while something waited for a processor{share}"
    if taken.gpu is not None:
        if taken.gpu.throttled:
            yield f"the GPU was throttled ({taken.gpu.throttled})"
        if taken.gpu.clock_share is not None and taken.gpu.clock_share < SLOW_CLOCK:
            yield f"the GPU ran at {taken.gpu.clock_share:.0%} of its clock (at least {SLOW_CLOCK:.0%})"
        if taken.gpu.others:
            yield f"{taken.gpu.others} other processes used the GPU"


def misled(taken: Taken, metric: str, kind: str, seen: Estimate, limit: float) -> Iterator[str]:
    """Yield why an interval of times may be narrow and wrong, by what is left between the number and its limit."""
    pair = (1 - seen.value, 1 - limit) if kind == "reduction" else (seen.value, limit)
    if kind == "difference" or min(pair) <= 0:
        return
    margin, copies = abs(math.log(pair[0] / pair[1])), noise(taken, metric)
    if copies and not copies.low <= 1 <= copies.high and abs(math.log(copies.value)) > margin / 2:
        differed = f"two copies of {taken.baseline} differed as much as half of what is to be shown"
        yield f"{differed}: {copies}, n = {copies.n}"


COUNTS = frozenset({"B", "bytes", "KiB", "MiB", "GiB", "calls", "count", "steps", "operators", "instructions"})
CHANCE = 1e-5  # that clocks give samples which fit a rule so well
REPEATED = 2e-3  # that a coarse clock gives the same samples again in the same order
FINE = 1e-3  # of their level: coarser samples of arms that wait for one machine may agree by themselves
EXACT = 1e-12  # relative: what arithmetic alone leaves of two equal numbers
DIGITS = 12  # decimals: what is finer is not rounded


def doubts(measure: Measure, metric: Metric) -> Iterator[str]:
    """Yield why the samples that answer a measure are none; nothing where they may be what they are said to be."""
    arms = {arm: metric.arms.get(arm, ()) for arm in measure.arms}
    if any(len(values) < NEEDED for values in arms.values()):
        return
    if is_clocked(measure.of, metric.unit):
        yield from _made_up(arms, metric.unit)
    if measure.kind == "difference" and metric.unit not in COUNTS and len(arms) == 2:
        one, other = arms.values()
        if one == other:
            equal = f"all {len(one)} pairs of {' and '.join(arms)} are equal to the last digit"
            remedy = "measure what can tell a worse model from a better one"
            yield f"{equal}: this comparison was not seen to differ at all; {remedy}"


def _made_up(arms: Mapping[str, Sequence[float]], unit: str) -> Iterator[str]:
    for arm, values in arms.items():
        if min(values) == max(values):
            same = f"all {len(values)} samples of {arm} are {values[0]:g} {unit}, which no clock gives"
            yield f"{same}; write them as they were measured, unrounded"
        elif _on_a_line(range(len(values)), values):
            yield f"the samples of {arm} go up or down by the same amount each time, which no clock gives"
    if count := _repeated([*zip(*arms.values(), strict=False)]):
        yield f"the samples of {' and '.join(arms)} are the first {count} again and again, which no clock gives"
    for (one, first), (other, second) in itertools.combinations(arms.items(), 2):
        if min(first) == max(first) or len(first) != len(second):
            continue
        ordered = sorted(first), sorted(second)
        found, given = ordered if len({*first}) == len(first) and _is_multiple(*ordered) else (first, second)
        if _is_multiple(found, given) or _on_a_line(given, found) or _on_a_line(found, given):
            yield f"the samples of {one} are those of {other}, scaled or shifted, which no two clocks give"


def _repeated(rows: Sequence[tuple[float, ...]]) -> int:
    """Return after how many rows all begin anew, and not by the chance of a coarse clock; 0 where they do not."""
    count = next((each for each in range(2, len(rows) // 2 + 1) if rows[each:] == rows[:-each]), 0)
    equal = [sum((column.count(value) / len(rows)) ** 2 for value in {*column}) for column in zip(*rows, strict=True)]
    alternate = len({*rows}) < 3  # as odd and even steps may
    return 0 if alternate or math.prod(equal) ** (len(rows) - count) >= REPEATED else count


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


RATE = "items_per_s"
ANY_WAY = 1.25  # by which a level may be longer on the way of question and answer
WALL_TIME = {cpu: wall for wall, cpu in CPU_TIME.items()}
OPPOSITE = {Outcome.PASSED, Outcome.FAILED}


def contradicted(measure: Measure, name: str, samples: Samples, taken: Taken, seen: Estimate) -> Iterator[str]:
    """Yield why what the workers told is not believed: by the gate's clock it is on the other side of the limit.

    Between its question and the answer lies more than the timed steps. Segments are about as long in all arms, so that
    this cancels in a comparison; where it does not, work was done outside of what was timed, or the clock is none.
    """
    metric = samples.metrics.get(WALL_TIME.get(name, name))
    on_the_way = statistics.median(taken.whole.get(measure.arms[0]) or (1.0,)) <= ANY_WAY
    if name not in TIMED or metric is None or (measure.kind == "value" and on_the_way):
        return
    own: dict[str, tuple[float, ...]] = {}
    for arm in measure.arms:
        values, whole = metric.arms.get(arm, ()), taken.whole.get(arm, ())
        if len(whole) == len(values):
            own[arm] = tuple(v / w if name == RATE else v * w for v, w in zip(values, whole, strict=True))
        elif name != measure.of:  # CPU time in the place of wall time
            own[arm] = values
        else:
            return
    decided, ours = compare(seen, *measure.bound), metric.model_copy(update={"arms": own})
    if name in WALL_TIME:
        by_wall = estimate(measure, ours)
        if {decided, compare(by_wall, *measure.bound)} == OPPOSITE:
            yield f"by CPU time it is {seen}, by the wall clock {by_wall}"
        return
    # what is put off in one pair is done in a later one of its start; one disturbed pair moves a mean, but no median
    means = {arm: tuple(map(statistics.fmean, by_start(values, taken.restarts))) for arm, values in own.items()}
    for each in (ours.model_copy(update={"arms": means}), ours):
        middle = statistics.median(values_of(measure, each))
        if {decided, compare(Estimate(middle, middle, middle, 1, 0.0), *measure.bound)} == OPPOSITE:
            clocks = f"by the worker's clock it is {seen.value:.4g}, by the gate's own from question to answer"
            yield f"{clocks} {middle:.4g}: some of the work is done where it is not timed"
            return
