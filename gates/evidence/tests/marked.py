"""The tests of one file as they are written, with the criteria that markers give them, and those that never ran."""

import ast
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from gates.code.sources import Sources
from gates.code.syntax import SourceModule, Unparsed, live_statements
from gates.config import Context
from gates.evidence.tests.test_records import Event, LeftOut, Out
from gates.model import Location, Model
from gates.project.files import files_of, is_test_file
from gates.task.task import Task

MARKER = "pytest.mark.criterion"
ID = "id"  # what the marker's one parameter is called
MOST_HOPS = 3
MARKS = ("pytest.mark.", "mark.")
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Marker(Model):
    """A criterion that a marker names, such as `T035/AC3`; `None` where it is not written as plain text."""

    names: str | None
    line: int


class WrittenTest(Model):
    """A test function as it is written, its node id without parameters, and the criteria that markers give it.

    `promise` says that its body does nothing but say that others are to write it. `sure` says that no other statement
    of its file could keep pytest from it, or put another in its place; `hidden`, that the same name is defined below.
    """

    id: str
    location: Location
    head: int
    markers: tuple[Marker, ...] = ()
    promise: bool = False
    sure: bool = True
    hidden: bool = False

    @property
    def chain(self) -> tuple[str, ...]:
        """Return the names of its classes, and its own."""
        return tuple(self.id.split("::")[1:])


def written_in(module: SourceModule, functions: Sequence[str] = ("test",)) -> Iterator[WrittenTest]:
    """Yield the tests of a file, functions whose names pytest takes for tests."""
    block = _Block(module, functions, {}, module.path)
    return block.tests(module.tree.body, (), sure=True, hidden=False)


class _Block:
    """Reads the tests of one file, and their markers, through the names that the file gives these."""

    def __init__(self, module: SourceModule, functions: Sequence[str], named: dict[str, ast.expr], owner: str) -> None:
        self._module = module
        self._functions = functions
        self._named = named
        self._owner = owner

    def tests(
        self, body: list[ast.stmt], markers: tuple[Marker, ...], *, sure: bool, hidden: bool
    ) -> Iterator[WrittenTest]:
        """Yield the tests of a block, whose owner has some markers."""
        live = list(live_statements(body))
        given = [(name, value) for node in live if (value := _value(node)) for name in _bound(node)]
        self._named = self._named | {name: value for name, value in given if _is_mark(value)}
        markers = (*markers, *(mark for name, value in given if name == "pytestmark" for mark in self._of(value)))
        top = set(body)
        last = {node.name: node for node in body if isinstance(node, Function | ast.ClassDef)}
        bound = {name for node in live for name in _bound(node)}
        sure = sure and "__test__" not in bound
        for node in live:
            if not isinstance(node, Function | ast.ClassDef):
                continue
            again = node in top and last[node.name] is not node
            certain = sure and node in top and node.name not in bound and all(map(_marks, node.decorator_list))
            own = (*markers, *(marker for part in node.decorator_list for marker in self._of(part)))
            if isinstance(node, ast.ClassDef):
                certain = certain and not node.bases and not node.keywords
                inner = _Block(self._module, self._functions, self._named, f"{self._owner}::{node.name}")
                yield from inner.tests(node.body, own, sure=certain, hidden=hidden or again)
            elif any(_fits(node.name, pattern) for pattern in self._functions) and not _is_fixture(node):
                first = min([node.lineno, *(part.lineno for part in node.decorator_list)])
                yield WrittenTest(
                    id=f"{self._owner}::{node.name}",
                    location=Location(path=self._module.path, line=first, last_line=node.end_lineno),
                    head=node.lineno,
                    markers=own,
                    promise=_is_promise(node),
                    sure=certain,
                    hidden=certain and (hidden or again),
                )

    def _of(self, node: ast.expr, hops: int = MOST_HOPS) -> Iterator[Marker]:
        """Yield the markers in a decorator, or in what `pytestmark` is set to; those of `pytest.param` too."""
        called: set[ast.AST] = set()
        for inner in ast.walk(node):
            if inner in called:
                continue
            if isinstance(inner, ast.Call):
                called |= set(ast.walk(inner.func))
                yield from self._called(inner)
            elif isinstance(inner, ast.Name) and inner.id in self._named and hops:
                yield from self._of(self._named[inner.id], hops - 1)
            elif isinstance(inner, ast.Attribute) and self._module.dotted(inner) == MARKER:
                yield Marker(names="", line=inner.lineno)

    def _called(self, call: ast.Call) -> Iterator[Marker]:
        """Yield what names criteria in a marker: what it is given by place, and as `id`; a `reason` names none."""
        func = self._named.get(call.func.id, call.func) if isinstance(call.func, ast.Name) else call.func
        if self._module.dotted(func) == MARKER:
            named_by = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg in {ID, None})]
            for arg in named_by:
                value = arg.value if isinstance(arg, ast.Constant) else None
                yield Marker(names=value if isinstance(value, str) else None, line=arg.lineno)
            if not named_by:
                yield Marker(names="", line=call.lineno)


def _bound(node: ast.stmt) -> list[str]:
    """Return the names that a statement gives a value, other than by defining a function or class."""
    if isinstance(node, Function | ast.ClassDef | ast.Delete):
        return []
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    places = [*getattr(node, "targets", ()), getattr(node, "target", None)]
    inner = [each for place in places if place is not None for each in ast.walk(place)]
    return [str(getattr(each, "id", getattr(each, "attr", ""))) for each in inner]


def _value(node: ast.stmt) -> ast.expr | None:
    return node.value if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) else None


def _is_mark(value: ast.expr) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr == "mark" for each in ast.walk(value))


def _marks(decorator: ast.expr) -> bool:
    return ast.unparse(decorator).startswith(MARKS)


def _is_fixture(node: Function) -> bool:
    return any("fixture" in ast.unparse(decorator) for decorator in node.decorator_list)


def _is_promise(node: Function) -> bool:
    """Return whether a body is left to those that override it."""
    last = node.body[-1]
    if not isinstance(last, ast.Raise) or len(node.body) > 2:
        return False
    return last.exc is not None and "NotImplementedError" in ast.unparse(last.exc)


def _fits(name: str, pattern: str) -> bool:
    return name.startswith(pattern) or (any(c in pattern for c in "*?[") and fnmatch(name, pattern))


class Written:
    """The tests that the files of a task hold, beside those that pytest told of."""

    def __init__(self, told: Mapping[str, list[Event]], context: Context, task: Task) -> None:
        start = next(iter(told["start"]), {})
        self._functions = ("test_*", *start.get("functions", ()))
        self._classes = ("Test*", *start.get("classes", ()))
        self._files: Sequence[str] = start.get("files", ())
        self._context = context
        self._criteria = {f"{task.id}/{criterion.id}" for criterion in task.criteria}
        self._paths = files_of(tuple(path for path in task.tests if "::" not in path), context.root)
        self._told = [*told["planned"], *told["deselected"]]
        self._failed = {event["id"].split("::")[0] for event in told["collect_failed"]}
        self._skipped = {event["id"]: event["message"] for event in told["collect_skipped"]}
        self._heard = {event["id"].split("::")[0] for events in told.values() for event in events if event.get("id")}

    def never_collected(self) -> Iterator[LeftOut]:
        """Yield the files that look like tests of the task and of which pytest never collected anything."""
        for path in [self._context.shown(path) for path in self._paths if is_test_file(path)]:
            if path not in self._heard:
                yield LeftOut(id=path, location=Location(path=path), how=Out.UNCOLLECTED)

    def unplanned(self) -> Iterator[LeftOut]:
        """Yield the tests that pytest did not plan; of a file that it did not read, those that are marked."""
        real, sources = cache(os.path.realpath), Sources(self._context.root)  # asked for each test, and slow
        names = {(real(event["file"]), *event["chain"], event["name"]) for event in self._told}
        lines: dict[str, set[int]] = defaultdict(set)
        for event in self._told:
            lines[real(self._context.root / event["path"])].add(event["line"])
        for path in self._paths if any(event["name"] for event in self._told) else ():
            shown = self._context.shown(path)
            if path.suffix == ".py" and shown not in self._failed:
                with suppress(Unparsed, RecursionError):
                    for test in written_in(sources.module(path, ""), self._functions):
                        planned = (real(path), *test.chain) in names and not test.hidden
                        if not planned and lines[real(path)].isdisjoint(test.location.lines):
                            yield from self._said(test, path, shown)

    def _said(self, test: WrittenTest, path: Path, shown: str) -> Iterator[LeftOut]:
        criteria = tuple(dict.fromkeys(m.names for m in test.markers if m.names in self._criteria))
        stray = next((name for name in test.chain[:-1] if not any(_fits(name, p) for p in self._classes)), "")
        read = shown in self._heard and shown not in self._skipped
        if not read:
            why = f"skipped as a whole: {self._skipped[shown]}" if shown in self._skipped else "never collected"
        elif stray:
            why = f"pytest takes no class called {stray!r} for tests"
        else:
            why = "the same name is defined again below it" if test.hidden else "pytest took it for none"
        counts = read and self._is_test_file(path) and (not stray or "test" in stray.lower())
        if counts or (criteria and not test.promise):
            where, sure = Location(path=shown, line=test.head), counts and test.sure and not stray
            facts = {"why": why, "criteria": criteria, "doubted": sure}
            yield LeftOut(id=test.id, location=where, how=Out.UNPLANNED, **facts)

    def _is_test_file(self, path: Path) -> bool:
        return any(fnmatch(path.name, p) or ("/" in p and fnmatch(path.as_posix(), f"*/{p}")) for p in self._files)
