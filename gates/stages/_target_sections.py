"""What the report of the performance gate tells of its targets: each with its number, and how sure that is."""

from collections.abc import Iterator

from gates.check import EvidenceSet
from gates.measuring.interval import NotEnough, values_of
from gates.report import Section
from gates.stages._measures import Answer, answers_of, level_of
from gates.stages._sparkline import sparkline
from gates.task.task import Criterion, Measure, Task

COLUMNS = ("Criterion", "Measure", "Measured", "Interval", "Level", "n", "Course", "Device", "Outcome")


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell each target with what was measured, how sure that is, and how it went from pair to pair."""
    rows = tuple(_row(criterion, measure, got) for criterion, _, measure, got in answers_of(task, evidence))
    if rows:
        yield Section(title="Targets", columns=COLUMNS, rows=rows)


def _row(criterion: Criterion, measure: Measure, got: Answer) -> tuple[str, ...]:
    name = f"{measure.name}{' (' + level_of(criterion, measure).value + ')' if measure.level else ''}"
    if got.seen is None or got.samples is None:
        return criterion.id, name, "not measured", "-", "-", "-", "-", "-", got.outcome.value
    by = f" (by {got.clock})" if got.clock else ""
    value, _, interval = got.shown(measure).partition(" [")
    elsewhere = f", {got.run.elsewhere}" if got.run and got.run.elsewhere else ""
    return (
        criterion.id, name, value + by, f"[{interval}", f"{got.seen.level:.1%}", str(got.seen.n), _course(measure, got),
        f"{got.samples.device.type}: {got.samples.device.name}{elsewhere}", got.outcome.value,
    )  # fmt: skip


def _course(measure: Measure, got: Answer) -> str:
    """Return how the number went from pair to pair, of this attempt, as it was taken."""
    assert got.samples is not None
    try:
        return sparkline(values_of(measure, got.samples.metrics[got.clock or measure.of]))
    except NotEnough:
        return "-"
