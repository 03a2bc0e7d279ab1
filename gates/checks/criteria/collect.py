"""The criteria of all tasks of the project, which markers in tests may name."""

from typing import Self

from gates.check import Evidence
from gates.config import Context
from gates.errors import EvidenceUnavailable, UsageError
from gates.task import loading as spec
from gates.task.task import Task


class KnownCriteria(Evidence):
    """Every criterion as a marker names it, such as `T035/AC3`; `unread` are the task files that could not be read."""

    names: tuple[str, ...]
    unread: tuple[str, ...] = ()

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Read the task's own file, all of it, and those beside it."""
        own = context.root / task.path
        if not own.is_file():
            raise EvidenceUnavailable(f"there is no task file {task.path!r}")
        names = {f"{task.id}/{criterion.id}" for criterion in task.criteria}
        unread = []
        for path in spec.task_files(own.parent):
            try:
                other = spec.load(path, context.root)
            except UsageError:
                unread += [context.shown(path)] if path != own else []
                continue
            names |= {f"{other.id}/{criterion.id}" for criterion in other.criteria}
        return cls(
            how=f"the task files in {context.shown(own.parent)}",
            names=tuple(sorted(names)),
            unread=tuple(unread),
        )
