"""What a function leaves out by the settings: a side of a choice that they do not take, what follows a return."""

import ast

from gates.scan.analyses._precision import holds
from gates.scan.module import Module
from gates.scan.scope import Scope


def is_left_out(call: ast.Call, module: Module, scope: Scope) -> bool:
    """Return whether a call stands on a side of a choice that the settings do not take, or after a return."""
    inside: ast.AST = call
    for around in module.ancestors(call):
        for block in (getattr(around, name, None) for name in ("body", "orelse")):
            before = block[: block.index(inside)] if isinstance(block, list) and inside in block else []
            if any(_is_left_by(statement, scope) for statement in before):
                return True
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
        if isinstance(around, ast.If | ast.IfExp) and inside is not around.test:
            body = around.body if isinstance(around.body, list) else [around.body]
            if holds(around.test, scope) is (inside not in body):
                return True
        inside = around
    return False


def _is_left_by(statement: ast.stmt, scope: Scope) -> bool:
    """Return whether a function is left by a choice that the settings take."""
    leaves = isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Return | ast.Raise)
    return leaves and isinstance(statement, ast.If) and holds(statement.test, scope) is True
