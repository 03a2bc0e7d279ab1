"""What statements do to a path as a whole: what they set, and whether they may leave their block."""

import ast
from collections.abc import Iterable

FLOW = (ast.Return, ast.Break, ast.Continue, ast.Raise)


def changed_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the variables and attributes that statements set, as they are written."""
    found = set()
    for node in nodes:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name | ast.Attribute) and isinstance(inner.ctx, ast.Store):
                found.add(ast.unparse(inner))
    return found


def flows(nodes: Iterable[ast.AST]) -> bool:
    """Return whether statements may leave the block that they stand in; inner functions do not count."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, FLOW):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda | ast.expr):
            stack.extend(ast.iter_child_nodes(node))
    return False
