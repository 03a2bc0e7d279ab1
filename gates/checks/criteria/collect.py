"""The criteria of all tasks of the project, which markers in tests may name."""

import ast
from collections.abc import Iterator
from typing import Self

from gates.check import Evidence
from gates.code.sources import Sources
from gates.code.syntax import Definition, SourceModule, Unparsed
from gates.config import Context
from gates.errors import EvidenceUnavailable, UsageError
from gates.evidence.tests.marked import Marker, Marks
from gates.model import Location, Model
from gates.task import loading as spec
from gates.task.task import Task


class Misspelt(Model):
    """A mark that binds nothing: it only looks like a marker, as `pytest.mark.criteria("T1/AC3")`, or names none."""

    written: str
    criterion: str
    location: Location


class KnownCriteria(Evidence):
    """Every criterion as a marker names it, such as `T035/AC3`; `unread` are the task files that could not be read.

    `misspelt` are the marks in the task's tests that name one of them and are no markers.
    """

    names: tuple[str, ...]
    unread: tuple[str, ...] = ()
    misspelt: tuple[Misspelt, ...] = ()

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
            misspelt=tuple(_misspelt(task, names, Sources(context.root))),
        )


def _misspelt(task: Task, names: set[str], sources: Sources) -> Iterator[Misspelt]:
    paths = tuple(dict.fromkeys([*task.tests, *(path for each in task.criteria for path in each.tests)]))
    for path in sources.files(paths):
        try:
            module = sources.module(path, "") if path.suffix == ".py" else None
        except Unparsed:
            continue  # the test run says so
        for marker in _markers(module) if module else ():
            if marker.names == "" or (marker.written and marker.names in names):
                where = Location(path=sources.shown(path), line=marker.line)
                yield Misspelt(written=marker.written or "criterion", criterion=marker.names or "", location=where)


def _markers(module: SourceModule) -> Iterator[Marker]:
    marks = Marks(module)
    for node in ast.walk(module.tree):
        for part in node.decorator_list if isinstance(node, Definition) else ():
            yield from marks.of(part)
