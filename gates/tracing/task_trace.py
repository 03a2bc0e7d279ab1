"""One task traced to code: each criterion's bindings with the lines that they come to."""

from gates.evidence.sources import Sources
from gates.evidence.symbols import Resolver
from gates.model import Level, Location, Model
from gates.task import CodeBinding, Criterion, Task


class CodeTrace(Model):
    """A binding and its lines, or why it has none; `checked` says that it was looked at."""

    name: str
    asked_at: Location
    location: Location | None = None
    problem: str = ""
    checked: bool = True


class CriterionTrace(Model):
    """One criterion as its task file binds it; `tests` are the paths and node ids that it names."""

    id: str
    text: str
    level: Level
    asked_at: Location
    code: tuple[CodeTrace, ...] = ()
    tests: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    entry_points: tuple[str, ...] = ()


class TaskTrace(Model):
    """A task with its criteria traced to code, and the paths that it speaks of."""

    id: str
    title: str
    path: str
    implementation: tuple[str, ...]
    tests: tuple[str, ...]
    criteria: tuple[CriterionTrace, ...]


def trace(task: Task, sources: Sources) -> TaskTrace:
    """Resolve every binding of a task; nothing is run."""
    resolver = Resolver(task, sources)
    return TaskTrace(
        id=task.id,
        title=task.title,
        path=task.path,
        implementation=task.implementation,
        tests=tuple(dict.fromkeys((*task.tests, *(path for c in task.criteria for path in c.tests)))),
        criteria=tuple(_criterion(task, criterion, resolver) for criterion in task.criteria),
    )


def _criterion(task: Task, criterion: Criterion, resolver: Resolver) -> CriterionTrace:
    return CriterionTrace(
        id=criterion.id,
        text=criterion.text,
        level=criterion.level,
        asked_at=task.place(criterion),
        code=tuple(_code(task, binding, resolver) for binding in criterion.code),
        tests=criterion.tests,
        measures=tuple(measure.name for measure in criterion.measures),
        entry_points=tuple(entry.name for entry in task.entry_points if criterion.id in entry.criteria),
    )


def _code(task: Task, binding: CodeBinding, resolver: Resolver) -> CodeTrace:
    place = task.place(binding)
    if not binding.symbol:
        return CodeTrace(name=binding.name, asked_at=place, problem="applied by `gates run`", checked=False)
    found = resolver.trace(binding)
    missing = ", ".join(use.name for use in found.uses if not use.lines)
    problem = found.problem or (f"does not use {missing}" if missing else "")
    return CodeTrace(
        name=binding.name, asked_at=place, location=found.location, problem=problem, checked=found.checked
    )  # fmt: skip
