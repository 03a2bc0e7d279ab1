"""What a class has by a name without defining it: a field, an attribute that a method sets, what it extends."""

import ast
from collections.abc import Iterator

from gates.stub import EMPTY_BASES
from gates.syntax import live_nodes, live_statements


def field_of(node: ast.ClassDef, name: str) -> ast.stmt | None:
    """Return the annotation that makes a field of a dataclass, a named tuple or a model; a plain class has none."""
    bases = {parts[-1] if parts else "" for parts in map(names_of, node.bases)}
    if not node.decorator_list and bases <= EMPTY_BASES:
        return None
    fields = (part for part in live_statements(node.body) if isinstance(part, ast.AnnAssign) and part.value is None)
    return next((part for part in fields if isinstance(part.target, ast.Name) and part.target.id == name), None)


def set_on_self(node: ast.ClassDef, name: str) -> ast.stmt | None:
    """Return the method that sets an attribute of the instance."""
    for method in node.body:
        for inner in live_nodes(method) if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) else ():
            if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store) and inner.attr == name:
                return method
    return None


def bases_of(node: ast.ClassDef) -> Iterator[list[str]]:
    """Yield the names of the classes that a class extends, those that hold nothing left out; `[]` is an expression."""
    for base in node.bases:
        parts = names_of(base)
        if not parts or parts[-1] not in EMPTY_BASES:
            yield parts


def names_of(node: ast.expr) -> list[str]:
    """Return the names in `a.b.c` and `a.b.c[T]`; none of any other expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute | ast.Subscript):
        parts += [node.attr] if isinstance(node, ast.Attribute) else []
        node = node.value
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else []
