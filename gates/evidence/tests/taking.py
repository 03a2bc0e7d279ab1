"""Which tests an earlier run answers for: those that executed nothing of what changed since, and asked nobody else.

Between two runs that differ in the bodies of some functions only, a test that ran none of them ends as it did. What is
in doubt is run again: a test that started a process, read from git or from a network, or did not simply pass. Where
what changed ran outside of tests, in the setup of a wider fixture, where a module was imported during a test, or below
a function that keeps its results (`functools.cache`), any test may rest on it, and all are run.
"""

import ast
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from gates.check import Earlier
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.lines.traced import TEST, Traced
from gates.evidence.tests.test_records import TestRecord

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Units:
    """The functions of a file that lie in no other function, and its outline: all the rest of it, and its nodes."""

    functions: tuple[Function, ...]
    outline: str
    nodes: tuple[ast.AST, ...]

    @classmethod
    def of(cls, source: bytes) -> "Units":
        """Read a file; raise `SyntaxError` or `ValueError` where that is no Python."""
        tree = ast.parse(source)
        functions = tuple(_functions(tree))
        bodies = [function.body for function in functions]
        for function in functions:
            function.body = []
        outline, nodes = ast.dump(tree), tuple(ast.walk(tree))
        for function, body in zip(functions, bodies, strict=True):
            function.body = body
        return cls(functions, outline, nodes)

    def changed(self, other: "Units") -> list[Function] | None:
        """Return the functions whose bodies another text of the file has otherwise; nothing where more changed."""
        if self.outline != other.outline:
            return None
        pairs = zip(self.functions, other.functions, strict=True)
        return [node for node, theirs in pairs if ast.dump(node) != ast.dump(theirs)]

    def moved(self, other: "Units") -> dict[int, int]:
        """Return for each line of what is the same in another text the line where that has it."""
        if self.outline != other.outline:
            return {}
        pairs = [*zip(self.nodes, other.nodes, strict=True)]
        for node, theirs in zip(self.functions, other.functions, strict=True):
            if ast.dump(node) == ast.dump(theirs):
                pairs += zip(ast.walk(node), ast.walk(theirs), strict=True)
        places = ((a, b) for a, b in pairs if isinstance(a, ast.stmt | ast.expr) and isinstance(b, ast.stmt | ast.expr))
        return {a.lineno: b.lineno for a, b in places}


def lines_of(function: Function) -> range:
    """Return the lines of a function's body."""
    return range(function.body[0].lineno, (function.end_lineno or function.lineno) + 1)


def _functions(node: ast.AST) -> Iterator[Function]:
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, Function):
            yield inner
        else:
            yield from _functions(inner)


@dataclass(frozen=True)
class Taking:
    """The tests that are taken of an earlier run, at `at`, what that traced, and what changed, then and now."""

    tests: Mapping[str, TestRecord]
    at: str
    traced: Traced
    units: Mapping[str, tuple[Units, Units]]

    def lay(self, folder: Path) -> None:
        """Lay the lines that the taken tests ran beside those of a run, numbered as the files are now."""
        moved = {path: old.moved(new) for path, (old, new) in self.units.items()}
        own = {f"{TEST}{test}" for test in self.tests}
        where = {
            path: {
                line if path not in moved else moved[path][line]: frozenset(
                    name for name in contexts if name in own or not name.startswith(TEST)
                )
                for line, contexts in lines.items()
                if path not in moved or line in moved[path]
            }
            for path, lines in self.traced.where.items()
        }
        self.traced.write(folder, where)


def taking(earlier: Earlier, tests: Iterable[TestRecord], folder: Path, context: Context) -> Taking | None:
    """Return what holds of an earlier run, of its tests and traced lines; nothing where all is open."""
    tests = tuple(tests)
    try:
        traced = Traced.read(folder)
        units = {path: (Units.of(old), Units.of(new)) for path, (old, new) in earlier.changed.items()}
        again = {*_Change(earlier.sources, units, traced, tests, context).contexts()}
    except (EvidenceUnavailable, _AnyTest, SyntaxError, ValueError, RecursionError):
        return None
    free = {name for lines in traced.where.values() for names in lines.values() for name in names} - again
    standing = {test.id: test for test in tests if test.passed and not test.reruns and f"{TEST}{test.id}" in free}
    if len(standing) == len(tests):  # pytest is to run something: that is what the canaries are tried with
        del standing[min(standing.values(), key=lambda test: test.duration_s).id]
    return Taking(standing, earlier.at, traced, units) if standing else None


class _AnyTest(Exception):
    """Any test may rest on what changed."""


@dataclass(frozen=True)
class _Change:
    """What changed since an earlier run, beside what that run traced."""

    sources: Mapping[str, bytes]
    units: Mapping[str, tuple[Units, Units]]
    traced: Traced
    tests: tuple[TestRecord, ...]
    context: Context

    def contexts(self) -> Iterator[str]:
        """Yield the contexts that must be run again; raise `_AnyTest` where no test is free of what changed."""
        told = self.traced.told
        if self.traced.doubts or told.reason:
            raise _AnyTest
        yield from self._tests((*told.outside, *told.lost, *told.children))
        for path, (before, now) in self.units.items():
            shown, lines = self.context.shown(Path(path)), self.traced.where.get(path, {})
            yield from (f"{TEST}{test.id}" for test in self.tests if test.id.split("::")[0] == shown)
            changed = before.changed(now)
            if changed is None:
                yield from self._of_test_file(path, shown, lines)
                continue
            if lines.keys() <= {line for function in before.functions for line in lines_of(function)}:
                raise _AnyTest  # it was imported before anything was traced, or by nobody
            ran = [lines[line] for function in changed for line in lines_of(function) if line in lines]
            for contexts in ran:
                if contexts & self._lasting:
                    raise _AnyTest
                yield from self._tests(contexts)

    def _of_test_file(self, path: str, shown: str, lines: Mapping[int, frozenset[str]]) -> Iterator[str]:
        """Yield who ran something of a file of tests that nobody else imports; of another, anybody may rest on it."""
        word = re.compile(rf"\b{re.escape(Path(path).stem)}\b".encode())
        others = (text for other, text in self.sources.items() if other != path)
        is_tests = any(test.id.split("::")[0] == shown for test in self.tests)
        if not is_tests or Path(path).name == "conftest.py" or any(word.search(text) for text in others):
            raise _AnyTest
        yield from (name for names in lines.values() for name in names if name.startswith(TEST))

    @staticmethod
    def _tests(contexts: Iterable[str]) -> Iterator[str]:
        for name in contexts:
            if not name.startswith(TEST):
                raise _AnyTest
            yield name

    @cached_property
    def _lasting(self) -> frozenset[str]:
        """Return the tests whose effects outlast them: they imported code, or filled what a function keeps."""
        where, cached = self.traced.where, self.traced.told.cached
        filled = (where.get(os.path.realpath(path), {}).get(line, frozenset()) for path, line in cached)
        return frozenset(self.traced.told.importing).union(*filled)
