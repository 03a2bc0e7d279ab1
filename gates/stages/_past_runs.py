"""The part of the performance gate on earlier runs: it judges nothing, it shows how the numbers came to be."""

from collections.abc import Iterator

from gates.check import EvidenceSet
from gates.evidence.measurements import Measurements
from gates.evidence.past_runs import PastRuns, numbers_of
from gates.evidence.regressions import Regressions
from gates.judging.sparkline import sparkline
from gates.model import Finding, Planned, RuleText
from gates.report import Section
from gates.task.task import Task

__all__ = ["RULES", "describe", "judge", "plan"]
RULES: tuple[RuleText, ...] = ()


def plan(_task: Task) -> Iterator[Planned]:
    """Plan nothing: what was measured at other times decides nothing."""
    yield from ()


def judge(_task: Task, _evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge nothing."""
    yield from ()


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
