"""What one Python file adds to the matrix: its tests with their markers, its classes, and its public functions."""

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

from pydantic import Field

from gates.code.meanings import star_imports
from gates.code.syntax import SourceModule, live_statements, origin
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


class WrittenClass(Model):
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

    `taken` are classes that it imports, by their names here, and `stars` the modules of which it takes all.
    """

    tests: tuple[WrittenTest, ...] = ()
    classes: tuple[WrittenClass, ...] = ()
    taken: dict[str, str] = Field(default={})
    stars: tuple[str, ...] = ()
    functions: tuple[WrittenFunction, ...] = ()
    problem: str = ""


def facts_of(module: SourceModule) -> FileFacts:
    """Return what a parsed file holds."""
    is_tests = PurePosixPath(module.path).name.startswith(("test_", "conftest")) or module.path.endswith("_test.py")
    bodies = [] if is_tests else functions_of(module)
    marks, package = Marks(module), ".".join(PurePosixPath(module.path).parent.parts)
    return FileFacts(
        tests=tuple(written_in(module)),
        classes=tuple(_classes(module, marks, module.tree.body, (), of_block(marks, module.tree.body))),
        taken={name: full for name, full in module.aliases.items() if full.rpartition(".")[2][:1].isupper()},
        stars=tuple(origin(node, package) for node in star_imports(module.tree.body)),
        functions=tuple(
            WrittenFunction(name=body.name, location=Location(path=module.path, line=body.line, last_line=body.last))
            for body in bodies
            if body.public and not body.promise
        ),
    )


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
