"""What the report of the performance gate tells beside its findings."""

from collections.abc import Iterator

from gates.evidence.kind import EvidenceSet
from gates.evidence.measurements import MeasurementRun, Measurements, command
from gates.interval import METHOD
from gates.model import Section
from gates.stages._measures import answer, level_of, targets_of
from gates.task import Criterion, Measure, Task


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell each target with what was measured, then where and how it was measured, then the samples."""
    yield Section(
        title="Targets",
        text="" if any(True for _ in targets_of(task)) else "The task sets none.",
        columns=("Criterion", "Measure", "Measured", "Interval", "n", "Device", "Outcome"),
        rows=tuple(_target_row(c, m, evidence) for c, _, m in targets_of(task)),
    )
    measurements = evidence.get(Measurements)
    for run in measurements.runs if measurements else ():
        yield _describe_run(task, run)
        if run.samples:
            yield _sample_table(run)
    if measurements is None:
        yield Section(title="Measurements", text=f"None: {evidence.why_missing(Measurements)}.")
    yield Section(
        title="Method",
        text=f"Each number is the {METHOD}: distribution-free, exact coverage of at least 95 %, never fewer than 6 "
        "samples. A target is met when the whole interval lies on its good side, missed when it lies on the other.",
    )


def _target_row(criterion: Criterion, measure: Measure, evidence: EvidenceSet) -> tuple[str, ...]:
    got = answer(measure, evidence)
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
