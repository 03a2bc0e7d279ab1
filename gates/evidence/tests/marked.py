"""The tests of one file as they are written, with the criteria that markers give them."""

import ast
import os
from collections.abc import Iterator
from pathlib import Path

from gates.code.sources import Sources
from gates.code.syntax import SourceModule, Unparsed, live_statements
from gates.config import Context
from gates.evidence.tests.test_records import ELSEWHERE, Event, Unrun
from gates.model import Location, Model
from gates.project.files import is_aside
from gates.task.task import Task

MARKER = "pytest.mark.criterion"
ID = "id"  # what the marker's one parameter is called
MOST_HOPS = 3


class Marker(Model):
    """A criterion that a marker names, such as `T035/AC3`; `None` where it is not written as plain text."""

    names: str | None
    line: int


class Marks:
    """Reads the markers of one file, through the names that the file gives them."""

    def __init__(self, module: SourceModule) -> None:
        self._module = module
        self._named = {
            target.id: node.value
            for node in live_statements(module.tree.body)
            if isinstance(node, ast.Assign) and any(_is_mark(inner) for inner in ast.walk(node.value))
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    def of(self, node: ast.expr, hops: int = MOST_HOPS) -> Iterator[Marker]:
        """Yield the markers in a decorator, or in what `pytestmark` is set to."""
        called: set[ast.AST] = set()
        for inner in ast.walk(node):
            if inner in called:
                continue
            if isinstance(inner, ast.Call):
                called |= set(ast.walk(inner.func))
                yield from self._called(inner)
            elif isinstance(inner, ast.Name) and inner.id in self._named and hops:
                yield from self.of(self._named[inner.id], hops - 1)
            elif isinstance(inner, ast.Attribute) and self._module.dotted(inner) == MARKER:
                yield Marker(names="", line=inner.lineno)

    def _called(self, call: ast.Call) -> Iterator[Marker]:
        func = call.func
        meant = self._named.get(func.id, func) if isinstance(func, ast.Name) else func
        named = self._module.dotted(meant) or ""
        if named == MARKER:
            named_by = criteria_of(call)
            for arg in named_by:
                value = arg.value if isinstance(arg, ast.Constant) else None
                yield Marker(names=value if isinstance(value, str) else None, line=arg.lineno)
            if not named_by:
                yield Marker(names="", line=call.lineno)


def criteria_of(call: ast.Call) -> list[ast.expr]:
    """Return what names criteria in a marker: what it is given by place, and as `id`; a `reason` names none."""
    return [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg in {ID, None})]


def _is_mark(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "mark"


Function = ast.FunctionDef | ast.AsyncFunctionDef


class WrittenTest(Model):
    """A test function as it is written, its node id without parameters, and the criteria that markers give it.

    `promise` says that its body does nothing but say that others are to write it.
    """

    id: str
    location: Location
    markers: tuple[Marker, ...] = ()
    promise: bool = False


def written_in(module: SourceModule) -> Iterator[WrittenTest]:
    """Yield the tests of a file."""
    marks = Marks(module)
    yield from _tests(module, marks, module.tree.body, module.path, _of_block(marks, module.tree.body))


def _of_decorators(marks: Marks, node: Function | ast.ClassDef) -> tuple[Marker, ...]:
    """Return the markers of a definition, those of single parameters (`pytest.param(marks=...)`) too."""
    return tuple(marker for part in node.decorator_list for marker in marks.of(part))


def _of_block(marks: Marks, body: list[ast.stmt]) -> tuple[Marker, ...]:
    """Return the markers that `pytestmark` gives to a whole module or class."""
    return tuple(
        marker
        for node in live_statements(body)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and target.id == "pytestmark"
        for marker in marks.of(node.value)
    )


def _tests(
    module: SourceModule, marks: Marks, body: list[ast.stmt], owner: str, markers: tuple[Marker, ...]
) -> Iterator[WrittenTest]:
    for node in live_statements(body):
        if isinstance(node, ast.ClassDef):
            own = (*markers, *_of_decorators(marks, node), *_of_block(marks, node.body))
            yield from _tests(module, marks, node.body, f"{owner}::{node.name}", own)
        elif isinstance(node, Function) and node.name.startswith("test"):
            first = min([node.lineno, *(part.lineno for part in node.decorator_list)])
            place = Location(path=module.path, line=first, last_line=node.end_lineno)
            own = (*markers, *_of_decorators(marks, node))
            yield WrittenTest(id=f"{owner}::{node.name}", location=place, markers=own, promise=_is_promise(node))


def _is_promise(node: Function) -> bool:
    """Return whether a body is left to those that override it."""
    last = node.body[-1]
    if not isinstance(last, ast.Raise) or len(node.body) > 2:
        return False
    return last.exc is not None and "NotImplementedError" in ast.unparse(last.exc)


WORD = b"criterion"


def unrun(events: list[Event], context: Context, task: Task) -> Iterator[Unrun]:
    """Yield each that was neither planned nor deselected; where a file could not be read, pytest says so itself."""
    told = [event for event in events if event["event"] in {"planned", "deselected"}]
    names = {(os.path.realpath(event["file"]), *event["chain"], event["name"]) for event in told}
    lines = {(os.path.realpath(context.root / event["path"]), event["line"]) for event in told}
    why = _Reasons(events, context, task)
    sources = Sources(context.root)
    for path in _marking(context.root, task):
        file = os.path.realpath(path)
        for test in _tests_in(path, sources):
            criteria = tuple(dict.fromkeys(_criteria_of(test, task)))
            first, last = test.location.line or 1, test.location.last_line or 1
            if not criteria or test.promise or (file, *test.id.split("::")[1:]) in names:
                continue
            if any((file, line) in lines for line in range(first, last + 1)):
                continue  # another class inherits it
            if reason := why.of(test, path):
                yield Unrun(id=test.id, location=test.location, criteria=criteria, why=reason)


class _Reasons:
    """Why tests did not run, as far as the run tells."""

    def __init__(self, events: list[Event], context: Context, task: Task) -> None:
        self._context = context
        self._task = task
        self._failed = {event["id"].split("::")[0] for event in events if event["event"] == "collect_failed"}
        self._skipped = {event["id"]: event["message"] for event in events if event["event"] == "collect_skipped"}
        self._heard = {event["id"].split("::")[0] for event in events if event.get("id")}

    def of(self, test: WrittenTest, path: Path) -> str:
        """Return why, or nothing where something else says so."""
        shown = self._context.shown(path)
        if shown in self._failed:
            return ""
        if not self._is_asked_for(test.id, path):
            return "" if self._task.only else ELSEWHERE
        if shown in self._skipped:
            return f"skipped as a whole: {self._skipped[shown]}"
        return "never planned" if shown in self._heard else "never collected"

    def _is_asked_for(self, test_id: str, path: Path) -> bool:
        for asked in self._task.tests:
            file, _, name = asked.rstrip("/").partition("::")
            if name and (test_id == asked or test_id.startswith(f"{asked}::")):
                return True
            if not name and path.is_relative_to((self._context.root / file).resolve()):
                return True
            if not name and path.is_relative_to(self._context.root / file):
                return True
        return False


def _criteria_of(test: WrittenTest, task: Task) -> Iterator[str]:
    for marker in test.markers:
        named, _, criterion = (marker.names or "").partition("/")
        if named == task.id and any(one.id == criterion for one in task.criteria):
            yield f"{task.id}/{criterion}"


def _tests_in(path: Path, sources: Sources) -> list[WrittenTest]:
    try:
        return [*written_in(sources.module(path, ""))]
    except (Unparsed, RecursionError):
        return []


def _marking(root: Path, task: Task) -> Iterator[Path]:
    """Yield the Python files of the project that speak of criteria, those of other projects inside of it left out."""
    for here, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not is_aside(name) and not _is_other(Path(here, name), task))
        for name in sorted(names):
            path = Path(here, name)
            if name.endswith(".py") and not is_aside(name) and path.is_file() and WORD in path.read_bytes():
                yield path


def _is_other(folder: Path, task: Task) -> bool:
    """Return whether a folder is an environment, a checkout or a project of its own."""
    return any((folder / name).exists() for name in ("pyvenv.cfg", "conda-meta", ".git", task.path)) or (
        folder.name in {"node_modules", "site-packages"}
    )
