"""What the report tells of regressions beside their findings."""

import statistics
from collections.abc import Iterator

from gates.check import EvidenceSet
from gates.checks.measures.answers import told_by
from gates.checks.measures.base.collect import Regressions
from gates.evidence.measurement_run import MeasurementRun
from gates.measuring.comparison import BASELINE, CANDIDATE, comparisons_of, limits_of, of_regression
from gates.measuring.fitness import noise
from gates.measuring.interval import smallest_effect
from gates.report import Section
from gates.task.measurement import Regression
from gates.task.task import Task
from gates.words import sparkline

MOST = 10
COLUMNS = (
    "Number", "Baseline", "Candidate", "Candidate over baseline", "n", "Warns, blocks above", "Noise floor",
    "Smallest effect seen", "Candidate's course",
)  # fmt: skip


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell what was compared with what, each number on both sides, and how sure that is."""
    if not comparisons_of(task):
        return
    seen = evidence.get(Regressions)
    if seen is None:
        yield Section(title="Regression", text=f"Not compared: {evidence.why_missing(Regressions)}.")
        return
    rows = [_row(one, seen.of(task, of_regression(one)), seen) for one in task.regressions]
    yield Section(
        title="Regression", text=_text(seen), facts=tuple(_facts(seen)),
        columns=COLUMNS,
        rows=tuple(rows) if seen.runs else (),
    )  # fmt: skip


def _text(seen: Regressions) -> str:
    if not seen.changed:
        return f"Nothing has changed since {seen.shown}, so nothing was measured."
    if seen.is_new:
        return f"{seen.shown} has no file of the implementation, so there is nothing to compare with."
    return f"Not compared: {seen.problem}." if seen.problem else ""


def _facts(seen: Regressions) -> Iterator[tuple[str, str]]:
    yield "Baseline", seen.shown
    if seen.changed:
        more = f" and {len(seen.changed) - MOST} more" if len(seen.changed) > MOST else ""
        yield "Changed since", ", ".join(seen.changed[:MOST]) + more
    if seen.lent:
        yield "The benchmark of here, run on both", ", ".join(seen.lent)
    for one in seen.runs:
        if one.run.taken:
            yield f"{one.run.id}/{one.arm}", one.run.ended


def _row(regression: Regression, run: MeasurementRun | None, seen: Regressions) -> tuple[str, ...]:
    limits = f"{regression.warns_at:.0%}, {regression.block_at:.0%}"
    if run is None or run.samples is None:
        problem = run.problem if run else seen.problem or "not measured"
        return regression.name, "-", "-", problem, "-", limits, "-", "-", "-"
    block, _ = limits_of(regression)
    got = told_by(run, block)
    metric = run.samples.metrics.get(got.clock or regression.of)
    floor = noise(run.taken, got.clock or regression.of) if run.taken and not regression.of.endswith("bytes") else None
    sides = [metric.arms[side] for side in (BASELINE, CANDIDATE)] if metric else [(), ()]
    return (
        f"{regression.name}{f' by {got.clock}' if got.clock else ''}",
        *(f"{statistics.median(values):.4g} {metric.unit}" if metric and values else "-" for values in sides),
        str(got.seen) if got.seen else got.problem, str(got.seen.n) if got.seen else "-", limits,
        f"{floor.floor:.1%}" if floor else "-", f"{smallest_effect(got.seen, block):.1%}" if got.seen else "-",
        sparkline(sides[1]),
    )  # fmt: skip
