"""The matrix: criteria with their code and tests, tests and code without a criterion, and the gaps between them."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import StrEnum

from gates.evidence.tests.marked import WrittenTest
from gates.model import Level, Location, Model
from gates.task.task import Spot
from gates.task.yaml_source import did_you_mean

FIX = "Fix the file."
AT_LINE = re.compile(r":(?P<line>[1-9][0-9]*)(?::[0-9]+)?: ")


class WrittenFunction(Model):
    """A public function or method with a body of its own."""

    name: str
    location: Location


class FileFacts(Model):
    """The tests and public functions of a file; `problem` says why it could not be read.

    `heirs` are the classes that extend another of the project's, whose tests are not looked for there.
    """

    tests: tuple[WrittenTest, ...] = ()
    heirs: tuple[str, ...] = ()
    functions: tuple[WrittenFunction, ...] = ()
    problem: str = ""


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


class Row(Model):
    """A criterion with the tests that stand for it by path, node id or marker."""

    task: str
    criterion: CriterionTrace
    tests: tuple[WrittenTest, ...] = ()


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

    def by_task(self) -> dict[str, list[Row]]:
        """Return the rows of each task, by its id."""
        found: dict[str, list[Row]] = {task.id: [] for task in self.tasks}
        for row in self.rows:
            found[row.task].append(row)
        return found


class Written:
    """The tests of all files, found by path and by marker."""

    def __init__(self, facts: dict[str, FileFacts]) -> None:
        self._heirs = sorted(name for each in facts.values() for name in each.heirs)
        self._tests = sorted((test for each in facts.values() for test in each.tests), key=lambda test: test.id)
        self._ids = [test.id for test in self._tests]
        self._marked: dict[str, list[WrittenTest]] = defaultdict(list)
        for test in self._tests:
            for marker in test.markers:
                self._marked[marker.names or ""].append(test)

    def under(self, path: str) -> list[WrittenTest]:
        """Return the tests in a folder, a file or a class, or the one of a node id; parameters are left aside."""
        path = path.split("[")[0].rstrip("/")
        found = [test for test in self._from(path) if test.id == path]
        return found + [test for sign in ("/", "::") for test in self._from(path + sign)]

    def heir(self, path: str) -> str:
        """Return a class that a path speaks of and that has tests of another class perhaps, or nothing."""
        name = path.split("[")[0].rstrip("/")
        return next((one for one in self._heirs if _is_under(one, name) or _is_under(name, one)), "")

    def marked(self, criterion: str) -> list[WrittenTest]:
        """Return the tests whose markers name a criterion."""
        return self._marked.get(criterion, [])

    def _from(self, start: str) -> Iterator[WrittenTest]:
        for number in range(bisect_left(self._ids, start), len(self._ids)):
            if not self._ids[number].startswith(start):
                return
            yield self._tests[number]


def _is_under(name: str, path: str) -> bool:
    return name == path or name.startswith((f"{path}/", f"{path}::"))


def join(
    tasks: tuple[TaskTrace, ...],
    tests: dict[str, FileFacts],
    code: dict[str, FileFacts],
    criteria: set[str],
) -> Matrix:
    """Join tasks with the tests and functions that are written; `criteria` are the ids that there are, `T035/AC3`."""
    written = Written(tests)
    rows = tuple(_row(task, criterion, written) for task in tasks for criterion in task.criteria)
    bound = {test.id for row in rows for test in row.tests}
    every = [test for facts in tests.values() for test in facts.tests]
    functions = [function for facts in code.values() for function in facts.functions]
    gaps = [gap for row in rows for gap in _gaps(row, written)]
    return Matrix(
        tasks=tasks,
        rows=rows,
        gaps=(*gaps, *_loose_markers(every, criteria), *_unread(tests, code)),
        loose_tests=tuple(test for test in every if test.id not in bound and not test.markers),
        loose_code=tuple(_without_criterion(functions, rows)),
        tests=len(every),
        functions=len(functions),
    )


def _row(task: TaskTrace, criterion: CriterionTrace, written: Written) -> Row:
    found = [test for path in criterion.tests for test in written.under(path)]
    found += written.marked(f"{task.id}/{criterion.id}")
    return Row(task=task.id, criterion=criterion, tests=tuple({test.id: test for test in found}.values()))


def gap(kind: Kind, criterion: str, message: str, location: Location | None, remediation: str) -> Gap:
    """Return something that the matrix lacks."""
    return Gap(kind=kind, criterion=criterion, message=message, location=location, remediation=remediation)


def _gaps(row: Row, written: Written) -> Iterator[Gap]:
    criterion, place = row.criterion, row.criterion.asked_at
    name = f"{row.task}/{criterion.id}"
    for binding in criterion.code:
        if not binding.problem or (binding.location is None and binding.name.startswith("rule ")):
            continue
        kind, fix = (Kind.DEAD, "Implement it, or fix the binding.") if binding.checked else (Kind.UNREAD, FIX)
        yield gap(kind, name, f"{binding.name}: {binding.problem}", binding.location or binding.asked_at, fix)
    for path in criterion.tests:
        if not written.under(path) and (heir := written.heir(path)):
            message = f"{path} names no test, unless {heir} has it from a class that it extends"
            yield gap(Kind.UNREAD, name, message, place, "See with `gates run`.")
        elif not written.under(path):
            yield gap(Kind.DEAD, name, f"{path} names no test", place, "Write the test, or fix the reference.")
    if criterion.level is not Level.MUST:
        return
    if not criterion.code:
        fix = "Name the symbols that implement it under 'code'."
        yield gap(Kind.MISSING, name, "no code is bound to it", place, fix)
    others = (*criterion.measures, *criterion.entry_points, *criterion.calls)
    if not row.tests and not criterion.tests and not others:
        fix = f'Name tests under "tests", or mark them with @pytest.mark.criterion("{name}").'
        yield gap(Kind.MISSING, name, "no test, measure or entry point verifies it", place, fix)


def _loose_markers(tests: Iterable[WrittenTest], criteria: set[str]) -> Iterator[Gap]:
    """Yield the markers that name no criterion of any task."""
    for test in tests:
        for marker in test.markers:
            where, such = Location(path=test.location.path, line=marker.line), "the criterion, such as 'T035/AC3'."
            if marker.names == "":
                yield gap(Kind.DEAD, "", f"a marker of {test.id} names no criterion", where, f"Name {such}")
            elif marker.names is None:
                yield gap(
                    Kind.UNREAD, "", f"a marker of {test.id} is not written as plain text", where, f"Write {such}"
                )
            elif marker.names not in criteria:
                hint = did_you_mean(marker.names, criteria)
                hint = hint if hint.startswith("; did") else ""
                message = f"{test.id} is marked for {marker.names!r}, which does not exist{hint}"
                yield gap(Kind.DEAD, "", message, where, "Fix the marker's id.")


def _unread(*groups: dict[str, FileFacts]) -> Iterator[Gap]:
    problems = {facts.problem: path for group in groups for path, facts in group.items() if facts.problem}
    for problem, path in problems.items():
        place = AT_LINE.match(problem.removeprefix(path))
        line, message = (int(place["line"]), problem.removeprefix(path)[place.end() :]) if place else (None, problem)
        yield gap(Kind.UNREAD, "", message, Location(path=path, line=line), FIX)


def _without_criterion(functions: list[WrittenFunction], rows: tuple[Row, ...]) -> Iterator[WrittenFunction]:
    """Yield the functions of which no criterion's code holds a line."""
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in rows:
        for binding in row.criterion.code:
            if binding.location and binding.location.line:
                place = binding.location
                spans[place.path].append((place.line or 1, place.last_line or place.line or 1))
    for function in functions:
        first, last = function.location.line or 1, function.location.last_line or 1
        if not any(start <= last and first <= end for start, end in spans[function.location.path]):
            yield function
