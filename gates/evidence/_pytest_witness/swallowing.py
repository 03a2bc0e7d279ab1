"""Which statements keep a failed assertion to themselves, and which of them so that the test never comes to know."""

import ast

from .asserting import asserts, catches_failures, expects_failure
from .tolerance import last_name

WAITING = frozenset({"sleep", "wait"})
TELLING = frozenset({"critical", "debug", "error", "exception", "info", "log", "print", "warn", "warning", "write"})


def swallows(node: ast.AST) -> bool:
    """Return whether a statement may keep what is raised in it to itself, for all to read."""
    if isinstance(node, ast.With | ast.AsyncWith):
        calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
        return any(last_name(call.func) == "suppress" for call in calls) and not _ends_with_it(node.body)
    return isinstance(node, ast.Try | ast.TryStar) and any(map(catches_failures, node.handlers))


def is_quiet(node: ast.AST) -> bool:
    """Return whether a `try` goes on after a failed assertion as after one that held: it notes nothing."""
    if not isinstance(node, ast.Try | ast.TryStar) or expects_failure(node):
        return False
    if not all(_sets_constant(statement) for statement in node.orelse):
        return False
    handlers = [handler for handler in node.handlers if catches_failures(handler)]
    return bool(handlers) and _ends_with_it(node.body) and all(map(_does_nothing, handlers))


def waits(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler lets time pass before what failed is tried again."""
    calls = (inner for inner in ast.walk(handler) if isinstance(inner, ast.Call))
    return any(last_name(call.func) in WAITING for call in calls)


def _ends_with_it(body: list[ast.stmt]) -> bool:
    """Return whether nothing comes of it that all assertions of a block have held."""
    first = next((i for i, statement in enumerate(body) if asserts(statement)), 0)
    return all(isinstance(statement, ast.Assert | ast.Expr) for statement in body[first:])


def _does_nothing(handler: ast.ExceptHandler) -> bool:
    return all(_tells_only(statement) or _sets_constant(statement) for statement in handler.body)


def _tells_only(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Pass):
        return True
    value = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(value, ast.Call):
        return last_name(value.func) in TELLING | WAITING
    return isinstance(value, ast.Constant)


def _sets_constant(statement: ast.stmt) -> bool:
    """Return whether a constant takes the place of what the code came to, or says that an assertion failed."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Constant):
        return False
    return all(isinstance(target, ast.Name) for target in statement.targets)
