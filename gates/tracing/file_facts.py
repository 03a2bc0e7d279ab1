"""What one Python file adds to the matrix: its tests with their markers, and its public functions."""

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

from gates.evidence._markers import Marker, Marks
from gates.evidence.public_code import functions_of
from gates.model import Location, Model
from gates.syntax import SourceModule, live_statements

Function = ast.FunctionDef | ast.AsyncFunctionDef


class WrittenTest(Model):
    """A test function as it is written, its node id without parameters, and the criteria that markers give it."""

    id: str
    location: Location
    markers: tuple[Marker, ...] = ()


class WrittenFunction(Model):
    """A public function or method with a body of its own."""

    name: str
    location: Location


class FileFacts(Model):
    """The tests and public functions of a file; `problem` says why it could not be read."""

    tests: tuple[WrittenTest, ...] = ()
    functions: tuple[WrittenFunction, ...] = ()
    problem: str = ""


def facts_of(module: SourceModule) -> FileFacts:
    """Return what a parsed file holds."""
    is_tests = PurePosixPath(module.path).name.startswith(("test_", "conftest")) or module.path.endswith("_test.py")
    bodies = [] if is_tests else functions_of(module)
    marks = Marks(module)
    return FileFacts(
        tests=tuple(_tests(module, marks, module.tree.body, module.path, _of_block(marks, module.tree.body))),
        functions=tuple(
            WrittenFunction(
                name=body.name, location=Location(path=module.path, line=body.line, last_line=body.last)
            )
            for body in bodies
            if body.public and not body.promise
        ),
    )  # fmt: skip


def _tests(
    module: SourceModule, marks: Marks, body: list[ast.stmt], owner: str, markers: tuple[Marker, ...]
) -> Iterator[WrittenTest]:
    for node in live_statements(body):
        if isinstance(node, ast.ClassDef):
            own = (*markers, *_of_decorators(marks, node), *_of_block(marks, node.body))
            yield from _tests(module, marks, node.body, f"{owner}::{node.name}", own)
        elif isinstance(node, Function) and node.name.startswith("test"):
            first = min([node.lineno, *(part.lineno for part in node.decorator_list)])
            yield WrittenTest(
                id=f"{owner}::{node.name}",
                location=Location(path=module.path, line=first, last_line=node.end_lineno),
                markers=(*markers, *_of_decorators(marks, node)),
            )


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
