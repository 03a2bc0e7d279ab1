"""The markers that bind tests to criteria, as they are written: what they name, and those that only look like one."""

import ast
import re
from collections.abc import Iterator

from gates.code.syntax import SourceModule, live_statements
from gates.model import Model

MARKER = "pytest.mark.criterion"
MARK = "pytest.mark."
ID = "id"  # what the marker's one parameter is called
MOST_HOPS = 3
NAMES_ONE = re.compile(r"[\w.-]+/[\w.-]+")


class Marker(Model):
    """A criterion that a marker names, such as `T035/AC3`; `None` where it is not written as plain text.

    `written` is the marker's own name where that is not `criterion`: it binds nothing.
    """

    names: str | None
    line: int
    written: str = ""


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
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        if named == MARKER:
            named_by = criteria_of(call)
            for arg in named_by:
                value = arg.value if isinstance(arg, ast.Constant) else None
                yield Marker(names=value if isinstance(value, str) else None, line=arg.lineno)
            if not named_by:
                yield Marker(names="", line=call.lineno)
        elif named.startswith(MARK):
            for arg in given:
                if isinstance(arg, ast.Constant) and isinstance(arg.value, str) and NAMES_ONE.fullmatch(arg.value):
                    yield Marker(names=arg.value, line=arg.lineno, written=named.removeprefix(MARK))


def criteria_of(call: ast.Call) -> list[ast.expr]:
    """Return what names criteria in a marker: what it is given by place, and as `id`; a `reason` names none."""
    return [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg in {ID, None})]


def _is_mark(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "mark"
