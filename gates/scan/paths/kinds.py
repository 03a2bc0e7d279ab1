"""Of which class the optimizers and schedules are that a loop goes through, whatever its variable is called."""

import ast
from collections.abc import Iterator

from gates.scan.paths.place import Place
from gates.scan.program.known import OPTIMIZER, SCHEDULER
from gates.scan.program.module import tail_of
from gates.scan.program.nodes import inner

COPIES = frozenset({"list", "tuple", "sorted", "reversed", "iter"})
MAX_HOPS = 4
Given = tuple[ast.expr, Place]


def kind_of(node: ast.expr, place: Place, at: int | None = None) -> str | None:
    """Return the class of what a loop is given with each turn, or of its part at a place; `None` for other objects."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and at is not None:
        name, parts = node.func.id, node.args
        if name == "enumerate" and parts:
            return kind_of(parts[0], place) if at == 1 else None
        if name == "zip":
            return kind_of(parts[at], place) if at < len(parts) else None
    is_pairs = isinstance(node, ast.Call) and tail_of(node.func) == "items"
    if at != (1 if is_pairs else None):
        return None
    found = {_kind(value, where) for value, where in _held(node, place, MAX_HOPS)}
    return found.pop() if len(found) == 1 else None


def _kind(value: ast.expr, place: Place) -> str | None:
    named = place.type_of(value)
    types = place.project.types
    return named if any(types.is_a(named, wanted) for wanted in (OPTIMIZER, SCHEDULER)) else None


def _held(node: ast.expr, place: Place, hops: int) -> Iterator[Given]:
    """Yield what is put into a list or a mapping: by a comprehension, or piece by piece."""
    while isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Name) and node.func.id in COPIES:
        node = node.args[0]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"values", "items"}:
        node = node.func.value
    if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
        yield node.elt, place
    elif isinstance(node, ast.DictComp):
        yield node.value, place
    elif isinstance(node, ast.Name | ast.Attribute) and hops:
        yield from _added(node, place)
        behind = place.through(node)
        yield from _held(*behind, hops - 1) if behind is not None else ()


def _added(node: ast.Name | ast.Attribute, place: Place) -> Iterator[Given]:
    """Yield what code adds to a variable of its function."""
    if isinstance(node, ast.Attribute):
        return
    body = place.scope.function or place.scope.module.tree
    for call in (c for c in inner(body, ast.Call) if isinstance(c, ast.Call) and len(c.args) == 1):
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr in {"append", "add"} and tail_of(func.value) == node.id:
            yield call.args[0], place
