"""Collects the matrix of a project from task files, tests and implementation."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gates import garbage_collection
from gates.code.sources import Sources
from gates.code.symbols import Resolver
from gates.code.syntax import SourceModule, Unparsed, live_statements
from gates.config import Settings
from gates.errors import UsageError
from gates.evidence.lines.executed_lines import functions_of
from gates.evidence.tests.marked import written_in
from gates.model import Location
from gates.project.files import is_test_file
from gates.project.what_was_read import loose_paths
from gates.task import loading as spec
from gates.task.measurement import CodeBinding
from gates.task.task import Criterion, Task
from gates.tracing.matrix import (
    CodeTrace,
    CriterionTrace,
    FileFacts,
    Gap,
    Kind,
    Matrix,
    TaskTrace,
    WrittenFunction,
    gap,
    join,
)

if TYPE_CHECKING:
    from gates.evidence.source_tree import PatternTrace


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
        from gates.evidence.source_tree import trace_patterns  # most tasks have none, and need not pay for the engine

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


@dataclass(frozen=True)
class Collected:
    """The matrix, and what is wrong with the task files that could not be read."""

    matrix: Matrix
    broken: tuple[str, ...]


def collect(root: Path, settings: Settings, wanted: Path | None) -> Collected:
    """Trace the task in a file, or all tasks of the project; raise `UsageError` where the one asked for is broken."""
    with garbage_collection.put_off():
        return _collect(root, settings, wanted, _Collector(root))


def _collect(root: Path, settings: Settings, wanted: Path | None, collector: "_Collector") -> Collected:
    traces: dict[Path, TaskTrace] = {}
    files: dict[str, list[str]] = {}
    broken: list[str] = []
    for path in dict.fromkeys([*spec.task_files(root / settings.tasks), *([wanted] if wanted else [])]):
        try:
            found = collector.task(path)
        except UsageError as error:
            if path == wanted:
                raise
            broken.append(str(error))
        else:
            files.setdefault(found.id, []).append(found.path)
            if len(files[found.id]) == 1 or path == wanted:
                traces[path] = found
    broken += [spec.twins(name, paths) for name, paths in files.items() if len(paths) > 1]
    asked = tuple(traces.values()) if wanted is None else (traces[wanted],)
    criteria = {f"{task.id}/{criterion.id}" for task in traces.values() for criterion in task.criteria}
    tests = collector.facts(tuple(dict.fromkeys(path for task in asked for path in task.tests)))
    code = collector.facts(tuple(dict.fromkeys(path for task in asked for path in task.implementation)))
    told = tuple(broken) if wanted is None else ()
    matrix = join(asked, tests, code, criteria)
    gaps = (*loose_names(asked, root, root / settings.rules), *matrix.gaps)
    return Collected(matrix=matrix.model_copy(update={"unread_tasks": len(told), "gaps": gaps}), broken=told)


class _Collector:
    """Reads each file once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._sources = Sources(root)
        self._files: dict[str, FileFacts] = {}

    def task(self, path: Path) -> TaskTrace:
        """Return a task's trace; raise `UsageError` for a file that holds none."""
        return trace(spec.load(path, self._root), self._sources)

    def facts(self, paths: tuple[str, ...]) -> dict[str, FileFacts]:
        """Return the facts of each Python file under some paths."""
        files = {self._sources.shown(path): path for path in self._sources.files(paths) if path.suffix == ".py"}
        return {name: self._of(name, path) for name, path in files.items()}

    def _of(self, name: str, path: Path) -> FileFacts:
        if name not in self._files:
            try:
                self._files[name] = facts_of(self._sources.module(path, ".".join(Path(name).parent.parts)))
            except Unparsed as error:
                self._files[name] = FileFacts(problem=str(error))
            except RecursionError:
                self._files[name] = FileFacts(problem=f"{name}:1: nested too deeply to be read")
        return self._files[name]


UNITTEST = {"unittest.TestCase", "unittest.IsolatedAsyncioTestCase"}
ALONE = {"object", "abc.ABC", "typing.Generic", "typing.Protocol", *UNITTEST}


def facts_of(module: SourceModule) -> FileFacts:
    """Return what a parsed file holds."""
    path = Path(module.path)
    functions = [] if is_test_file(path) or path.stem == "conftest" else functions_of(module)
    return FileFacts(
        tests=tuple(written_in(module)),
        heirs=tuple(_heirs(module, module.tree.body, module.path)),
        functions=tuple(
            WrittenFunction(name=function.name, location=function.location) for function in functions if function.public
        ),
    )


def _heirs(module: SourceModule, body: list[ast.stmt], owner: str) -> Iterator[str]:
    """Yield the classes that may have tests of those that they extend."""
    for node in live_statements(body):
        if isinstance(node, ast.ClassDef):
            name = f"{owner}::{node.name}"
            bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
            yield from [name] if any(module.dotted(base) not in ALONE for base in bases) else []
            yield from _heirs(module, node.body, name)


if TYPE_CHECKING:
    from gates.scan.rule import Rule

RULE = "rule "  # how a binding to a rule begins


def loose_names(tasks: Iterable[TaskTrace], root: Path, rules: Path) -> Iterator[Gap]:
    """Yield a dead reference for each path and each code rule of some tasks that leads nowhere."""
    known: dict[str, Rule] | None = None
    for task in tasks:
        for loose in loose_paths(task.spots, task.path, root):
            fix = "Fix the path, write the file, or take the path out."
            yield gap(Kind.DEAD, task.id, loose.said, loose.location, fix)
        asked = list(_rules(task))
        if asked and known is None:
            known = _known(root, rules)
        for name, criterion, place in asked:
            if problem := _problem(name, known or {}, of_criterion=criterion != task.id):
                yield gap(Kind.DEAD, criterion, problem, place, "Fix the name; `gates explain` shows a rule.")


def _rules(task: TaskTrace) -> Iterator[tuple[str, str, Location]]:
    """Yield each rule that a task asks for, by what asks for it: the task, or one of its criteria."""
    for key, name, line, _ in task.spots:
        if key == "rules":
            yield name, task.id, Location(path=task.path, line=line)
    for criterion in task.criteria:
        for binding in criterion.code:
            if binding.name.startswith(RULE) and binding.location is None:
                yield binding.name.removeprefix(RULE), f"{task.id}/{criterion.id}", binding.asked_at


def _known(root: Path, rules: Path) -> "dict[str, Rule]":
    """Return the shipped rules and the project's own; their examples are tried when they are applied."""
    from gates.scan.loading import SHIPPED, load_folder  # most tasks name none, and need not pay for the engine

    found = load_folder(SHIPPED, SHIPPED.parent.parent)
    return found | load_folder(rules, root) if rules.is_dir() else found


def _problem(name: str, known: "dict[str, Rule]", *, of_criterion: bool) -> str:
    """Return, in words, that there is no rule of a name; a criterion is bound to one rule, never to a tag."""
    from gates.scan.loading import named, unknown

    there = name in known if of_criterion else named(name, known)
    return "" if there else unknown(name, known).partition("; known: ")[0]
