"""The day on which a run takes place."""

from datetime import date
from typing import ClassVar, Self

from gates.check import Evidence, EvidenceSet
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.task.task import Task


def day_of(evidence: EvidenceSet) -> date | None:
    """Return the day of the run, or `None` where nothing hangs on it or none was seen."""
    seen = evidence.get(RunDate)
    return seen.today if seen else None


class RunDate(Evidence):
    """The day on which the run began: waivers end by it, whenever its findings are judged again."""

    lasting: ClassVar[bool] = False
    today: date

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Take the day from the context; a task without waivers does not hang on it."""
        if not task.waivers:
            raise EvidenceUnavailable("the task has no waivers, so its findings do not hang on the day")
        if context.today is None:
            raise EvidenceUnavailable("no day was given, so no waiver works")
        return cls(how="the clock of this machine, in UTC", today=context.today)
