"""Tables that are written out, and those that something is taken out of by a key."""

import ast

from gates.scan.analyses.settings.defaults import behind_of
from gates.scan.program.scope import Scope

Table = tuple[ast.Dict, Scope]


def table(node: ast.expr, scope: Scope) -> Table | None:
    """Return the dictionary that an expression stands for, and where that is written out."""
    made, where = (node, scope) if isinstance(node, ast.Dict) else behind_of(node, scope) or (node, scope)
    return (made, where) if isinstance(made, ast.Dict) else None


def table_of(node: ast.expr, scope: Scope) -> Table | None:
    """Return the table that an expression takes something out of: `TABLE[key]`, `TABLE.get(key)`."""
    if isinstance(node, ast.Subscript):
        return table(node.value, scope)
    is_got = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get"
    return table(node.func.value, scope) if is_got else None  # type: ignore[attr-defined]  # a method's call
