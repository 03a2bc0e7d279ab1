"""What a task names to be looked at in itself: judged for itself, and for each criterion that it stands for."""

from collections.abc import Iterator

from gates.about import FAILED, UNKNOWN
from gates.judging.said import Said
from gates.model import Finding, Level, Outcome, Planned, Severity
from gates.task.concurrent import Concurrent
from gates.task.leak import Leak
from gates.task.scale import Scale
from gates.task.task import Criterion, Task

Standing = Concurrent | Leak | Scale
LONGEST = 600


def checks(task: Task, one: Standing, check: str, title: str, of_criterion: str) -> Iterator[Planned]:
    """Plan the check itself, and one for each criterion, which is titled by what it asks."""
    yield Planned(id=check, title=title)
    for criterion in _criteria(task, one):
        yield Planned(
            id=_named(check, criterion), title=f"{criterion.id}: {of_criterion}", level=criterion.level,
            criterion=criterion.id,
        )  # fmt: skip


def findings(
    task: Task, one: Standing, said: Said, *, rule: str, check: str, raw: str | None, where: str = ""
) -> Iterator[Finding]:
    """Say the same of the check itself and of each criterion; `where` is in which of several ways it was looked at."""
    about: list[tuple[str, Level, str | None]] = [(check, Level.MUST, None)]
    about += [(_named(check, criterion), criterion.level, criterion.id) for criterion in _criteria(task, one)]
    for name, level, criterion_id in about:
        worth = {Outcome.FAILED: FAILED, Outcome.UNKNOWN: UNKNOWN}.get(said.outcome, {})
        yield Finding(
            rule=rule, check=name, level=level, criterion=criterion_id, outcome=said.outcome,
            severity=worth.get(level, Severity.INFO), subject=f"{one.name}{f' {where}' if where else ''}",
            message=f"{one.name}{f', {where}' if where else ''}: {said.message}"[:LONGEST],
            location=said.location or task.place(one), expected=said.expected, actual=said.actual,
            impact=said.impact, remediation=said.remediation, evidence=raw,
        )  # fmt: skip


def _named(check: str, criterion: Criterion) -> str:
    return f"{check}:for:{criterion.id}"


def _criteria(task: Task, one: Standing) -> list[Criterion]:
    return [criterion for criterion in task.criteria if criterion.id in one.criteria]
