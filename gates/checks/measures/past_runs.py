"""Earlier runs of a task on this machine: context for the numbers of today, and nothing that a verdict rests on."""

import statistics
from collections.abc import Iterator
from typing import ClassVar, Self

from gates.check import Evidence, EvidenceSet
from gates.checks.measures.base.collect import Regressions
from gates.context import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.measurements import Measurements
from gates.measuring import machine
from gates.measuring.comparison import CANDIDATE, comparisons_of
from gates.measuring.taken import MeasurementRun
from gates.project import run_log
from gates.project.revision import processor
from gates.project.run_log import LoggedRun, Number
from gates.report import Section
from gates.task.task import Task
from gates.words import sparkline

MOST = 50


class PastRuns(Evidence):
    """The last runs of a task on this machine that measured something, the oldest first."""

    lasting: ClassVar[bool] = False
    machine: str
    runs: tuple[LoggedRun, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Read the project's log of runs."""
        if not comparisons_of(task):  # the report of any other task is the same whenever it is made
            raise EvidenceUnavailable(f"{task.path} names no 'regressions'")
        here = this_machine()
        runs = [one for one in run_log.read(context.root, task.id) if one.machine == here and one.numbers]
        if not runs:
            raise EvidenceUnavailable("no earlier run on this machine measured anything")
        return cls(how=str(run_log.NAME), machine=here, runs=tuple(runs[-MOST:]))


def this_machine() -> str:
    """Return what tells this machine from others: numbers of different ones are not compared."""
    return f"{processor()}; {machine.name()}"


def numbers_of(measurements: Measurements | None, regressions: Regressions | None) -> Iterator[Number]:
    """Yield the median of every arm that was measured here; what a bundle brought is not of here."""
    for run in measurements.runs if measurements else ():
        yield from _numbers(run, run.id, None)
    for one in regressions.runs if regressions else ():
        yield from _numbers(one.run, f"{one.run.id} against the baseline", {CANDIDATE: one.arm})


def _numbers(run: MeasurementRun, name: str, arms: dict[str, str] | None) -> Iterator[Number]:
    if run.samples is None or run.elsewhere:
        return
    for metric_name, metric in sorted(run.samples.metrics.items()):
        for arm, values in metric.arms.items():
            if arms is None or arm in arms:
                shown = f"{metric_name} of {name}/{arms[arm] if arms else arm} on {run.samples.device.name}"
                yield Number(name=shown, value=statistics.median(values), unit=metric.unit, n=len(values))


def describe(_task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell of each number of today what it was in earlier runs on this machine."""
    past = evidence.get(PastRuns)
    if past is None:
        return
    rows = []
    for now in numbers_of(evidence.get(Measurements), evidence.get(Regressions)):
        then = [(run, number.value) for run in past.runs for number in run.numbers if number.name == now.name]
        if then:
            values = [value for _, value in then]
            rows.append((
                now.name, f"{now.value:.4g} {now.unit}", str(len(then)), f"{min(values):.4g}", f"{max(values):.4g}",
                sparkline([*values, now.value]), f"{then[-1][0].revision} on {then[-1][0].at}",
            ))  # fmt: skip
    if rows:
        yield Section(
            title="History",
            text=f"Medians of earlier runs on this machine only ({past.machine}), today's last in the course. "
            "They were taken at other times: no verdict rests on them.",
            columns=("Number", "Now", "Earlier runs", "Least", "Most", "Course", "Last run"), rows=tuple(rows),
        )  # fmt: skip
