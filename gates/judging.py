"""What can be said of what was looked at, and the findings that say it, of itself and of each criterion."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from gates.model import Finding, Level, Location, Outcome, Planned, Severity
from gates.task.probes import Concurrent, HotPath, Leak, Scale
from gates.task.task import Criterion, Task
from gates.task.types import Part

About = Callable[..., Finding]


def about_criterion(criterion: Criterion, rule: str, check: str) -> About:
    """Return what makes findings about one check of a criterion, so that each says only what is its own."""
    return partial(Finding, rule=rule, check=check, criterion=criterion.id, level=criterion.level)


@dataclass(frozen=True)
class Said:
    """One conclusion about a training step; `subject` tells it from others of the same aspect."""

    outcome: Outcome
    message: str
    actual: str
    location: Location | None = None
    expected: str = ""
    impact: str = ""
    remediation: str = ""
    subject: str = ""
    level: Level = Level.MUST

    def finding(self, rule: str, check: str, *, name: str, place: Location | None, evidence: str | None) -> Finding:
        """Return the same as a finding about what has a name and a place in the task."""
        warns = self.outcome is Outcome.FAILED and self.level is not Level.MUST
        return Finding(
            rule=rule, check=check, outcome=self.outcome, level=self.level,
            message=self.message, location=self.location or place, subject=f"{name} {self.subject}".strip(),
            expected=self.expected, actual=self.actual, impact=self.impact, remediation=self.remediation,
            evidence=evidence, **({"severity": Severity.MEDIUM} if warns else {}),
        )  # fmt: skip


def in_the_way(about: About, found: Sequence[Finding], *, name: str, before: str = "") -> Finding | None:
    """Return, on a criterion, the first of the findings that must hold and failed, or else is unknown."""
    for outcome in (Outcome.FAILED, Outcome.UNKNOWN):
        for one in found:
            if one.outcome is outcome and one.level is Level.MUST:
                return about(
                    outcome=outcome, location=one.location, subject=name, expected=one.expected, actual=one.actual,
                    message=f"{before}{one.message}", impact=one.impact, remediation=one.remediation,
                    evidence=one.evidence,
                )  # fmt: skip
    return None


def unseen(why: str, *, needed: bool) -> Said:
    """Say that something could not be seen; that leaves a verdict open only where it is needed."""
    return Said(
        Outcome.UNKNOWN, f"Not seen: {why}.", "not seen", level=Level.MUST if needed else Level.ADVISORY,
        remediation="Make the training step show it, on a CPU." if needed else "",
    )  # fmt: skip


def absent(why: str, *, needed: bool) -> Said:
    """Say that there is nothing to see, which is a failure where it is needed."""
    if needed:
        return Said(
            Outcome.FAILED, f"{why[0].upper()}{why[1:]}.", "absent", expected="what the training step 'needs'",
            impact="What the training step is to show does not happen in it.",
            remediation="Mend the training step, or take this out of its 'needs'.",
        )  # fmt: skip
    return Said(Outcome.NOT_APPLICABLE, f"{why[0].upper()}{why[1:]}.", "nothing to see", level=Level.ADVISORY)


def for_criteria(task: Task, part: Part, check: str, words: str) -> Iterator[Planned]:
    """Plan a check for each criterion that a part stands for, titled by its id and some words."""
    for criterion in task.criteria_of(part):
        name = criterion.id
        yield Planned(id=f"{check}:{name}", title=f"{name}{words}", level=criterion.level, criterion=name)


Standing = Concurrent | HotPath | Leak | Scale
LONGEST = 600


def checks(
    task: Task, one: Standing, check: str, title: str, of_criterion: str, *, level: Level = Level.MUST,
    binds: bool = True,
) -> Iterator[Planned]:  # fmt: skip
    """Plan the check itself, and one for each criterion that it binds, which is titled by what it asks."""
    yield Planned(id=check, title=title, level=level)
    if binds:
        yield from for_criteria(task, one, f"{check}:for", f": {of_criterion}")


def findings(
    task: Task, one: Standing, said: Said, *, rule: str, check: str, raw: str | None, where: str = "",
    level: Level = Level.MUST, binds: bool = True,
) -> Iterator[Finding]:  # fmt: skip
    """Say the same of the check itself and of each criterion; `where` is in which of several ways it was looked at."""
    about: list[tuple[str, Level, str | None]] = [(check, level, None)]
    bound = task.criteria_of(one) if binds else []
    about += [(f"{check}:for:{criterion.id}", criterion.level, criterion.id) for criterion in bound]
    subject = f"{one.name}{f' {where}' if where else ''}{f' at {said.subject}' if said.subject else ''}"
    for name, its, criterion_id in about:
        yield Finding(
            rule=rule, check=name, level=its, criterion=criterion_id, outcome=said.outcome,
            subject=subject, message=f"{one.name}{f', {where}' if where else ''}: {said.message}"[:LONGEST],
            location=said.location or task.place(one), expected=said.expected, actual=said.actual,
            impact=said.impact, remediation=said.remediation, evidence=raw,
        )  # fmt: skip
