"""A measure answered from the samples that fit it: on the device asked for, or with the reason why not."""

from collections.abc import Collection, Iterator
from functools import partial

from gates.bundles import definition_of
from gates.check import EvidenceSet
from gates.checks.measures.collect import Regressions
from gates.evidence.bundles import Bundles, HandedIn, SeenRun
from gates.evidence.measurements import Measurements
from gates.measuring.answers import ALPHA, Answer, answered, correct, outcome
from gates.measuring.interval import Estimate, compare
from gates.measuring.taken import MeasurementRun
from gates.model import Level, Outcome
from gates.task.task import Criterion, Measure, Task

SHARED = "it misses the target alone, but not with the error shared by all criteria of the task that may fail"


def targets_of(task: Task) -> Iterator[tuple[Criterion, int, Measure]]:
    """Yield every measure of a task with its criterion and its place there."""
    for criterion in task.criteria:
        yield from ((criterion, i, measure) for i, measure in enumerate(criterion.measures))


def level_of(criterion: Criterion, measure: Measure) -> Level:
    """Return how binding a measure is: its own level, or its criterion's."""
    return measure.level or criterion.level


def answers_of(task: Task, evidence: EvidenceSet) -> Iterator[tuple[Criterion, int, Measure, Answer]]:
    """Yield every measure with its answer; failures that block share the error among them, and alone are none."""
    asked = [*targets_of(task)]
    found = [compared(task, m, evidence) if m.against_base else answer(m, evidence) for _, _, m in asked]
    must = [level_of(criterion, measure) is Level.MUST for criterion, _, measure in asked]
    family = [i for i, got in enumerate(found) if must[i] and got.outcome in {Outcome.PASSED, Outcome.FAILED}]
    judged = [partial(outcome, asked[i][2], found[i].run) for i in family]
    for i, decided in zip(family, correct(judged, ALPHA), strict=True):
        if found[i].outcome is Outcome.FAILED and decided is Outcome.UNKNOWN:
            found[i] = found[i]._replace(outcome=decided, problem=SHARED)
    yield from ((criterion, i, measure, got) for (criterion, i, measure), got in zip(asked, found, strict=True))


def compared(task: Task, measure: Measure, evidence: EvidenceSet) -> Answer:
    """Answer a measure against the base; where nothing is compared, one that equal sides meet asks for nothing."""
    if (seen := evidence.get(Regressions)) is None:
        return Answer(Outcome.UNKNOWN, None, problem=evidence.why_missing(Regressions))
    none = f"{seen.shown} has no file of the implementation: there is nothing to compare with" if seen.is_new else ""
    if not seen.changed:
        none = f"nothing has changed since {seen.shown}: there is nothing to compare"
    if none:
        equal = 1.0 if measure.kind == "ratio" else 0.0
        is_met = compare(Estimate(equal, equal, equal, 1, 0.0), *measure.bound) is Outcome.PASSED
        return Answer(Outcome.NOT_APPLICABLE if is_met else Outcome.UNKNOWN, None, problem=none)
    run = seen.of(task, measure)
    return answered(measure, run, run.problem if run else seen.problem)


def answer(measure: Measure, evidence: EvidenceSet) -> Answer:
    """Answer a measure by itself: by what was measured here, and by the bundles of other machines that fit."""
    run, problem = _run_for(measure, evidence)
    told = answered(measure, run, problem)
    if others := [answered(measure, other) for other in from_elsewhere([measure], evidence)]:
        return _merged(measure, [told, *others])
    if told.seen:
        return told
    return told._replace(problem="; ".join(filter(None, (told.problem, why_not(measure, evidence)))))


def _merged(measure: Measure, told: list[Answer]) -> Answer:
    """Fold what several machines say: one failure fails, others share the error; samples are never put together."""
    order = (Outcome.FAILED, Outcome.PASSED, Outcome.UNKNOWN, Outcome.NOT_APPLICABLE)
    seen_on = [(got, got.run.samples.device.type) for got in told if got.run and got.run.samples]
    told = sorted((got for got, device in seen_on if measure.on in {"any", device}), key=_place, reverse=True)
    each = {_place(got)[1]: got.run for got in told}
    failing = [got for got in told if got.outcome is Outcome.FAILED]
    shared = [answered(measure, run, alpha=ALPHA / len(each)) for run in each.values()]
    return min(failing or shared, key=lambda got: (order.index(got.outcome), *_place(got)))


def _place(got: Answer) -> tuple[str, str]:
    assert got.run is not None
    return got.run.elsewhere, got.run.model_dump_json(include={"samples", "taken", "earlier", "ledger_problem"})


def _run_for(measure: Measure, evidence: EvidenceSet) -> tuple[MeasurementRun | None, str]:
    if (measurements := evidence.get(Measurements)) is None:
        return None, evidence.why_missing(Measurements)
    own = [run for run in measurements.runs if run.id == measure.from_]
    fitting = [run for run in own if measure.on in {"any", run.device} or run.device == "any"]
    good = [run for run in fitting if run.samples and measure.on in {"any", run.samples.device.type}]
    run = next(iter((*good, *fitting)), None)
    return (run, run.problem) if run else (None, f"measurement {measure.from_!r} was not run")


def from_elsewhere(measures: Collection[Measure], evidence: EvidenceSet) -> tuple[MeasurementRun, ...]:
    """Return the runs of bundles that answer some of the measures: of its kind of device, made for it, not stale."""
    runs = (run for one in _handed_in(evidence) for run in one.runs)
    return tuple(run.run for run in runs if any(why_silent(run, measure) == "" for measure in measures))


def why_silent(run: SeenRun, measure: Measure) -> str | None:
    """Return why a run does not answer a measure, nothing where it does, `None` where it is of another."""
    samples = run.run.samples
    if run.run.id != measure.from_ or samples is None or measure.on not in {"any", samples.device.type}:
        return None
    return "is stale" if run.changed else "" if definition_of(measure) in run.measures else "was made for another limit"


def why_not(measure: Measure, evidence: EvidenceSet) -> str:
    """Return why the bundles that speak of a measure do not answer it, or nothing where none does."""
    handed_in = _handed_in(evidence)
    silent = [(one, run, why) for one in handed_in for run in one.runs if (why := why_silent(run, measure))]
    reasons = [f"{one.path} {why}{f': {one.why}' if run.changed else ''}" for one, run, why in silent]
    return "; ".join([*reasons, *(f"{one.path} is refused: {one.why}" for one in handed_in if not one.runs)])


def _handed_in(evidence: EvidenceSet) -> tuple[HandedIn, ...]:
    return bundles.handed_in if (bundles := evidence.get(Bundles)) else ()
