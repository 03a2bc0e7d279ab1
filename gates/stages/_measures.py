"""A measure answered from the samples that fit it: on the device asked for, or with the reason why not."""

from collections.abc import Iterator
from dataclasses import dataclass

from gates.evidence.kind import EvidenceSet
from gates.evidence.measurements import MeasurementRun, Measurements
from gates.interval import Estimate, NotEnough, compare, estimate
from gates.model import Level, Outcome
from gates.samples import Samples
from gates.task import Criterion, Measure, Task


@dataclass(frozen=True)
class Answer:
    """What the samples say to one measure: the number where there is one, or else the problem."""

    outcome: Outcome
    run: MeasurementRun | None
    seen: Estimate | None = None
    problem: str = ""

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


def answer(measure: Measure, evidence: EvidenceSet) -> Answer:
    """Answer a measure; without good samples from the right device the answer is unknown."""
    run, problem = _run_for(measure, evidence)
    if run is None or run.samples is None:
        return Answer(Outcome.UNKNOWN, run, problem=problem)
    try:
        seen = _estimate(measure, run.samples)
    except NotEnough as error:
        return Answer(Outcome.UNKNOWN, run, problem=str(error))
    absent = [name for name in measure.when if name not in run.samples.device.capabilities]
    if absent:
        return Answer(Outcome.NOT_APPLICABLE, run, seen, f"the device has no {', '.join(absent)}")
    return Answer(compare(seen, *measure.bound), run, seen)


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


def _estimate(measure: Measure, samples: Samples) -> Estimate:
    metric = samples.metrics.get(measure.of)
    if metric is None:
        raise NotEnough(f"the samples hold no {measure.of!r}, only {', '.join(sorted(samples.metrics))}")
    return estimate(measure, metric)
