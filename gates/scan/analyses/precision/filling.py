"""What a method puts into a container that its object keeps: `self.parts[name] = part`, `self.parts.update(parts)`."""

import ast

from gates.scan.analyses.reading.called import Made
from gates.scan.program.module import tail_of
from gates.scan.program.nodes import inner, text_of
from gates.scan.program.scope import Scope


def filled_from(node: ast.expr, scope: Scope) -> Made | None:
    """Return what the one method that fills a container of the own object takes all of it from."""
    is_own = isinstance(node, ast.Attribute) and text_of(node.value) == scope.self_name
    if not is_own or scope.owner is None:
        return None
    found = [
        (source, scope.project.scope_of(method, scope.module))
        for method in scope.owner.methods.values()
        for statement in inner(method, ast.For, ast.Expr)
        if (source := _put_in(statement, text_of(node))) is not None
    ]
    return found[0] if len(found) == 1 else None


def _put_in(node: ast.AST, container: str) -> ast.expr | None:
    """Return what a loop, or a call, puts into a container."""
    if isinstance(node, ast.For):
        sets = (n for n in node.body if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Subscript))
        return node.iter if any(text_of(n.targets[0].value) == container for n in sets) else None  # type: ignore[attr-defined]
    call = node.value if isinstance(node, ast.Expr) else None
    is_update = isinstance(call, ast.Call) and tail_of(call.func) == "update" and len(call.args) == 1
    if not is_update or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    return call.args[0] if text_of(call.func.value) == container else None
