"""The tests of one file as they are written, with the criteria that markers give them, and those that never ran."""

import ast
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

from gates.code.meanings import Function, is_hollow
from gates.code.sources import Sources
from gates.code.syntax import SourceModule, Unparsed, first_line, live_statements
from gates.config import Context
from gates.evidence.tests.test_records import Event, LeftOut, Out
from gates.model import Location, Model
from gates.project.files import files_of, is_test_file
from gates.task.task import Task

MARKER = "pytest.mark.criterion"
ID = "id"  # what the marker's one parameter is called
MOST_HOPS = 3
MARKS = ("pytest.mark.", "mark.")


class Marker(Model):
    """A criterion that a marker names, such as `T035/AC3`; `None` where it is not written as plain text."""

    names: str | None
    line: int


class WrittenTest(Model):
    """A test function as it is written, its node id without parameters, and the criteria that markers give it.

    It is a `promise` where others are to write its body. It is `sure` that no other statement of its file could keep
    pytest from it, or put another in its place; `hidden` says that the same name is defined below.
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
    whole = WrittenTest(id=module.path, location=Location(path=module.path), head=1)
    return _Block(module, functions).tests(module.tree.body, whole, {})


class _Block(NamedTuple):
    """Reads the tests of one file, and their markers, through the names that the file gives these."""

    module: SourceModule
    functions: Sequence[str]

    def tests(self, body: list[ast.stmt], outer: WrittenTest, named: Mapping[str, ast.expr]) -> Iterator[WrittenTest]:
        """Yield the tests of a block, of which the file or class is told as if it were a test."""
        live = list(live_statements(body))
        giving = [node for node in live if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign)]
        given = [(name, node.value) for node in giving if node.value for name in _bound(node)]
        named = {**named, **{name: value for name, value in given if "mark" in ast.unparse(value)}}
        marks = [marker for name, value in given if name == "pytestmark" for marker in self._of(value, named)]
        bound, top = {name for node in live for name in _bound(node)}, set(body)
        last = {node.name: node for node in body if isinstance(node, Function | ast.ClassDef)}
        for node in [node for node in live if isinstance(node, Function | ast.ClassDef)]:
            again = outer.hidden or (node in top and last[node.name] is not node)
            sure = outer.sure and node in top and bound.isdisjoint({node.name, "__test__"})
            heads = [ast.unparse(part) for part in node.decorator_list]
            sure = sure and all(head.startswith(MARKS) for head in heads)
            one = WrittenTest(
                id=f"{outer.id}::{node.name}",
                location=Location(path=self.module.path, line=first_line(node), last_line=node.end_lineno),
                head=node.lineno,
                markers=(*outer.markers, *marks, *(m for part in node.decorator_list for m in self._of(part, named))),
                promise=is_hollow(node),
                sure=sure,
                hidden=again,
            )
            if isinstance(node, ast.ClassDef):
                alone = sure and not node.bases and not node.keywords
                yield from self.tests(node.body, one.model_copy(update={"sure": alone}), named)
            elif any(_fits(node.name, pattern) for pattern in self.functions) and "fixture" not in " ".join(heads):
                yield one.model_copy(update={"hidden": sure and again})

    def _of(self, node: ast.expr, named: Mapping[str, ast.expr], hops: int = MOST_HOPS) -> Iterator[Marker]:
        """Yield the markers in a decorator, or in what `pytestmark` is set to: what they name by place, and as `id`."""
        nodes = [*ast.walk(node)]
        called = {part for each in nodes if isinstance(each, ast.Call) for part in ast.walk(each.func)}
        for inner in nodes:
            if isinstance(inner, ast.Call):
                func = named.get(inner.func.id, inner.func) if isinstance(inner.func, ast.Name) else inner.func
                given = [*inner.args, *(word.value for word in inner.keywords if word.arg in {ID, None})]
                if self.module.dotted(func) == MARKER:
                    plain = [(arg.value if isinstance(arg, ast.Constant) else None, arg.lineno) for arg in given]
                    for name, line in plain or [("", inner.lineno)]:
                        yield Marker(names=name if isinstance(name, str) else None, line=line)
            elif inner in called:
                continue
            elif isinstance(inner, ast.Name) and inner.id in named and hops:
                yield from self._of(named[inner.id], named, hops - 1)
            elif isinstance(inner, ast.Attribute) and self.module.dotted(inner) == MARKER:
                yield Marker(names="", line=inner.lineno)


def _bound(node: ast.stmt) -> list[str]:
    """Return the names that a statement gives a value, other than by defining a function or class."""
    if isinstance(node, Function | ast.ClassDef | ast.Delete):
        return []
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    stored = [each for each in ast.walk(node) if isinstance(getattr(each, "ctx", None), ast.Store)]
    return [str(getattr(each, "id", getattr(each, "attr", ""))) for each in stored]


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

    def unplanned(self) -> Iterator[LeftOut]:
        """Yield files of tests that gave none, and tests that were not planned; of unread files the marked ones."""
        real, sources = cache(os.path.realpath), Sources(self._context.root)  # asked for each test, and slow
        names = {(real(event["file"]), *event["chain"], event["name"]) for event in self._told}
        lines: dict[str, set[int]] = defaultdict(set)
        for event in self._told:
            lines[real(self._context.root / event["path"])].add(event["line"])
        for path in self._paths:
            if (shown := self._context.shown(path)) not in self._heard and is_test_file(path):
                yield LeftOut(id=shown, location=Location(path=shown), how=Out.UNCOLLECTED)
            if path.suffix == ".py" and shown not in self._failed and any(event["name"] for event in self._told):
                with suppress(Unparsed, RecursionError):
                    for test in written_in(sources.module(path, ""), self._functions):
                        planned = (real(path), *test.chain) in names and not test.hidden
                        if not planned and lines[real(path)].isdisjoint(test.location.lines):
                            yield from self._said(test, path, shown)

    def _said(self, test: WrittenTest, path: Path, shown: str) -> Iterator[LeftOut]:
        criteria = tuple(dict.fromkeys(m.names for m in test.markers if m.names in self._criteria))
        stray = next((name for name in test.chain[:-1] if not any(_fits(name, p) for p in self._classes)), "")
        if not (read := shown in self._heard and shown not in self._skipped):
            why = f"skipped as a whole: {self._skipped[shown]}" if shown in self._skipped else "never collected"
        elif stray:
            why = f"pytest takes no class called {stray!r} for tests"
        else:
            why = "the same name is defined again below it" if test.hidden else "pytest took it for none"
        named = any(fnmatch(path.name, p) or ("/" in p and fnmatch(path.as_posix(), f"*/{p}")) for p in self._files)
        counts = read and named and (not stray or "test" in stray.lower())
        if counts or (criteria and not test.promise):
            where, sure = Location(path=shown, line=test.head), counts and test.sure and not stray
            facts = {"why": why, "criteria": criteria, "doubted": sure}
            yield LeftOut(id=test.id, location=where, how=Out.UNPLANNED, **facts)
