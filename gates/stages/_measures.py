"""A measure answered from the samples that fit it: on the device asked for, or with the reason why not."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from gates.deciding.design import LEAST_RESTARTS
from gates.deciding.several import correct
from gates.evidence.kind import EvidenceSet
from gates.evidence.measurements import MeasurementRun, Measurements
from gates.interval import Estimate, NotEnough, compare
from gates.measuring import answers
from gates.measuring.answers import ALPHA, Source
from gates.model import Level, Outcome
from gates.samples import Samples
from gates.stages._elsewhere import from_elsewhere, why_not
from gates.task import Criterion, Measure, Task

SHARED = "it misses the target alone, but not with the error shared by all criteria of the task that may fail"


@dataclass(frozen=True)
class Answer:
    """What the samples say to one measure: the number where there is one, or else the problem.

    `unfit` is why the machine could not give that number, `clock` the metric that answered in the place of the one
    asked for.
    """

    outcome: Outcome
    run: MeasurementRun | None
    seen: Estimate | None = None
    problem: str = ""
    unfit: tuple[str, ...] = ()
    clock: str = ""

    @property
    def samples(self) -> Samples | None:
        """Return the samples that the number was computed from."""
        return self.run.samples if self.run and self.seen else None


def targets_of(task: Task) -> Iterator[tuple[Criterion, int, Measure]]:
    """Yield every measure of a task with its criterion and its place there."""
    for criterion in task.criteria:
        for i, measure in enumerate(criterion.measures):
            yield criterion, i, measure


def level_of(criterion: Criterion, measure: Measure) -> Level:
    """Return how binding a measure is: its own level, or its criterion's."""
    return measure.level or criterion.level


def answers_of(task: Task, evidence: EvidenceSet) -> Iterator[tuple[Criterion, int, Measure, Answer]]:
    """Yield every measure with its answer; failures of required measures share the error among them."""
    targets = [(*target, _enough_starts(task, target[2], answer(target[2], evidence))) for target in targets_of(task)]
    family = [
        i for i, (criterion, _, measure, got) in enumerate(targets)
        if got.outcome in {Outcome.PASSED, Outcome.FAILED} and level_of(criterion, measure) is Level.MUST
    ]  # fmt: skip
    judged = [partial(answers.outcome, targets[i][2], source_of(targets[i][3].run)) for i in family]
    shared = dict(zip(family, correct(judged, ALPHA), strict=True))
    for i, (criterion, place, measure, got) in enumerate(targets):
        if got.outcome is Outcome.FAILED and shared.get(i) is Outcome.UNKNOWN:
            yield criterion, place, measure, replace(got, outcome=Outcome.UNKNOWN, problem=SHARED)
        else:
            yield criterion, place, measure, got


def _enough_starts(task: Task, measure: Measure, got: Answer) -> Answer:
    """Return the answer, undecided where a smoke run had no time to see how processes differ from each other."""
    run = got.run
    if not task.smoke or run is None or run.elsewhere or run.taken is None or not run.taken.restarts:
        return got
    asked = next(one.restarts for one in task.measurements if one.id == measure.from_)
    starts = len(set(run.taken.restarts))
    if starts >= min(LEAST_RESTARTS, asked) or got.outcome not in {Outcome.PASSED, Outcome.FAILED}:
        return got
    why = f"in a smoke run its processes were started {starts} times only, which does not tell how they differ"
    return replace(got, outcome=Outcome.UNKNOWN, problem=why)


def answer(measure: Measure, evidence: EvidenceSet) -> Answer:
    """Answer a measure by itself: by what was measured here, and by the bundles of other machines that fit."""
    run, problem = _run_for(measure, evidence)
    told = told_by(run, measure, problem)
    others = [told_by(other, measure) for other in from_elsewhere(measure, evidence)]
    if others:
        return _merged(measure, [told, *others])
    if run is not None and run.samples is not None:
        return told
    return replace(told, problem="; ".join(filter(None, (told.problem, why_not(measure, evidence)))))


def told_by(run: MeasurementRun | None, measure: Measure, problem: str = "", alpha: float = ALPHA) -> Answer:
    """Return what one run says; without good samples from the right device that is unknown."""
    if run is None or run.samples is None:
        return Answer(Outcome.UNKNOWN, run, problem=problem)
    source = source_of(run)
    try:
        seen = answers.estimated(measure, source, alpha)
    except NotEnough as error:
        return Answer(Outcome.UNKNOWN, run, problem=str(error))
    absent = [name for name in measure.when if name not in run.samples.device.capabilities]
    if absent:
        return Answer(Outcome.NOT_APPLICABLE, run, seen, f"the device has no {', '.join(absent)}")
    used = source.metric(measure)
    clock = used if used != measure.of else ""
    reasons = answers.unfit(measure, source, seen)
    if reasons or run.earlier.problem:
        return Answer(Outcome.UNKNOWN, run, seen, "; ".join(reasons) or run.earlier.problem, reasons, clock)
    return Answer(compare(seen, *measure.bound), run, seen, clock=clock)


def _merged(measure: Measure, told: list[Answer]) -> Answer:
    """Fold what several machines say, whatever their order: one failure fails; a pass stands with the error shared.

    The samples of two runs are never put together, so that the same run twice is no more than once.
    """
    each: dict[str, Answer] = {}
    for run, got in sorted(((got.run, got) for got in told if got.run), key=lambda pair: pair[0].elsewhere):
        if run.samples:
            each.setdefault(run.model_dump_json(include={"samples", "taken", "earlier"}), got)
    share = ALPHA / max(len(each), 1)
    alone = f"it meets the target alone, not with the error shared by {len(each)} runs"
    shared = [
        replace(got, outcome=Outcome.UNKNOWN, problem=alone)
        if got.outcome is Outcome.PASSED and told_by(got.run, measure, alpha=share).outcome is not Outcome.PASSED
        else got
        for got in each.values()
    ]  # fmt: skip
    return min(shared, key=partial(_rank, measure))


def _rank(measure: Measure, got: Answer) -> tuple[object, ...]:
    """Return where an answer stands among several: what decides first, and of those the clearest."""
    order = (Outcome.FAILED, Outcome.PASSED, Outcome.UNKNOWN, Outcome.NOT_APPLICABLE)
    limit = measure.bound[1]
    near = min(abs(got.seen.low - limit), abs(got.seen.high - limit)) if got.seen else 0.0
    return order.index(got.outcome), -near, got.samples.model_dump_json() if got.samples else ""


def source_of(run: MeasurementRun | None) -> Source:
    """Return where the numbers of a run with samples come from."""
    assert run is not None
    assert run.samples is not None
    return Source(run.samples, run.taken, run.earlier.attempts)


def _run_for(measure: Measure, evidence: EvidenceSet) -> tuple[MeasurementRun | None, str]:
    """Return the run whose device fits the measure, or the reason why there is none."""
    measurements = evidence.get(Measurements)
    if measurements is None:
        return None, evidence.why_missing(Measurements)
    fitting = [
        run for run in measurements.of(measure.from_) if measure.on in {"any", run.device} or run.device == "any"
    ]
    good = [run for run in fitting if run.samples and measure.on in {"any", run.samples.device.type}]
    if good:
        return good[0], ""
    seen_on = sorted({run.samples.device.type for run in fitting if run.samples})
    if seen_on:
        return None, f"it was seen on {', '.join(seen_on)} only, the criterion asks for {measure.on}"
    return (fitting[0], fitting[0].problem) if fitting else (None, f"measurement {measure.from_!r} was not run")
