"""What statements do to a path as a whole: what they set, and whether they may leave their block."""

import ast
from collections.abc import Iterable

from gates.scan.program.module import Module
from gates.scan.program.nodes import children, inner, kept, text_of, walk

FLOW = (ast.Return, ast.Break, ast.Continue, ast.Raise)


def changed_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the variables and attributes that statements set, as they are written."""
    return {name for node in nodes for name in kept(node, _changed)}


def _changed(node: ast.AST) -> frozenset[str]:
    found = (n for n in walk(node) if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Store))
    return frozenset(map(text_of, found))


def is_exit(node: ast.Raise) -> bool:
    """Return whether a statement ends the program rather than tells of an error: `raise SystemExit(main())`."""
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return isinstance(raised, ast.Name) and raised.id == "SystemExit"


def is_given_away(node: ast.AST, module: Module) -> bool:
    """Return whether a function stands in another, which hands it on: `return step`, `Engine(step)`, `@on(x)`."""
    around = next((n for n in module.ancestors(node) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)), None)
    if around is None or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    called = {call.func for call in inner(around, ast.Call) if isinstance(call, ast.Call)}
    named = (n for n in inner(around, ast.Name) if isinstance(n, ast.Name) and n.id == node.name and n not in called)
    return bool(node.decorator_list) or any(True for _ in named)


def flows(nodes: Iterable[ast.AST]) -> bool:
    """Return whether statements may leave the block that they stand in; inner functions do not count."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, FLOW):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda | ast.expr):
            stack.extend(children(node))
    return False
