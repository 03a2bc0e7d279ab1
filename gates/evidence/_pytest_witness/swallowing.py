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
    if not isinstance(node, ast.Try | ast.TryStar) or node.orelse or expects_failure(node):
        return False
    handlers = [handler for handler in node.handlers if catches_failures(handler)]
    return bool(handlers) and _ends_with_it(node.body) and all(_does_nothing(node, handler) for handler in handlers)


def only_notes(node: ast.AST) -> bool:
    """Return whether all that comes of a failed assertion of a `try` is that a variable holds another constant."""
    if not isinstance(node, ast.Try | ast.TryStar) or expects_failure(node) or not _ends_with_it(node.body):
        return False
    handlers = [handler for handler in node.handlers if catches_failures(handler)]
    said = [statement for handler in handlers for statement in handler.body]
    return bool(said) and all(map(_sets_constant, [*said, *node.orelse]))


def _sets_constant(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Constant):
        return False
    return all(isinstance(target, ast.Name) for target in statement.targets)


def waits(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler lets time pass before what failed is tried again."""
    calls = (inner for inner in ast.walk(handler) if isinstance(inner, ast.Call))
    return any(last_name(call.func) in WAITING for call in calls)


def _ends_with_it(body: list[ast.stmt]) -> bool:
    """Return whether nothing comes of it that all assertions of a block have held."""
    first = next((i for i, statement in enumerate(body) if asserts(statement)), 0)
    return all(isinstance(statement, ast.Assert | ast.Expr) for statement in body[first:])


def _does_nothing(node: ast.Try | ast.TryStar, handler: ast.ExceptHandler) -> bool:
    made = {name.id for s in node.body if isinstance(s, ast.Assign) for name in s.targets if isinstance(name, ast.Name)}
    return all(_tells_only(statement) or _replaces(statement, made) for statement in handler.body)


def _tells_only(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Pass):
        return True
    value = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(value, ast.Call):
        return last_name(value.func) in TELLING | WAITING
    return isinstance(value, ast.Constant)


def _replaces(statement: ast.stmt, made: set[str]) -> bool:
    """Return whether a constant takes the place of what the code came to."""
    named = {target.id for target in getattr(statement, "targets", ()) if isinstance(target, ast.Name)}
    return _sets_constant(statement) and named <= made
