"""The traceability matrix, read from task files, tests and implementation alone: nothing is run.

Criteria with their code and tests, tests and code without a criterion, and the gaps between them.
"""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from gates.code.sources import Sources
from gates.code.symbols import Resolver
from gates.code.syntax import SourceModule, Unparsed, live_statements
from gates.config import Settings
from gates.errors import UsageError
from gates.evidence.lines.executed_lines import functions_of
from gates.evidence.tests.marked import WrittenTest, written_in
from gates.model import Level, Location, Model
from gates.project.files import is_test_file
from gates.project.what_was_read import led_nowhere
from gates.task import loading as spec
from gates.task.measurement import CodeBinding
from gates.task.task import Criterion, EntryPoint, Task
from gates.task.yaml_source import did_you_mean

if TYPE_CHECKING:
    from gates.evidence.source_tree import PatternTrace

T = TypeVar("T")


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

    @property
    def shown_otherwise(self) -> bool:
        """Return whether something else than a test stands for it."""
        return bool(self.measures or self.entry_points or self.calls)


class Row(Model):
    """A criterion with the tests that stand for it by path, node id or marker."""

    task: str
    criterion: CriterionTrace
    tests: tuple[WrittenTest, ...] = ()


class TaskTrace(Model):
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
    criterion: str
    message: str
    location: Location | None = None
    remediation: str = ""


class WrittenFunction(Model):
    """A public function or method with a body of its own."""

    name: str
    location: Location


class Matrix(Model):
    """Everything that can be said of some tasks without running anything."""

    tasks: tuple[TaskTrace, ...]
    rows: tuple[Row, ...]
    gaps: tuple[Gap, ...]
    loose_tests: tuple[WrittenTest, ...] = ()
    loose_code: tuple[WrittenFunction, ...] = ()
    tests: int = 0
    functions: int = 0
    unread_tasks: int = 0


def collect(root: Path, settings: Settings, wanted: Path | None) -> tuple[Matrix, list[str]]:
    """Trace the task of a file, or all; return what is wrong with files, and raise it of the one that was asked for."""
    tasks, broken = _tasks(root, settings, wanted)
    asked, told = ([*tasks.values()], broken) if wanted is None else ([tasks[wanted]], [])
    criteria = {f"{task.id}/{criterion.id}" for task in tasks.values() for criterion in task.criteria}
    matrix = _matrix(asked, criteria, Sources(root))
    gaps = (*_loose_names(asked, root, root / settings.rules), *matrix.gaps)
    return matrix.model_copy(update={"unread_tasks": len(told), "gaps": gaps}), told


def _tasks(root: Path, settings: Settings, wanted: Path | None) -> tuple[dict[Path, Task], list[str]]:
    """Return the tasks, of several files with one id the first or the one that is wanted, and what is wrong."""
    tasks: dict[Path, Task] = {}
    files: dict[str, list[str]] = {}
    broken: list[str] = []
    for path in dict.fromkeys([*spec.task_files(root / settings.tasks), *([wanted] if wanted else [])]):
        try:
            found = spec.load(path, root)
        except UsageError as error:
            if path == wanted:
                raise
            broken.append(str(error))
        else:
            files.setdefault(found.id, []).append(found.path)
            if len(files[found.id]) == 1 or path == wanted:
                tasks[path] = found
    return tasks, broken + [spec.twins(name, paths) for name, paths in files.items() if len(paths) > 1]


def _matrix(tasks: list[Task], criteria: set[str], sources: Sources) -> Matrix:
    """Join tasks with the tests and functions that are written; `criteria` are the ids that there are, `T035/AC3`."""
    under = [path for task in tasks for path in (*task.tests, *(path for c in task.criteria for path in c.tests))]
    tests, unread = _read(sources, under, written_in)
    heirs, _ = _read(sources, under, lambda module: _heirs(module, module.tree.body, module.path))
    functions, more = _read(sources, [path for task in tasks for path in task.implementation], _public)
    written = _Written(tests, heirs)
    rows = tuple(row for task in tasks for row in _rows(task, Resolver(task, sources), written))
    bound = {test.id for row in rows for test in row.tests}
    found = [gap for row in rows for gap in _gaps(row, written)]
    return Matrix(
        tasks=tuple(TaskTrace(id=task.id, title=task.title, path=task.path) for task in tasks),
        rows=rows,
        gaps=(*found, *_loose_markers(tests, criteria), *map(_unread, (unread | more).items())),
        loose_tests=tuple(test for test in tests if test.id not in bound and not test.markers),
        loose_code=tuple(_without_criterion(functions, rows)),
        tests=len(tests),
        functions=len(functions),
    )


def _read(
    sources: Sources, paths: Iterable[str], look: Callable[[SourceModule], Iterable[T]]
) -> tuple[list[T], dict[str, str]]:
    """Return what there is in the Python files under some paths, and why a file could not be read."""
    found: list[T] = []
    problems: dict[str, str] = {}
    for path in [path for path in sources.files(tuple(dict.fromkeys(paths))) if path.suffix == ".py"]:
        name = sources.shown(path)
        try:
            found += look(sources.module(path, ".".join(Path(name).parent.parts)))
        except Unparsed as error:
            problems[name] = str(error)
        except RecursionError:
            problems[name] = f"{name}:1: nested too deeply to be read"
    return found, problems


def _public(module: SourceModule) -> Iterator[WrittenFunction]:
    path = Path(module.path)
    for function in () if is_test_file(path) or path.stem == "conftest" else functions_of(module):
        if function.public:
            yield WrittenFunction(name=function.name, location=function.location)


UNITTEST = ("unittest.TestCase", "unittest.IsolatedAsyncioTestCase")
ALONE = {"object", "abc.ABC", "typing.Generic", "typing.Protocol", *UNITTEST}


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

    def __init__(self, tests: Iterable[WrittenTest], heirs: Iterable[str]) -> None:
        self._heirs = {heir: _place(heir) for heir in heirs}
        self._under: dict[PurePosixPath, list[WrittenTest]] = defaultdict(list)
        self.marked: dict[str, list[WrittenTest]] = defaultdict(list)
        for test in sorted(tests, key=lambda test: test.id):
            place = _place(test.id)
            for each in (place, *place.parents):
                self._under[each].append(test)
            for marker in test.markers:
                self.marked[marker.names or ""].append(test)

    def under(self, path: str) -> list[WrittenTest]:
        """Return the tests in a folder, a file or a class, or the one of a node id; parameters are left aside."""
        return self._under.get(_place(path), [])

    def heir(self, path: str) -> str:
        """Return a class that a path speaks of and that has tests of another class perhaps, or nothing."""
        meant, heirs = _place(path), self._heirs.items()
        return next((name for name, at in heirs if at.is_relative_to(meant) or meant.is_relative_to(at)), "")


def _place(test: str) -> PurePosixPath:
    """Return a node id as a path, as if a file were the folder of its classes, and these of their tests."""
    return PurePosixPath(test.split("[")[0].replace("::", "/"))


def _rows(task: Task, resolver: Resolver, written: _Written) -> Iterator[Row]:
    """Yield each criterion of a task with its code and its tests."""
    patterns: tuple[PatternTrace, ...] = ()
    if any(binding.pattern for criterion in task.criteria for binding in criterion.code):
        from gates.evidence.source_tree import trace_patterns  # most tasks have none, and need not pay for the engine

        patterns = trace_patterns((b for c in task.criteria for b in c.code), resolver)
    for criterion in task.criteria:
        found = [test for path in criterion.tests for test in written.under(path)]
        found += written.marked[f"{task.id}/{criterion.id}"]
        tests = {test.id: test for test in found}
        code = [each for binding in criterion.code for each in _traced(task, binding, resolver, patterns)]
        yield Row(task=task.id, criterion=_criterion(task, criterion, code), tests=tuple(tests.values()))


def _criterion(task: Task, criterion: Criterion, code: list[CodeTrace]) -> CriterionTrace:
    others = [part for part in task.shown_by(criterion) if not isinstance(part, EntryPoint)]
    names = [getattr(part, "name", "") or getattr(part, "call", "") for part in others]
    return CriterionTrace(
        id=criterion.id,
        text=criterion.text,
        level=criterion.level,
        asked_at=task.place(criterion),
        code=tuple(code),
        tests=criterion.tests,
        measures=tuple(measure.name for measure in criterion.measures),
        entry_points=tuple(entry.name for entry in task.entry_points if criterion.id in entry.criteria),
        calls=tuple(f"{part.key.replace('_', ' ')}: {name}" for part, name in zip(others, names, strict=True)),
    )


def _traced(
    task: Task, binding: CodeBinding, resolver: Resolver, patterns: Iterable["PatternTrace"]
) -> Iterator[CodeTrace]:
    """Yield each place that a binding comes to, or the reason why there is none."""
    told = CodeTrace(name=binding.name, asked_at=task.place(binding))
    if binding.rule:
        yield told.model_copy(update={"problem": "applied by `gates run`", "checked": False})
    elif binding.pattern:
        wanted = (binding.pattern, binding.in_, binding.at_least)
        found = next(one for one in patterns if (one.pattern, one.within, one.at_least) == wanted)
        for place in found.places or (None,):
            yield told.model_copy(update={"location": place, "problem": found.problem, "checked": found.checked})
    else:
        trace = resolver.trace(binding)
        missing = ", ".join(use.name for use in trace.uses if not use.lines)
        problem = trace.problem or (f"does not use {missing}" if missing else "")
        yield told.model_copy(update={"location": trace.location, "problem": problem, "checked": trace.checked})


def _gap(kind: Kind, criterion: str, message: str, location: Location | None, remediation: str) -> Gap:
    return Gap(kind=kind, criterion=criterion, message=message, location=location, remediation=remediation)


def _gaps(row: Row, written: _Written) -> Iterator[Gap]:
    criterion, place = row.criterion, row.criterion.asked_at
    name = f"{row.task}/{criterion.id}"
    for binding in criterion.code:
        if not binding.problem or (binding.location is None and binding.name.startswith(RULE)):
            continue
        kind, fix = (
            (Kind.DEAD, "Implement it, or fix the binding.") if binding.checked else (Kind.UNREAD, "Fix the file.")
        )
        yield _gap(kind, name, f"{binding.name}: {binding.problem}", binding.location or binding.asked_at, fix)
    for path in [path for path in criterion.tests if not written.under(path)]:
        if heir := written.heir(path):
            message = f"{path} names no test, unless {heir} has it from a class that it extends"
            yield _gap(Kind.UNREAD, name, message, place, "See with `gates run`.")
        else:
            yield _gap(Kind.DEAD, name, f"{path} names no test", place, "Write the test, or fix the reference.")
    must = criterion.level is Level.MUST
    if must and not criterion.code:
        fix = "Name the symbols that implement it under 'code'."
        yield _gap(Kind.MISSING, name, "no code is bound to it", place, fix)
    if must and not (row.tests or criterion.tests or criterion.shown_otherwise):
        fix = f'Name tests under "tests", or mark them with @pytest.mark.criterion("{name}").'
        yield _gap(Kind.MISSING, name, "no test, measure or entry point verifies it", place, fix)


def _loose_markers(tests: Iterable[WrittenTest], criteria: set[str]) -> Iterator[Gap]:
    """Yield the markers that name no criterion of any task."""
    for test in tests:
        for marker in test.markers:
            where, such = Location(path=test.location.path, line=marker.line), "the criterion, such as 'T035/AC3'."
            if marker.names == "":
                yield _gap(Kind.DEAD, "", f"a marker of {test.id} names no criterion", where, f"Name {such}")
            elif marker.names is None:
                message = f"a marker of {test.id} is not written as plain text"
                yield _gap(Kind.UNREAD, "", message, where, f"Write {such}")
            elif marker.names not in criteria:
                hint = did_you_mean(marker.names, criteria)
                message = f"{test.id} is marked for {marker.names!r}, which does not exist"
                message += hint if hint.startswith("; did") else ""
                yield _gap(Kind.DEAD, "", message, where, "Fix the marker's id.")


def _unread(file: tuple[str, str]) -> Gap:
    at, _, message = file[1].removeprefix(f"{file[0]}:").partition(": ")
    return _gap(Kind.UNREAD, "", message, Location(path=file[0], line=int(at.split(":")[0])), "Fix the file.")


def _without_criterion(functions: list[WrittenFunction], rows: tuple[Row, ...]) -> Iterator[WrittenFunction]:
    """Yield the functions of which no criterion's code holds a line."""
    bound: dict[str, list[Location]] = defaultdict(list)
    for place in (binding.location for row in rows for binding in row.criterion.code):
        if place and place.line:
            bound[place.path].append(place)
    for function in functions:
        if not any(function.location.meets(place) for place in bound[function.location.path]):
            yield function


RULE = "rule "  # how a binding to a rule begins


def _loose_names(tasks: list[Task], root: Path, rules: Path) -> Iterator[Gap]:
    """Yield a dead reference for each path and each code rule of some tasks that leads nowhere."""
    asked: list[tuple[str, str, Location]] = []
    for task in tasks:
        for loose in led_nowhere(task, root):
            yield _gap(Kind.DEAD, task.id, loose.message.removesuffix("."), loose.location, loose.remediation)
        said = [(name, line) for key, name, line, _ in task.spots if key == "rules"]
        asked += [(name, task.id, Location(path=task.path, line=line)) for name, line in said]
        bound = [(criterion, binding) for criterion in task.criteria for binding in criterion.code]
        asked += [(one.rule, f"{task.id}/{each.id}", task.place(one)) for each, one in bound if one.rule]
    if not asked:
        return
    from gates.scan.loading import SHIPPED, load_folder, named, unknown  # most tasks need not pay for the engine

    known = load_folder(SHIPPED, SHIPPED.parent.parent)  # examples are tried when a rule is applied
    known |= load_folder(rules, root) if rules.is_dir() else {}
    for name, asks, place in asked:
        there = name in known if "/" in asks else named(name, known)  # a criterion is bound to a rule, never to a tag
        if not there:
            problem = unknown(name, known).partition("; known: ")[0]
            yield _gap(Kind.DEAD, asks, problem, place, "Fix the name; `gates explain` shows a rule.")
