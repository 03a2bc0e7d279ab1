"""What the samples of a measurement say to the measures that ask for them; pure, and the same at every look."""

import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from gates.measuring import fitness, interval
from gates.measuring.interval import Design, Estimate, NotEnough, compare, estimate
from gates.measuring.samples import Metric, Samples
from gates.measuring.taken import MeasurementRun, pooled
from gates.model import Outcome
from gates.task.task import Measure
from gates.words import shown

ALPHA = 1 - interval.LEVEL
BYTES = "bytes"
BARE = {"none", "1"}  # of what has no unit
STAYS = "attempt {} missed it, and with this one it is too uncertain to say otherwise"
DISAGREE = "this attempt meets it, and attempt {} with the same code on the same machine missed it"
SETTLE = "Find what differed between the two, or have it measured by 'arms', where the pairs of all attempts count."
MORE_STARTS = "Give the measurement {!r} a larger `budget_s`: it must start its processes at least three times."
QUIETER = "Measure on a quieter machine, or let `clock: either` decide comparisons by CPU time (`threads: 1`)."
WAITS = "Find what an arm waits for: a sleep, a file, a lock. Where that is to be measured, let `clock: wall` decide."
ALIKE = "Make the arms return the same, the same every time: a fast wrong answer is no gain."
LEDGER = "Put the ledger of attempts back as it was: what was tried before counts."
NUMBER, FITNESS, ATTEMPTS = "PF001", "PF002", "PF003"  # the rules of what decides


class Answer(NamedTuple):
    """What the samples say to one measure: the number where there is one, or else the problem.

    `rule` tells what decides, `clock` is the metric that answered in another's place, `remedy` what to do.
    """

    outcome: Outcome
    run: MeasurementRun | None
    seen: Estimate | None = None
    problem: str = ""
    rule: str = NUMBER
    clock: str = ""
    remedy: str = ""

    def shown(self, measure: Measure) -> str:
        """Return the number with its interval, and with its unit where it is no part of something."""
        if self.seen is None:
            return "not measured"
        unit = self.unit(measure)
        return self.seen.said(partial(shown, unit=BYTES)) if unit == BYTES else f"{self.seen} {unit}".rstrip()

    def unit(self, measure: Measure) -> str:
        """Return the unit of the number; nothing for a ratio and a reduction, and where none is told."""
        metric = self.samples.metrics.get(self.clock or measure.of) if self.samples else None
        if metric is None or measure.kind in {"ratio", "reduction"} or metric.unit in BARE:
            return ""
        return BYTES if metric.unit == "B" else metric.unit

    @property
    def samples(self) -> Samples | None:
        """Return the samples that the number was computed from."""
        return self.run.samples if self.run and self.seen else None


def answered(measure: Measure, run: MeasurementRun | None, problem: str = "", alpha: float = ALPHA) -> Answer:
    """Return what one run says; without good samples from the right device that is unknown."""
    if run is None or run.samples is None:
        return Answer(Outcome.UNKNOWN, run, problem=problem)
    if absent := [name for name in measure.when if name not in run.samples.device.capabilities]:
        return Answer(Outcome.NOT_APPLICABLE, run, problem=f"the device has no {', '.join(absent)}")
    try:
        seen = estimated(measure, run, alpha)
        reasons = unfit(measure, run, seen)
    except NotEnough as error:
        return Answer(Outcome.UNKNOWN, run, problem=str(error))
    used = metric_of(measure, run)
    said = partial(Answer, run=run, seen=seen, clock=used if used != measure.of else "")
    unlike, found = fitness.differing(run.taken) if run.taken and run.taken.same_result else ("", Outcome.PASSED)
    if unlike:
        return said(Outcome.UNKNOWN if measure.against_base else found, problem=unlike, rule=FITNESS, remedy=ALIKE)
    if reasons:
        remedy = QUIETER if used == measure.of else WAITS
        return said(Outcome.UNKNOWN, problem="; ".join(reasons), rule=FITNESS, remedy=remedy)
    if run.ledger_problem:
        return said(Outcome.UNKNOWN, problem=run.ledger_problem, rule=ATTEMPTS, remedy=LEDGER)
    if few := few_starts(run):
        return said(Outcome.UNKNOWN, problem=few, remedy=MORE_STARTS.format(measure.from_))
    alone = compare(seen, *measure.bound)
    first = next((i for i, one in enumerate(run.earlier, 1) if not one.unfit and measure.name in one.missed), 0)
    if not first or alone is Outcome.FAILED or (alone is Outcome.PASSED and run.taken):
        return said(alone)
    if alone is Outcome.PASSED:
        return said(Outcome.UNKNOWN, problem=DISAGREE.format(first), rule=ATTEMPTS, remedy=SETTLE)
    return said(Outcome.FAILED, problem=STAYS.format(first), rule=ATTEMPTS)


def metric_of(measure: Measure, run: MeasurementRun) -> str:
    """Return the metric that answers: CPU time for wall time, where the task allows it and compares arms on a CPU."""
    taken, instead, samples = run.taken, fitness.CPU_TIME.get(measure.of, ""), samples_of(run)
    compared = measure.kind in {"ratio", "reduction"} and samples.device.type == "cpu"
    if taken is None or instead not in samples.metrics or taken.clock == "wall" or not compared:
        return measure.of
    return instead if taken.clock == "cpu" or (taken.threads == 1 and any(fitness.contended(taken))) else measure.of


def samples_of(run: MeasurementRun) -> Samples:
    """Return the samples of a run that has some."""
    assert run.samples is not None
    return run.samples


def estimated(measure: Measure, run: MeasurementRun, alpha: float = ALPHA) -> Estimate:
    """Return the number with its interval; raise `NotEnough` with the reason where there is none."""
    name, there = metric_of(measure, run), samples_of(run).device.type
    if measure.on not in {"any", there}:
        raise NotEnough(f"it was seen on {there} only, the criterion asks for {measure.on}")
    if (metric := samples_of(run).metrics.get(name)) is None:
        raise NotEnough(f"the samples hold no {name!r}, only {', '.join(sorted(samples_of(run).metrics))}")
    if run.taken is None:
        for reason in fitness.doubts(measure, metric):  # typed in or made up, or a comparison that cannot differ
            raise NotEnough(reason)
        return _as_rounded(estimate(measure, metric, alpha=alpha), measure, metric)
    taken, attempt = run.taken, len(run.earlier) + 1
    way = taken.split, taken.one_processor
    whole, used = pooled(name, metric, [one for one in run.earlier if (one.split, one.one_processor) == way])
    if len(next(iter(metric.arms.values()))) != taken.pairs:  # one for each start: nobody looked at it meanwhile
        return estimate(measure, whole, alpha=interval.alpha_of(attempt, alpha))
    starts = (*(one.restarts for one in used), taken.restarts)
    restarts = tuple((i, start) for i, of_one in enumerate(starts) for start in of_one) if taken.restarts else ()
    return estimate(measure, whole, Design(taken.most, restarts, attempt), alpha)


def _as_rounded(seen: Estimate, measure: Measure, metric: Metric) -> Estimate:
    """Return an interval of times or rates that are written to few digits, as wide as what was rounded away allows."""
    if not interval.is_clocked(measure.of, metric.unit):
        return seen
    scale = {"ratio": seen.value, "reduction": 1 - seen.value}.get(measure.kind)
    halves = [(fitness.rounding(values) / 2, values) for values in (metric.arms[arm] for arm in measure.arms)]
    off = sum(half if scale is None else abs(scale) * half / statistics.median(values) for half, values in halves)
    return seen._replace(low=seen.low - off, high=seen.high + off)


def unfit(measure: Measure, run: MeasurementRun, seen: Estimate) -> tuple[str, ...]:
    """Return why the machine was not fit to give this number, whatever its interval says."""
    if run.taken is None:
        return ()
    name = metric_of(measure, run)
    untrue = tuple(fitness.contradicted(measure, name, samples_of(run), run.taken, seen))
    sign, limit = measure.bound
    kept = measure.kind == "value" and compare(seen, sign, limit) is Outcome.PASSED
    if name not in fitness.TIMED or (kept and (sign != ">=") == (name != fitness.RATE)):
        return untrue  # disturbed it would only have been worse
    waited = fitness.contended(run.taken) if name in fitness.TIMES else ()
    biased = fitness.misled(run.taken, name, measure.kind, seen, limit)
    return (*untrue, *fitness.disturbed(run.taken), *waited, *biased)


def few_starts(run: MeasurementRun) -> str:
    """Return why nothing is decided yet: fewer starts, though more were due, than it takes to see how they differ."""
    if (taken := run.taken) is None or not taken.restarts:
        return ""
    starts = taken.starts + sum(len(set(one.restarts)) for one in run.earlier if not one.unfit)
    often = "once" if starts == 1 else f"{starts} times"
    few = starts < min(interval.LEAST_RESTARTS, taken.planned_starts)
    return f"its processes were started only {often}, which does not show how they differ" if few else ""


def outcome(measure: Measure, run: MeasurementRun | None, alpha: float = ALPHA) -> Outcome:
    """Return what the interval decides, unless the machine was unfit."""
    return answered(measure, run, alpha=alpha).outcome


def missed(measures: Sequence[Measure], run: MeasurementRun) -> tuple[str, ...]:
    """Return the measures that fail, the error shared among them."""
    outcomes = correct([partial(outcome, measure, run) for measure in measures], ALPHA)
    return tuple(one.name for one, found in zip(measures, outcomes, strict=True) if found is Outcome.FAILED)


def settled(measures: Sequence[Measure], run: MeasurementRun) -> bool:
    """Return whether every measure that applies is decided, also where failures share the error."""
    return Outcome.UNKNOWN not in correct([partial(outcome, measure, run) for measure in measures], ALPHA)


def correct(criteria: Sequence[Callable[[float], Outcome]], alpha: float) -> list[Outcome]:
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
    failed: list[int] = []
    while more := [
        i for i in family if i not in failed and criteria[i](alpha / (len(family) - len(failed))) is Outcome.FAILED
    ]:
        failed += more
    unsure = {i for i, outcome in enumerate(plain) if outcome is Outcome.FAILED}.difference(failed)
    return [Outcome.UNKNOWN if i in unsure else outcome for i, outcome in enumerate(plain)]
