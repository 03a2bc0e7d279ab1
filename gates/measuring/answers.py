"""What the samples of a measurement say to the measures that ask for them; pure, and the same at every look."""

import itertools
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from gates.measuring.fitness import (
    CPU_TIME,
    TIMED,
    TIMES,
    contended,
    contradicted,
    disturbed,
    doubts,
    is_clocked,
    misled,
    rounding,
)
from gates.measuring.interval import LEAST_RESTARTS, LEVEL, Design, Estimate, NotEnough, compare, estimate
from gates.measuring.samples import Metric, Samples
from gates.measuring.taken import Attempt, Taken, pooled
from gates.model import Outcome
from gates.task.task import Measure

ALPHA = 1 - LEVEL


@dataclass(frozen=True)
class Source:
    """Where numbers come from: the samples, how they were taken where the gate took them, and earlier attempts."""

    samples: Samples
    taken: Taken | None = None
    earlier: tuple[Attempt, ...] = ()

    def metric(self, measure: Measure) -> str:
        """Return the metric that answers a measure: CPU time in the place of wall time, where the task allows it.

        Only in a comparison: what a person waits for is no CPU time. Only on a CPU: that of the host is no device's.
        """
        taken, instead = self.taken, CPU_TIME.get(measure.of, "")
        compared = measure.kind in {"ratio", "reduction"} and self.samples.device.type == "cpu"
        if taken is None or instead not in self.samples.metrics or taken.clock == "wall" or not compared:
            return measure.of
        return instead if taken.clock == "cpu" or (taken.threads == 1 and any(contended(taken))) else measure.of


def estimated(measure: Measure, source: Source, alpha: float = ALPHA) -> Estimate:
    """Return the number with its interval; raise `NotEnough` with the reason where there is none."""
    name = source.metric(measure)
    metric = source.samples.metrics.get(name)
    if metric is None:
        raise NotEnough(f"the samples hold no {name!r}, only {', '.join(sorted(source.samples.metrics))}")
    if source.taken is None:
        _refuse_what_nobody_took(measure, metric)
        return _as_rounded(estimate(measure, metric, alpha=alpha), measure, metric)
    now = len(next(iter(metric.arms.values())))
    metric, used = pooled(name, metric, [one for one in source.earlier if one.split == source.taken.split])
    before, attempt = len(next(iter(metric.arms.values()))) - now, len(source.earlier) + 1
    restarts = _restarts(source.taken, used)
    design = Design(source.taken.most, restarts, before=before, attempt=attempt, split=source.taken.split)
    if now != source.taken.pairs:  # one value for each start of the processes: nobody looked at it meanwhile
        return estimate(measure, metric, alpha=design.alpha(alpha))
    return estimate(measure, metric, design, alpha)


def _refuse_what_nobody_took(measure: Measure, metric: Metric) -> None:
    """Raise `NotEnough` for samples that were typed in or made up, and for a comparison that cannot differ."""
    for reason in doubts(measure, metric):
        raise NotEnough(reason)


def _as_rounded(seen: Estimate, measure: Measure, metric: Metric) -> Estimate:
    """Return an interval of times or rates that are written to few digits, as wide as what was rounded away allows."""
    if not is_clocked(measure, metric):
        return seen
    arms = [metric.arms[arm] for arm in measure.arms]
    if measure.kind in {"ratio", "reduction"}:
        off = sum(rounding(values) / 2 / statistics.median(values) for values in arms)
        scale = seen.value if measure.kind == "ratio" else 1 - seen.value
        off *= abs(scale)
    else:
        off = sum(rounding(values) / 2 for values in arms)
    return replace(seen, low=seen.low - off, high=seen.high + off)


def unfit(measure: Measure, source: Source, seen: Estimate) -> tuple[str, ...]:
    """Return why the machine was not fit to give this number, whatever its interval says."""
    if source.taken is None:
        return ()
    name = source.metric(measure)
    contrary = contradicted(measure, name, source.samples, source.taken, seen)
    untrue = (*_slower_by_the_wall(measure, source, seen), *contrary)
    if name not in TIMED or _kept_all_the_same(measure, name, seen):
        return untrue
    waited = contended(source.taken) if name in TIMES else ()
    biased = misled(source.taken, name, measure.kind, seen, measure.bound[1])
    return (*untrue, *disturbed(source.taken), *waited, *biased)


def few_starts(source: Source) -> str:
    """Return why nothing is decided yet: too few starts of the processes to see how they differ, though more were due.

    A task may ask for fewer than it takes to see that; then its interval is that of the steps alone.
    """
    taken = source.taken
    if taken is None or not taken.restarts:
        return ""
    starts = taken.starts + sum(len(set(one.restarts)) for one in source.earlier if not one.unfit)
    if starts >= min(LEAST_RESTARTS, taken.planned_starts):
        return ""
    often = "once" if starts == 1 else f"{starts} times"
    return f"its processes were started only {often}, which does not show how they differ"


def _slower_by_the_wall(measure: Measure, source: Source, seen: Estimate) -> Iterator[str]:
    """Yield that the wall clock contradicts CPU time: what waits for something else takes none of it."""
    if source.metric(measure) == measure.of or compare(seen, *measure.bound) is not Outcome.PASSED:
        return
    wall = estimate(measure, source.samples.metrics[measure.of])
    if compare(wall, *measure.bound) is Outcome.FAILED:
        yield f"by CPU time it is {seen}, by the wall clock {wall}"


def _kept_all_the_same(measure: Measure, name: str, seen: Estimate) -> bool:
    """Return whether a level is kept although a disturbance could only have made it worse."""
    sign, limit = measure.bound
    worse_is_more = name not in {"items_per_s"}
    kept = compare(seen, sign, limit) is Outcome.PASSED
    return measure.kind == "value" and kept and (sign != ">=") == worse_is_more


def outcome(measure: Measure, source: Source, alpha: float = ALPHA) -> Outcome:
    """Return what the interval decides, unless the machine was unfit."""
    try:
        seen = estimated(measure, source, alpha)
    except NotEnough:
        return Outcome.UNKNOWN
    undecided = unfit(measure, source, seen) or few_starts(source)
    return Outcome.UNKNOWN if undecided else decided(measure, source, seen)


def decided(measure: Measure, source: Source, seen: Estimate) -> Outcome:
    """Return what an interval decides; what an earlier attempt missed stays missed where this one leaves it open.

    Where the samples of that attempt are not among those of this interval, the interval alone does not clear it.
    """
    found = compare(seen, *measure.bound)
    if not missed_before(measure, source):
        return found
    if found is Outcome.PASSED and source.taken is None:
        return Outcome.UNKNOWN
    return Outcome.FAILED if found is Outcome.UNKNOWN else found


def missed_before(measure: Measure, source: Source) -> int:
    """Return which of the attempts, counted from 1, missed a measure first; 0 where none did."""
    return next((i for i, one in enumerate(source.earlier, 1) if not one.unfit and measure.name in one.missed), 0)


def missed(measures: Sequence[Measure], source: Source) -> tuple[str, ...]:
    """Return the measures that fail, the error shared among them."""
    outcomes = correct([partial(outcome, measure, source) for measure in measures], ALPHA)
    return tuple(one.name for one, found in zip(measures, outcomes, strict=True) if found is Outcome.FAILED)


def settled(measures: Sequence[Measure], source: Source) -> bool:
    """Return whether every measure that applies is decided, also where failures share the error."""
    capable = source.samples.device.capabilities
    judged: list[Callable[[float], Outcome]] = [
        partial(outcome, measure, source) for measure in measures if set(measure.when) <= set(capable)
    ]
    return Outcome.UNKNOWN not in correct(judged, ALPHA)


def _restarts(taken: Taken, used: Sequence[Attempt]) -> tuple[int, ...]:
    """Return for each pair of all attempts which start of the processes it came from."""
    if not taken.restarts:
        return ()
    found: list[int] = []
    for restarts in (*(one.restarts for one in used), taken.restarts):
        first = (max(found) if found else 0) + 1
        numbers = {number: first + i for i, (number, _) in enumerate(itertools.groupby(restarts))}
        found += [numbers[number] for number in restarts]
    return tuple(found)


Judged = Callable[[float], Outcome]


def correct(criteria: Sequence[Judged], alpha: float) -> list[Outcome]:
    """Return the outcome of each criterion, judged by its interval at an error that several of them share.

    A pass needs all of them, so each may be tested at the full level (an intersection-union test). One failure blocks,
    so failures share the error by Holm's step-down procedure. Those that passed are left out of the family: who is on
    the good side by a whole interval cannot fail by chance. That they are picked by the same samples is paid for by the
    share of the error that a pass leaves (Zhao, Small and Su, JASA 114, 2019, on conservative nulls).
    """
    plain = [judged(alpha) for judged in criteria]
    family = [i for i, outcome in enumerate(plain) if outcome is not Outcome.PASSED]
    if len(family) < len(plain):
        alpha *= 1 - alpha / 2
    failed: set[int] = set()
    while True:
        share = alpha / max(len(family) - len(failed), 1)
        more = {i for i in family if i not in failed and criteria[i](share) is Outcome.FAILED}
        if not more:
            break
        failed |= more
    return [
        Outcome.UNKNOWN if outcome is Outcome.FAILED and i not in failed else outcome for i, outcome in enumerate(plain)
    ]
