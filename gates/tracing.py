"""The traceability matrix, read from task files, tests and implementation alone: nothing is run.

Criteria with their code and tests, tests and code without a criterion, and the gaps between them.
"""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from gates.code.sources import Sources
from gates.code.symbols import Resolver
from gates.code.syntax import SourceModule, Unparsed, live_statements
from gates.config import Project
from gates.evidence.lines.executed_lines import FunctionLines, functions_of
from gates.evidence.tests.marked import WrittenTest, written_in
from gates.model import Level, Location, Model
from gates.project.files import is_test_file
from gates.project.what_was_read import led_nowhere
from gates.task import loading as spec
from gates.task.measurement import CodeBinding
from gates.task.task import Criterion, EntryPoint, Task
from gates.task.yaml_source import meant

if TYPE_CHECKING:
    from gates.evidence.source_tree import PatternTrace

T = TypeVar("T")


class Code(Model):
    """A binding and one place that it leads to, or why it leads to none."""

    name: str
    location: Location | None = None
    problem: str = ""


class Row(Model):
    """A criterion with its code and the tests that stand for it by path, node id or marker.

    `others` is what else stands for it: a word such as `measure`, and a name.
    """

    task: str
    id: str
    text: str
    level: Level
    code: tuple[Code, ...] = ()
    tests: tuple[WrittenTest, ...] = ()
    others: tuple[tuple[str, str], ...] = ()


class TracedTask(Model):
    """A task and its file."""

    id: str
    title: str
    path: str


class Kind(StrEnum):
    """What a gap is: a reference to nothing, a place that could not be read, or something nobody has bound."""

    DEAD = "dead reference"
    UNREAD = "not checked"
    MISSING = "missing"


class Gap(Model):
    """Something that the matrix lacks, where, and what to do."""

    kind: Kind
    criterion: str = ""
    message: str
    location: Location | None = None
    remediation: str = ""


class Matrix(Model):
    """Everything that can be said of some tasks without running anything."""

    tasks: tuple[TracedTask, ...]
    rows: tuple[Row, ...]
    gaps: tuple[Gap, ...]
    loose_tests: tuple[WrittenTest, ...] = ()
    loose_code: tuple[FunctionLines, ...] = ()
    tests: int = 0
    functions: int = 0
    unread_tasks: int = 0


def collect(project: Project, wanted: str | None) -> tuple[Matrix, list[str]]:
    """Trace a task, or all; return what is wrong with files, and raise it of the task that was asked for."""
    known, broken = spec.load_all(project)
    broken = [] if wanted else broken
    tasks = [spec.of_project(wanted, project)] if wanted else [*{task.id: task for task in known}.values()]
    criteria = {f"{task.id}/{criterion.id}" for task in (*known, *tasks) for criterion in task.criteria}
    sources = Sources(project.root)
    written, unread = _Written.under(tasks, sources)
    functions, more = _read(sources, [path for task in tasks for path in task.implementation], _public)
    traced = [found for task in tasks for found in _traced(task, Resolver(task, sources), written)]
    rows = tuple(row for row, _ in traced)
    gaps = [*_loose_names(tasks, project), *(gap for _, gaps in traced for gap in gaps)]
    bound = {test.id for row in rows for test in row.tests}
    matrix = Matrix(
        tasks=tuple(TracedTask(id=task.id, title=task.title, path=task.path) for task in tasks),
        rows=rows,
        gaps=(*gaps, *_loose_markers(written.tests, criteria), *dict.fromkeys([*unread, *more])),
        loose_tests=tuple(test for test in written.tests if test.id not in bound and not test.markers),
        loose_code=tuple(_without_criterion(functions, rows)),
        tests=len(written.tests),
        functions=len(functions),
        unread_tasks=len(broken),
    )
    return matrix, broken


def _read(
    sources: Sources, paths: Iterable[str], look: Callable[[SourceModule], Iterable[T]]
) -> tuple[list[T], list[Gap]]:
    """Return what there is in the Python files under some paths, and the files that could not be read."""
    found, gaps = list[T](), list[Gap]()
    unread = partial(Gap, kind=Kind.UNREAD, remediation="Fix the file.")
    for path in [path for path in sources.files(tuple(dict.fromkeys(paths))) if path.suffix == ".py"]:
        name = sources.shown(path)
        try:
            found += look(sources.module(path, ".".join(Path(name).parent.parts)))
        except Unparsed as error:
            at, _, message = str(error).removeprefix(f"{name}:").partition(": ")
            gaps.append(unread(message=message, location=Location(path=name, line=int(at.split(":")[0]))))
        except RecursionError:
            gaps.append(unread(message="nested too deeply to be read", location=Location(path=name, line=1)))
    return found, gaps


def _public(module: SourceModule) -> list[FunctionLines]:
    path = Path(module.path)
    is_of_tests = is_test_file(path) or path.stem == "conftest"
    return [] if is_of_tests else [function for function in functions_of(module) if function.public]


ALONE = {"object", "abc.ABC", "typing.Generic", "typing.Protocol"}
ALONE |= {"unittest.TestCase", "unittest.IsolatedAsyncioTestCase"}


def _heirs(module: SourceModule, body: list[ast.stmt], owner: str) -> Iterator[str]:
    """Yield the classes that may have tests of those that they extend."""
    for node in live_statements(body):
        if isinstance(node, ast.ClassDef):
            name = f"{owner}::{node.name}"
            bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
            yield from [name] if any(module.dotted(base) not in ALONE for base in bases) else []
            yield from _heirs(module, node.body, name)


class _Written:
    """The tests that are written, found by path and by marker."""

    def __init__(self, tests: list[WrittenTest], heirs: list[str]) -> None:
        self.tests = tests
        self._heirs = {heir: _place(heir) for heir in heirs}
        self._under: dict[PurePosixPath, list[WrittenTest]] = defaultdict(list)
        self.marked: dict[str, list[WrittenTest]] = defaultdict(list)
        for test in sorted(tests, key=lambda test: test.id):
            place = _place(test.id)
            for each in (place, *place.parents):
                self._under[each].append(test)
            for marker in test.markers:
                self.marked[marker.names or ""].append(test)

    @classmethod
    def under(cls, tasks: Iterable[Task], sources: Sources) -> tuple["_Written", list[Gap]]:
        """Return the tests of some tasks, and the files that could not be read."""
        paths = [path for task in tasks for path in (*task.tests, *(path for c in task.criteria for path in c.tests))]
        tests, unread = _read(sources, paths, written_in)
        heirs, _ = _read(sources, paths, lambda module: _heirs(module, module.tree.body, module.path))
        return cls(tests, heirs), unread

    def at(self, path: str) -> list[WrittenTest]:
        """Return the tests in a folder, a file or a class, or the one of a node id; parameters are left aside."""
        return self._under.get(_place(path), [])

    def heir(self, path: str) -> str:
        """Return a class that a path speaks of and that has tests of another class perhaps, or nothing."""
        meant, heirs = _place(path), self._heirs.items()
        return next((name for name, at in heirs if at.is_relative_to(meant) or meant.is_relative_to(at)), "")


def _place(test: str) -> PurePosixPath:
    """Return a node id as a path, as if a file were the folder of its classes, and these of their tests."""
    return PurePosixPath(test.split("[")[0].replace("::", "/"))


def _traced(task: Task, resolver: Resolver, written: _Written) -> Iterator[tuple[Row, list[Gap]]]:
    """Yield each criterion of a task with its code and its tests, and what it lacks."""
    patterns: tuple[PatternTrace, ...] = ()
    if any(binding.pattern for criterion in task.criteria for binding in criterion.code):
        from gates.evidence.source_tree import trace_patterns  # most tasks have none, and need not pay for the engine

        patterns = trace_patterns((b for c in task.criteria for b in c.code), resolver)
    for criterion in task.criteria:
        found = [test for path in criterion.tests for test in written.at(path)]
        tests = {test.id: test for test in [*found, *written.marked[f"{task.id}/{criterion.id}"]]}
        code = [each for binding in criterion.code for each in _code(task, binding, resolver, patterns)]
        others, gaps = tuple(_others(task, criterion)), [*(gap for _, gap in code if gap), *_gone(criterion, written)]
        gaps += _missing(task, criterion, by_test=bool(tests or criterion.tests or others))
        row = Row(
            task=task.id,
            id=criterion.id,
            text=criterion.text,
            level=criterion.level,
            code=tuple(one for one, _ in code),
            tests=tuple(tests.values()),
            others=others,
        )
        of_it = {"criterion": f"{task.id}/{criterion.id}"}
        yield row, [gap.model_copy(update={"location": gap.location or task.place(criterion), **of_it}) for gap in gaps]


def _code(
    task: Task, binding: CodeBinding, resolver: Resolver, patterns: Iterable["PatternTrace"]
) -> Iterator[tuple[Code, Gap | None]]:
    """Yield each place that a binding leads to, and what is wrong with it."""
    name = binding.name
    if binding.rule:
        yield Code(name=name, problem="applied by `gates run`"), None
        return
    places: tuple[Location | None, ...]
    if binding.pattern:
        wanted = (binding.pattern, binding.in_, binding.at_least)
        found = next(one for one in patterns if (one.pattern, one.within, one.at_least) == wanted)
        places, problem, checked = found.places or (None,), found.problem, found.checked
    else:
        trace = resolver.trace(binding)
        missing = ", ".join(use.name for use in trace.uses if not use.lines)
        problem = trace.problem or (f"does not use {missing}" if missing else "")
        places, checked = (trace.location,), trace.checked
    kind, fix = (Kind.DEAD, "Implement it, or fix the binding.") if checked else (Kind.UNREAD, "Fix the file.")
    for place in places:
        gap = Gap(kind=kind, message=f"{name}: {problem}", location=place or task.place(binding), remediation=fix)
        yield Code(name=name, location=place, problem=problem), gap if problem else None


def _others(task: Task, criterion: Criterion) -> Iterator[tuple[str, str]]:
    """Yield what stands for a criterion beside tests: what it is, and its name."""
    parts = task.shown_by(criterion)
    yield from (("measure", measure.name) for measure in criterion.measures)
    yield from (("entry", part.name) for part in parts if isinstance(part, EntryPoint))
    for part in [part for part in parts if not isinstance(part, EntryPoint)]:
        yield "call", f"{part.key.replace('_', ' ')}: {getattr(part, 'name', '') or getattr(part, 'call', '')}"


def _gone(criterion: Criterion, written: _Written) -> Iterator[Gap]:
    """Yield the paths of a criterion that name no test, as far as can be read."""
    for path in [path for path in criterion.tests if not written.at(path)]:
        if heir := written.heir(path):
            message = f"{path} names no test, unless {heir} has it from a class that it extends"
            yield Gap(kind=Kind.UNREAD, message=message, remediation="See with `gates run`.")
        else:
            fix = "Write the test, or fix the reference."
            yield Gap(kind=Kind.DEAD, message=f"{path} names no test", remediation=fix)


def _missing(task: Task, criterion: Criterion, *, by_test: bool) -> Iterator[Gap]:
    """Yield what nobody has bound to a criterion of level must."""
    if criterion.level is Level.MUST and not criterion.code:
        fix = "Name the symbols that implement it under 'code'."
        yield Gap(kind=Kind.MISSING, message="no code is bound to it", remediation=fix)
    if criterion.level is Level.MUST and not by_test:
        mark = f'@pytest.mark.criterion("{task.id}/{criterion.id}")'
        message, fix = (
            "no test, measure or entry point verifies it",
            f'Name tests under "tests", or mark them with {mark}.',
        )
        yield Gap(kind=Kind.MISSING, message=message, remediation=fix)


def _loose_markers(tests: Iterable[WrittenTest], criteria: set[str]) -> Iterator[Gap]:
    """Yield the markers that name no criterion of any task."""
    for test in tests:
        for marker in test.markers:
            said = partial(Gap, location=Location(path=test.location.path, line=marker.line))
            fix = "the criterion, such as 'T035/AC3'."
            if marker.names is None:
                message = f"a marker of {test.id} is not written as plain text"
                yield said(kind=Kind.UNREAD, message=message, remediation=f"Write {fix}")
            elif not marker.names:
                message = f"a marker of {test.id} names no criterion"
                yield said(kind=Kind.DEAD, message=message, remediation=f"Name {fix}")
            elif marker.names not in criteria:
                hint = meant(marker.names, criteria)
                message = f"{test.id} is marked for {marker.names!r}, which does not exist{hint}"
                yield said(kind=Kind.DEAD, message=message, remediation="Fix the marker's id.")


def _without_criterion(functions: list[FunctionLines], rows: tuple[Row, ...]) -> Iterator[FunctionLines]:
    """Yield the functions of which no criterion's code holds a line."""
    bound: dict[str, list[Location]] = defaultdict(list)
    for place in (binding.location for row in rows for binding in row.code):
        if place and place.line:
            bound[place.path].append(place)
    for function in functions:
        if not any(function.location.meets(place) for place in bound[function.location.path]):
            yield function


def _loose_names(tasks: list[Task], project: Project) -> Iterator[Gap]:
    """Yield a dead reference for each path and each code rule of some tasks that leads nowhere."""
    asked: list[tuple[str, str, Location]] = []
    dead = partial(Gap, kind=Kind.DEAD)
    for task in tasks:
        for loose in led_nowhere(task, project.root):
            message, fix = loose.message.removesuffix("."), loose.remediation
            yield dead(criterion=task.id, message=message, location=loose.location, remediation=fix)
        said = [(name, line) for key, name, line, _ in task.spots if key == "rules"]
        asked += [(name, task.id, Location(path=task.path, line=line)) for name, line in said]
        bound = [(criterion, binding) for criterion in task.criteria for binding in criterion.code]
        asked += [(one.rule, f"{task.id}/{each.id}", task.place(one)) for each, one in bound if one.rule]
    if not asked:
        return
    from gates.scan.loading import SHIPPED, load_folder, named, unknown  # most tasks need not pay for the engine

    known = load_folder(SHIPPED, SHIPPED.parent.parent)  # examples are tried when a rule is applied
    known |= load_folder(project.rules, project.root) if project.rules.is_dir() else {}
    for name, asks, place in asked:
        there = name in known if "/" in asks else named(name, known)  # a criterion is bound to a rule, never to a tag
        if not there:
            problem = unknown(name, known).partition("; known: ")[0]
            fix = "Fix the name; `gates explain` shows a rule."
            yield dead(criterion=asks, message=problem, location=place, remediation=fix)
