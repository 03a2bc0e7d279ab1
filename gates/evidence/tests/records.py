"""The records of a test run, folded from the events that its witness told."""

import ast
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from gates.config import Context
from gates.evidence.tests.test_records import (
    UNAWAITED,
    CollectError,
    Deselected,
    Event,
    TestRecord,
    Unplanned,
    Warned,
    last_of,
    outcome_of,
)
from gates.model import Location
from gates.project.files import files_of, is_test_file
from gates.task.task import Task

MARKS = ("pytest.mark.", "mark.")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Written:
    """A test function as it is written: its classes and name, and its lines.

    `certain` says that pytest would collect it by all that can be read; `shadowed`, that the same name is defined
    again below in the same block; `made`, that nothing but an `__init__` of its class keeps pytest from it.
    """

    chain: tuple[str, ...]
    name: str
    line: int
    first_line: int
    certain: bool
    shadowed: bool = False
    made: bool = False

    @property
    def shown(self) -> str:
        """Return the name as pytest would show it."""
        return "::".join((*self.chain, self.name))


@dataclass(frozen=True)
class Names:
    """What pytest takes for a test: patterns of functions and of classes."""

    functions: Sequence[str]
    classes: Sequence[str]

    def function(self, name: str) -> bool:
        """Return whether a function of this name is a test."""
        return any(_matches(name, pattern) for pattern in self.functions)

    def a_class(self, name: str) -> bool:
        """Return whether a class of this name holds tests."""
        return any(_matches(name, pattern) for pattern in self.classes)


def written_tests(source: bytes, names: Names) -> list[Written]:
    """Return the test functions of a file; none where it cannot be parsed, which pytest will say itself."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    return list(_in_block(tree.body, names, (), certain=not _binds(tree.body, "__test__")))


def _in_block(body: list[ast.stmt], names: Names, chain: tuple[str, ...], *, certain: bool) -> Iterator[Written]:
    rebound = {name for statement in body for name in _bound(statement)}
    deleted = {name for statement in body if isinstance(statement, ast.Delete) for name in _bound(statement)}
    for i, statement in enumerate(body):
        if isinstance(statement, Function) and names.function(statement.name):
            if any("fixture" in ast.unparse(decorator) for decorator in statement.decorator_list):
                continue
            again = any(isinstance(o, Function) and o.name == statement.name for o in body[i + 1 :])
            plain = _only_marked(statement) and statement.name not in rebound - deleted
            sure = certain and plain
            first = min([statement.lineno, *(decorator.lineno for decorator in statement.decorator_list)])
            yield Written(chain, statement.name, statement.lineno, first, certain=sure, shadowed=again and sure)
        elif isinstance(statement, ast.ClassDef):
            again = any(isinstance(o, ast.ClassDef) and o.name == statement.name for o in body[i + 1 :])
            sure = certain and _is_plain(statement) and names.a_class(statement.name)
            sure = sure and statement.name not in rebound
            inner = list(_in_block(statement.body, names, (*chain, statement.name), certain=sure and not again))
            made = _is_kept_by_init(statement) and not chain and not again
            yield from (replace(test, made=True) if made else test for test in inner)
        elif not isinstance(statement, Function | ast.ClassDef):
            for field in ("body", "orelse", "finalbody"):
                yield from _in_block(getattr(statement, field, []), names, chain, certain=False)


def _only_marked(node: Function | ast.ClassDef) -> bool:
    return all(ast.unparse(decorator).startswith(MARKS) for decorator in node.decorator_list)


def _is_plain(node: ast.ClassDef) -> bool:
    """Return whether nothing about a class could keep pytest from collecting it."""
    return _is_bare(node) and not any(_binds(node.body, name) for name in ("__init__", "__new__", "__test__"))


def _is_kept_by_init(node: ast.ClassDef) -> bool:
    return _is_bare(node) and not _binds(node.body, "__test__") and _binds(node.body, "__init__")


def _is_bare(node: ast.ClassDef) -> bool:
    return not node.bases and not node.keywords and _only_marked(node)


def _binds(body: list[ast.stmt], name: str) -> bool:
    return any(name in _bound(s) or (isinstance(s, Function) and s.name == name) for s in body)


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement binds or deletes, other than by defining a function or class."""
    if isinstance(statement, Function | ast.ClassDef):
        return set()
    nodes = list(ast.walk(statement))
    names = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    names |= {n.value.id for n in nodes if isinstance(n, ast.Attribute) and n.attr == "__test__"
              and isinstance(n.value, ast.Name)}  # fmt: skip
    return names | {(a.asname or a.name) for n in nodes if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names}


def _matches(name: str, pattern: str) -> bool:
    return name.startswith(pattern) or (any(c in pattern for c in "*?[") and fnmatch(name, pattern))


class Records:
    """Reads the events of one run; each source file is parsed once."""

    def __init__(self, events: list[Event], context: Context, task: Task) -> None:
        self._events = events
        self._real: Callable[[str | Path], str] = cache(os.path.realpath)  # asked for each test, and slow
        self._context = context
        self._task = task
        start = next((event for event in events if event["event"] == "start"), {})
        self._names = Names(
            functions=("test_*", *start.get("functions", ())), classes=("Test*", *start.get("classes", ()))
        )
        self._patterns: Sequence[str] = start.get("files", ())
        self._written: dict[str, list[Written]] = {}

    def tests(self) -> Iterator[TestRecord]:
        """Yield a record of each planned test."""
        reports: dict[str, list[Event]] = defaultdict(list)
        for event in self._events:
            if event["event"] == "report":
                reports[event["id"]].append(event)
        for test_id, plan in last_of(self._events, "planned").items():
            yield self._record(test_id, plan, reports[test_id])

    def _record(self, test_id: str, plan: Event, seen: list[Event]) -> TestRecord:
        telling = next((event for event in seen if event["outcome"] == "failed"), None)
        telling = telling or next((event for event in seen if event["outcome"] in {"skipped", "rerun"}), {})
        inside = telling.get("path") and telling["line"] > 0 and self._is_inside(telling["path"])
        crash = Location(path=self._shown(telling["path"]), line=telling["line"]) if inside else None
        own = self._own(plan)
        return TestRecord(
            id=test_id,
            location=Location(path=self._shown(plan["path"]), line=max(plan["line"], 1)),
            criteria=tuple(plan["criteria"]),
            near=tuple(map(tuple, plan["near"])),
            outcome=outcome_of(seen),
            duration_s=round(sum(event["duration"] for event in seen), 4),
            message=str(telling.get("message") or telling.get("reason") or ""),
            crash=crash,
            subtests_left_out=sum(event["subtest"] and event["outcome"] == "skipped" for event in seen),
            reruns=sum(event["outcome"] == "rerun" for event in seen),
            lines=(own.first_line, own.line) if own else None,
        )

    def unplanned(self) -> Iterator[Unplanned]:
        """Yield the test functions of collected files that pytest did not plan."""
        told = [event for event in self._events if event["event"] in {"planned", "deselected"}]
        if not any(event["name"] for event in told):
            return
        names = {(self._real(event["file"]), *event["chain"], event["name"]) for event in told}
        lines = {(self._absolute(event["path"]), event["line"]) for event in told}
        left = {event["id"] for event in self._events if event["event"] in {"collect_skipped", "collect_failed"}}
        heard = {event["id"].split("::")[0] for event in self._events if event["event"] == "visited"} - left
        for path in files_of(tuple(path for path in self._task.tests if "::" not in path), self._context.root):
            shown = self._context.shown(path)
            if shown not in heard or not self._is_test_file(path):
                continue
            file = self._real(path)
            for test in self._tests_in(file):
                planned = (file, *test.chain, test.name) in names
                seen = any((file, line) in lines for line in range(test.first_line, test.line + 1))
                stray = next((name for name in test.chain if not self._names.a_class(name)), "")
                if seen or (planned and not test.shadowed) or (stray and self._is_for_others(stray)):
                    continue
                why = "the same name is defined again below it" if test.shadowed else "pytest took it for none"
                why = f"pytest takes no class called {stray!r} for tests" if stray else why
                where = Location(path=shown, line=test.line)
                made = test.made and not stray and not self._is_for_others(test.chain[0])
                why = f"pytest makes no test of {test.chain[0]!r}, which has an __init__" if made else why
                certain = (test.certain or made) and not stray
                yield Unplanned(id=f"{shown}::{test.shown}", location=where, why=why, certain=certain)

    def switched_off(self) -> Iterator[Unplanned]:
        """Yield the inherited tests that a class has taken out of its own, and that no other class runs."""
        planned = [event for event in self._events if event["event"] in {"planned", "deselected"}]
        lines = {(self._absolute(event["path"]), event["line"]) for event in planned}
        told = [event for event in self._events if event["event"] == "switched_off" and self._is_inside(event["file"])]
        for event in told:
            if (self._real(event["file"]), event["line"]) not in lines:
                where = Location(path=self._shown(event["file"]), line=event["line"])
                why = "its class puts something in its place that is no test"
                yield Unplanned(id=f"{event['id']}::{event['name']}", location=where, why=why, certain=False)

    def _is_for_others(self, name: str) -> bool:
        """Return whether a class is not meant to be collected by itself: no test by its name, or used elsewhere."""
        word = re.compile(rf"\b{re.escape(name)}\b".encode())
        paths = tuple(path for path in self._task.tests if "::" not in path)
        sources = (path.read_bytes() for path in files_of(paths, self._context.root) if path.suffix == ".py")
        return "test" not in name.lower() or sum(len(word.findall(source)) for source in sources) > 1

    def collect_events(self, name: str) -> Iterator[CollectError]:
        """Yield the files and classes that could not be collected, or were skipped as a whole."""
        for event in last_of(self._events, name).values():
            yield CollectError(id=event["id"], message=event["message"], line=event.get("line"))

    def never_collected(self) -> Iterator[str]:
        """Yield the files that look like tests of the task and of which pytest never collected anything."""
        heard = {event["id"].split("::")[0] for event in self._events if event.get("id")}
        for path in files_of(tuple(path for path in self._task.tests if "::" not in path), self._context.root):
            shown = self._context.shown(path)
            if is_test_file(path) and shown not in heard:
                yield shown

    def deselected(self) -> Iterator[Deselected]:
        """Yield the tests that were collected and then left out."""
        for test_id, event in sorted(last_of(self._events, "deselected").items()):
            yield Deselected(
                id=test_id,
                location=Location(path=self._shown(event["path"]), line=max(event["line"], 1)),
                criteria=tuple(event["criteria"]),
                by_mark=event["mark"],
            )

    def warnings(self) -> Iterator[Warned]:
        """Yield each distinct warning once."""
        seen = set()
        for event in self._events:
            if event["event"] == "warning":
                where = Location(path=self._shown(event["path"]), line=max(int(event["line"]), 1))
                category, message = event["category"], event["message"]
                # of what pytest says of a test itself, that test is known; other warnings are told once
                about = event["id"] if category.startswith("Pytest") or UNAWAITED in message else ""
                warned = Warned(category=category, message=message, location=where, test=about)
                if warned not in seen:
                    seen.add(warned)
                    yield warned

    def running(self) -> tuple[str, ...]:
        """Return the tests that began and were never over."""
        began: dict[str, int] = defaultdict(int)
        for event in self._events:
            if event["event"] in {"began", "over"}:
                began[event["id"]] += 1 if event["event"] == "began" else -1
        return tuple(test_id for test_id, count in began.items() if count > 0)

    def _own(self, plan: Event) -> Written | None:
        """Return the one definition of a test in its file, where nothing there could put another in its place."""
        key = (tuple(plan["chain"]), plan["name"])
        found = [test for test in self._tests_in(self._real(plan["file"])) if (test.chain, test.name) == key]
        return found[0] if len(found) == 1 and found[0].certain else None

    def _tests_in(self, file: str) -> list[Written]:
        if file not in self._written:
            path = Path(file)
            source = path.read_bytes() if path.suffix == ".py" and path.is_file() else b""
            self._written[file] = written_tests(source, self._names)
        return self._written[file]

    def _is_test_file(self, path: Path) -> bool:
        shown = path.as_posix()
        return any(fnmatch(path.name, p) or ("/" in p and fnmatch(shown, f"*/{p}")) for p in self._patterns)

    def _absolute(self, path: str) -> str:
        return self._real(self._context.root / path)

    def _is_inside(self, path: str) -> bool:
        return (self._context.root / path).is_relative_to(self._context.root)

    def _shown(self, path: str) -> str:
        return self._context.shown(self._context.root / path)
