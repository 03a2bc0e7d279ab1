"""One task traced to code: each criterion's bindings with the lines that they come to."""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from gates.code.sources import Sources
from gates.code.symbols import Resolver
from gates.model import Level, Location, Model
from gates.task.bindings import CodeBinding
from gates.task.task import Criterion, Spot, Task

if TYPE_CHECKING:
    from gates.evidence.patterns import PatternTrace


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
    calls: tuple[str, ...] = ()


class TaskTrace(Model):
    """A task with its criteria traced to code, and the paths that it speaks of; `spots` are where these stand."""

    id: str
    title: str
    path: str
    implementation: tuple[str, ...]
    tests: tuple[str, ...]
    criteria: tuple[CriterionTrace, ...]
    spots: tuple[Spot, ...] = ()


def trace(task: Task, sources: Sources) -> TaskTrace:
    """Resolve every binding of a task; nothing is run."""
    code = _Code(task, Resolver(task, sources))
    return TaskTrace(
        id=task.id,
        title=task.title,
        path=task.path,
        implementation=task.implementation,
        tests=tuple(dict.fromkeys((*task.tests, *(path for c in task.criteria for path in c.tests)))),
        criteria=tuple(_criterion(task, criterion, code) for criterion in task.criteria),
        spots=task.spots,
    )


def _criterion(task: Task, criterion: Criterion, code: "_Code") -> CriterionTrace:
    return CriterionTrace(
        id=criterion.id,
        text=criterion.text,
        level=criterion.level,
        asked_at=task.place(criterion),
        code=tuple(found for binding in criterion.code for found in code.traced(binding)),
        tests=criterion.tests,
        measures=tuple(measure.name for measure in criterion.measures),
        entry_points=tuple(entry.name for entry in task.entry_points if criterion.id in entry.criteria),
        calls=tuple(_calls(task, criterion)),
    )


def _calls(task: Task, criterion: Criterion) -> Iterator[str]:
    """Yield what else stands for a criterion: training steps, calculations, and whatever a task may name."""
    for key in type(task).model_fields:
        parts = getattr(task, key)
        for part in parts if isinstance(parts, tuple) and key not in {"entry_points", "criteria"} else ():
            if criterion.id in getattr(part, "criteria", ()):
                name = str(getattr(part, "name", "") or getattr(part, "call", "") or getattr(part, "id", ""))
                yield f"{key.replace('_', ' ')}: {name}"


class _Code:
    """Traces the bindings of one task; what only some need is read when the first one asks."""

    def __init__(self, task: Task, resolver: Resolver) -> None:
        self._task, self._resolver = task, resolver

    @cached_property
    def _patterns(self) -> "tuple[PatternTrace, ...]":
        from gates.evidence.patterns import trace_patterns  # most tasks have none, and need not pay for the engine

        return trace_patterns((b for c in self._task.criteria for b in c.code), self._resolver)

    def traced(self, binding: CodeBinding) -> Iterator[CodeTrace]:
        """Yield each place that a binding comes to, or the reason why there is none."""
        if binding.rule:
            yield self._told(binding, problem="applied by `gates run`", checked=False)
            return
        yield from self._fitting(binding) if binding.pattern else self._named(binding)

    def _named(self, binding: CodeBinding) -> Iterator[CodeTrace]:
        found = self._resolver.trace(binding)
        missing = ", ".join(use.name for use in found.uses if not use.lines)
        problem = found.problem or (f"does not use {missing}" if missing else "")
        yield self._told(binding, found.location, problem, checked=found.checked)

    def _fitting(self, binding: CodeBinding) -> Iterator[CodeTrace]:
        wanted = (binding.pattern, binding.in_, binding.at_least)
        for found in self._patterns:
            if (found.pattern, found.within, found.at_least) != wanted:
                continue
            for place in found.places or (None,):
                yield self._told(binding, place, found.problem, checked=found.checked)
            return

    def _told(
        self, binding: CodeBinding, location: Location | None = None, problem: str = "", *, checked: bool = True
    ) -> CodeTrace:
        place = self._task.place(binding)
        return CodeTrace(name=binding.name, asked_at=place, location=location, problem=problem, checked=checked)
