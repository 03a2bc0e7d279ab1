"""What the report of the performance gate tells beside its findings."""

from collections.abc import Iterator

from gates.deciding.outlook import pairs_needed, smallest_effect
from gates.evidence.kind import EvidenceSet
from gates.evidence.measurements import MeasurementRun, Measurements, command
from gates.interval import METHOD
from gates.measuring.fitness import CPU_TIME, TIMES, noise
from gates.model import Outcome, Section
from gates.stages._measures import Answer, answers_of, level_of, targets_of
from gates.task import Criterion, Measure, Task

_LOOKED = (
    " Where the gate timed the arms itself it looked while the pairs came in; the ranks of the interval at each look "
    "keep the error of all looks and all attempts together, and the interval is widened to hold Student's interval "
    "over the restarts. Failures of several required targets share the error by Holm's procedure."
)


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell each target with what was measured, then where and how it was measured, then the samples."""
    yield Section(
        title="Targets",
        text="" if any(True for _ in targets_of(task)) else "The task sets none.",
        columns=("Criterion", "Measure", "Measured", "Interval", "n", "Device", "Outcome"),
        rows=tuple(_target_row(c, m, got) for c, _, m, got in answers_of(task, evidence)),
    )
    measurements = evidence.get(Measurements)
    for run in measurements.runs if measurements else ():
        yield _describe_run(task, run)
        if run.samples:
            yield _sample_table(run)
    if measurements is None:
        yield Section(title="Measurements", text=f"None: {evidence.why_missing(Measurements)}.")
    yield from _outlooks(task, evidence)
    yield Section(
        title="Method",
        text=f"Each number is the {METHOD}: distribution-free, exact coverage of at least 95 %, never fewer than 6 "
        "samples. A target is met when the whole interval lies on its good side, missed when it lies on the other."
        + (_LOOKED if any(run.taken for run in (measurements.runs if measurements else ())) else ""),
    )


def _outlooks(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell of what the gate timed itself how small an effect it could have seen, and what would settle what is open."""
    rows = []
    for criterion, _, measure, got in answers_of(task, evidence):
        if got.seen and got.run and got.run.taken and got.outcome is not Outcome.NOT_APPLICABLE:
            by = got.clock or measure.of
            floor = noise(got.run.taken, by) if by in {*TIMES, *CPU_TIME.values()} else None
            needed = "settled" if got.outcome is not Outcome.UNKNOWN else str(pairs_needed(got.seen, measure) or "-")
            rows.append((
                criterion.id, measure.name, f"{smallest_effect(got.seen, measure):.2%}",
                f"{floor.floor:.2%}" if floor else "-", f"{got.seen.level:.1%}", needed,
            ))  # fmt: skip
    if rows:
        columns = ("Criterion", "Measure", "Smallest effect seen", "Noise floor", "Level", "Pairs to settle it")
        yield Section(title="What could be seen", columns=columns, rows=tuple(rows))


def _target_row(criterion: Criterion, measure: Measure, got: Answer) -> tuple[str, ...]:
    name = f"{measure.name}{' (' + level_of(criterion, measure).value + ')' if measure.level else ''}"
    if got.seen is None or got.samples is None:
        return criterion.id, name, "not measured", "-", "-", "-", got.outcome.value
    interval = f"[{got.seen.low:.4g}, {got.seen.high:.4g}] at {got.seen.level:.1%}"
    device = f"{got.samples.device.type}: {got.samples.device.name}"
    return criterion.id, name, f"{got.seen.value:.4g}", interval, str(got.seen.n), device, got.outcome.value


def _describe_run(task: Task, run: MeasurementRun) -> Section:
    title = f"Measurement {run.id} on {run.device}"
    asked = " ".join(command(task, run.id, run.device))
    if run.samples is None:
        return Section(title=title, text=f"No samples: {run.problem}.", facts=(("Command", asked),))
    samples = run.samples
    facts = [("Command", asked), ("Device", f"{samples.device.type}: {samples.device.name}"),
             ("Capabilities", ", ".join(samples.device.capabilities) or "none stated"), ("Timing", samples.timing),
             *((f"Environment: {name}", value) for name, value in sorted(samples.environment.items())),
             *((f"Setting: {name}", value) for name, value in sorted(samples.settings.items()))]  # fmt: skip
    return Section(title=title, facts=tuple(facts))


def _sample_table(run: MeasurementRun) -> Section:
    assert run.samples is not None
    rows = []
    for name, metric in sorted(run.samples.metrics.items()):
        for arm, values in sorted(metric.arms.items()):
            ordered = sorted(values)
            middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
            numbers = (f"{ordered[0]:.4g}", f"{middle:.4g}", f"{ordered[-1]:.4g}")
            rows.append((name, metric.unit, arm, str(len(values)), *numbers))
    columns = ("Metric", "Unit", "Arm", "Samples", "Least", "Median", "Most")
    return Section(title=f"Samples of {run.id} on {run.device}", columns=columns, rows=tuple(rows))
