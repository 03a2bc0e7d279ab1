"""What bundles of other machines may say to a measure: those that fit it, and why others do not."""

from collections.abc import Iterator

from gates.bundles.form import definition_of
from gates.check import EvidenceSet
from gates.evidence.bundles import Bundles, HandedIn, SeenRun, Standing
from gates.evidence.measurements import MeasurementRun
from gates.task.task import Measure, Task


def from_elsewhere(measure: Measure, evidence: EvidenceSet) -> list[MeasurementRun]:
    """Return the runs of bundles that answer a measure: of its kind of device, made for it, and not stale."""
    return [run.run for handed in _fitting(evidence) for run in handed.runs if answers(run, measure)]


def any_from_elsewhere(task: Task, measurement: str, evidence: EvidenceSet) -> tuple[MeasurementRun, ...]:
    """Return the runs of bundles that answer some measure by one of the task's measurements."""
    measures = [m for criterion in task.criteria for m in criterion.measures if m.from_ == measurement]
    runs = (run for handed in _fitting(evidence) for run in handed.runs)
    return tuple(run.run for run in runs if any(answers(run, measure) for measure in measures))


def answers(run: SeenRun, measure: Measure) -> bool:
    """Return whether a run speaks to a measure, and of the state of the project here."""
    return _speaks(run, measure) and not run.changed and definition_of(measure) in run.measures


def why_not(measure: Measure, evidence: EvidenceSet) -> str:
    """Return why the bundles that speak of a measure do not answer it, or nothing where none does."""
    reasons = [
        f"{handed.path} is stale: {handed.why}" if run.changed else f"{handed.path} was made for another limit"
        for handed in _all(evidence) for run in handed.runs
        if _speaks(run, measure) and not answers(run, measure)
    ]  # fmt: skip
    refused = [f"{one.path} is refused: {one.why}" for one in _all(evidence) if one.standing is Standing.REFUSED]
    return "; ".join([*reasons, *refused])


def _speaks(run: SeenRun, measure: Measure) -> bool:
    """Return whether a run is of the measurement and the kind of device; only the samples' own kind counts."""
    samples = run.run.samples
    return run.run.id == measure.from_ and samples is not None and measure.on in {"any", samples.device.type}


def _fitting(evidence: EvidenceSet) -> Iterator[HandedIn]:
    yield from (one for one in _all(evidence) if one.standing is Standing.FITS)


def _all(evidence: EvidenceSet) -> tuple[HandedIn, ...]:
    bundles = evidence.get(Bundles)
    return bundles.handed_in if bundles else ()
