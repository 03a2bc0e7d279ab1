"""The tests of one file as they are written, with the criteria that markers give them."""

import ast
from collections.abc import Iterator
from typing import TypeGuard

from gates.code.syntax import SourceModule, live_statements
from gates.evidence.tests.markers import Marker, Marks
from gates.model import Location, Model

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
    yield from _tests(module, marks, module.tree.body, module.path, of_block(marks, module.tree.body))


def written(
    module: SourceModule, marks: Marks, node: Function, name: str, markers: tuple[Marker, ...] = ()
) -> WrittenTest:
    """Return a test function under a name, with the markers around it and its own."""
    first = min([node.lineno, *(part.lineno for part in node.decorator_list)])
    place = Location(path=module.path, line=first, last_line=node.end_lineno)
    return WrittenTest(
        id=name, location=place, markers=(*markers, *of_decorators(marks, node)), promise=_is_promise(node)
    )


def is_test(node: ast.stmt) -> TypeGuard[Function]:
    """Return whether a statement defines what pytest takes for a test where nothing else is set."""
    return isinstance(node, Function) and node.name.startswith("test")


def of_decorators(marks: Marks, node: Function | ast.ClassDef) -> tuple[Marker, ...]:
    """Return the markers of a definition, those of single parameters (`pytest.param(marks=...)`) too."""
    return tuple(marker for part in node.decorator_list for marker in marks.of(part))


def of_block(marks: Marks, body: list[ast.stmt]) -> tuple[Marker, ...]:
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
            own = (*markers, *of_decorators(marks, node), *of_block(marks, node.body))
            yield from _tests(module, marks, node.body, f"{owner}::{node.name}", own)
        elif is_test(node):
            yield written(module, marks, node, f"{owner}::{node.name}", markers)


def _is_promise(node: Function) -> bool:
    """Return whether a body is left to those that override it."""
    last = node.body[-1]
    if not isinstance(last, ast.Raise) or len(node.body) > 2:
        return False
    return last.exc is not None and "NotImplementedError" in ast.unparse(last.exc)
