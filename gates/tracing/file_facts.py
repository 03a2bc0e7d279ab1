"""What one Python file adds to the matrix: its tests with their markers, its classes, and its public functions."""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from gates.code.syntax import SourceModule, live_statements
from gates.evidence.lines.public_code import functions_of
from gates.evidence.tests.marked import (
    Marker,
    Marks,
    WrittenTest,
    is_test,
    of_block,
    of_decorators,
    written,
    written_in,
)
from gates.model import Location, Model

CASES = {"unittest.TestCase", "unittest.IsolatedAsyncioTestCase", "unittest.case.TestCase"}
EMPTY = {"object", "abc.ABC", "typing.Generic", "typing.Protocol"}


@dataclass(frozen=True)
class WrittenClass:
    """A class of a file of tests: its names from the outermost on, what it extends, and what it gives to its heirs.

    `bases` are full names, nothing for an expression. `tests` have their own markers alone and the name as their id.
    `markers` are those of the class, `around` those of what it stands in. `unset` are names that are no tests here.
    """

    chain: tuple[str, ...]
    bases: tuple[str, ...] = ()
    tests: tuple[WrittenTest, ...] = ()
    markers: tuple[Marker, ...] = ()
    around: tuple[Marker, ...] = ()
    unset: tuple[str, ...] = ()


class WrittenFunction(Model):
    """A public function or method with a body of its own."""

    name: str
    location: Location


class FileFacts(Model):
    """The tests and public functions of a file; `problem` says why it could not be read.

    `foreign` are the classes that extend one of another file, whose tests are not looked for.
    """

    tests: tuple[WrittenTest, ...] = ()
    foreign: tuple[str, ...] = ()
    functions: tuple[WrittenFunction, ...] = ()
    problem: str = ""


def facts_of(module: SourceModule) -> FileFacts:
    """Return what a parsed file holds."""
    is_tests = PurePosixPath(module.path).name.startswith(("test_", "conftest")) or module.path.endswith("_test.py")
    bodies = [] if is_tests else functions_of(module)
    marks = Marks(module)
    classes = list(_classes(module, marks, module.tree.body, (), of_block(marks, module.tree.body)))
    named = {one.chain[-1]: one for one in classes if len(one.chain) == 1}
    above = {one.chain: list(_above(one, named, set())) for one in classes}
    heirs = {base for one in classes for base in _own(above[one.chain])}
    lent = {_id(module, one) for one in classes if one.chain in heirs and not _is_collected(one, above[one.chain])}
    inherited = (test for one in classes for test in _inherited(module, one, above[one.chain]))
    every = (*written_in(module), *inherited)
    return FileFacts(
        tests=tuple(test for test in every if test.id.rpartition("::")[0] not in lent),
        foreign=tuple(_id(module, one) for one in classes if None in above[one.chain]),
        functions=tuple(
            WrittenFunction(name=body.name, location=Location(path=module.path, line=body.line, last_line=body.last))
            for body in bodies
            if body.public and not body.promise
        ),
    )


def _id(module: SourceModule, one: WrittenClass) -> str:
    return "::".join((module.path, *one.chain))


def _above(one: WrittenClass, named: Mapping[str, WrittenClass], seen: set[str]) -> Iterator[WrittenClass | None]:
    """Yield what a class extends in its file, the nearest first; `None` for what is not of the file."""
    for name in one.bases:
        base = named.get(name)
        if base is None and name not in CASES | EMPTY:
            yield None
        elif base is not None and name not in seen:
            seen.add(name)
            yield base
            yield from _above(base, named, seen)


def _own(above: Iterable[WrittenClass | None]) -> set[tuple[str, ...]]:
    return {base.chain for base in above if base is not None}


def _is_collected(one: WrittenClass, above: Sequence[WrittenClass | None]) -> bool:
    """Return whether pytest would collect a class for itself, by its default names, as far as is known."""
    bases = {name for each in (one, *above) if each for name in each.bases}
    return None in above or bool(bases & CASES) or one.chain[-1].startswith("Test")


def _inherited(module: SourceModule, one: WrittenClass, above: Iterable[WrittenClass | None]) -> Iterator[WrittenTest]:
    """Yield the tests that a class has from those of its file that it extends, with all their markers."""
    had = {*(test.id for test in one.tests), *one.unset}
    markers = (*one.around, *one.markers)
    for base in filter(None, above):
        markers += base.markers
        for test in base.tests:
            if test.id not in had:
                name = f"{_id(module, one)}::{test.id}"
                yield test.model_copy(update={"id": name, "markers": (*markers, *test.markers)})
        had |= {*(test.id for test in base.tests), *base.unset}


def _classes(
    module: SourceModule, marks: Marks, body: list[ast.stmt], outer: tuple[str, ...], around: tuple[Marker, ...]
) -> Iterator[WrittenClass]:
    for node in live_statements(body):
        if not isinstance(node, ast.ClassDef):
            continue
        inside = list(live_statements(node.body))
        tests = [part for part in inside if is_test(part)]
        own = (*of_decorators(marks, node), *of_block(marks, node.body))
        bases = tuple(module.dotted(_plain(base)) or "" for base in node.bases)
        if tests or bases:
            yield WrittenClass(
                chain=(*outer, node.name), bases=bases, markers=own, around=around,
                tests=tuple(written(module, marks, part, part.name) for part in tests),
                unset=tuple(t.id for part in inside for t in _targets(part) if t.id.startswith("test")),
            )  # fmt: skip
        yield from _classes(module, marks, node.body, (*outer, node.name), (*around, *own))


def _plain(base: ast.expr) -> ast.expr:
    """Return a base without what it is made for: `Base[int]` is `Base`."""
    return base.value if isinstance(base, ast.Subscript) else base


def _targets(node: ast.stmt) -> Iterator[ast.Name]:
    targets = node.targets if isinstance(node, ast.Assign) else []
    yield from (target for target in targets if isinstance(target, ast.Name))
