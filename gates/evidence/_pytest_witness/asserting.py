"""Which statements assert something, by their syntax alone."""

import ast
import re
from collections.abc import Iterator

# a call of such a name is taken for an assertion, as are an assert statement and a raise of AssertionError
ASSERTING = re.compile(
    r"_*(assert|fail|raises|warns|deprecated_call|expect|should|must|check|verify|validate|ensure|compare)",
    re.IGNORECASE,
)
REPLACING = frozenset({"setattr", "setitem", "patch", "object", "multiple", "start"})
OF_FAILURES = {"AssertionError", "Exception", "BaseException"}
HEADERS = ("test", "items", "iter", "subject", "context_expr")


def asserts(statement: ast.AST) -> bool:
    """Return whether a statement itself asserts something; what stands in its blocks speaks for itself."""
    if isinstance(statement, ast.Assert):
        return True
    if gives_up(statement):
        return True
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    if any(gives_up(inner) for block in blocks_of(statement) for inner in block):
        return True  # `if wrong: raise AssertionError` asserts where it asks, not where it raises
    blocks = hasattr(statement, "body")
    parts = [getattr(statement, name, None) for name in HEADERS] if blocks else [statement]
    flat = [one for part in parts for one in (part if isinstance(part, list) else [part])]
    return any(_is_asserting(node) for part in flat if isinstance(part, ast.AST) for node in ast.walk(part))


def is_plain(statement: ast.stmt) -> bool:
    """Return whether a statement is an assertion and no more: what comes after it runs only where it holds."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return _called(statement.value).lower().lstrip("_").startswith(("assert", "fail"))
    return isinstance(statement, ast.Assert | ast.Raise)


def expects_failure(statement: ast.AST) -> bool:
    """Return whether a `try` fails the test unless something is raised in it; not where it catches that, too."""
    if not isinstance(statement, ast.Try) or not statement.handlers:
        return False
    if any(gives_up(inner) for inner in statement.orelse):
        return True
    caught = {ast.unparse(kind) for handler in statement.handlers for kind in _kinds(handler.type)}
    failing = [inner for inner in statement.body if gives_up(inner)]
    by_pytest = all(isinstance(inner, ast.Expr) and ast.unparse(inner).startswith("pytest.") for inner in failing)
    return bool(failing) and not caught & ({"BaseException"} if by_pytest else OF_FAILURES)


def catches_failures(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler catches assertions that fail; what it names by another name is taken for that."""
    names = {ast.unparse(kind).rpartition(".")[2] for kind in _kinds(handler.type)}
    return bool(names & OF_FAILURES) or not all(name.endswith(("Error", "Exception")) for name in names)


def _kinds(caught: ast.expr | None) -> list[ast.expr]:
    if caught is None:
        return [ast.Name("BaseException", ast.Load())]
    return caught.elts if isinstance(caught, ast.Tuple) else [caught]


def may_replace(statement: ast.stmt) -> bool:
    """Return whether a statement may put something in the place of something else: `a.b = c`, `setattr(...)`."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if any(isinstance(node, ast.Attribute) for target in targets for node in ast.walk(target)):
        return True  # `a.b = c`, and `sys.modules["a"] = c` too
    value = statement.value if isinstance(statement, ast.Expr | ast.Assign) else None
    return isinstance(value, ast.Call) and _called(value) in REPLACING


def blocks_of(statement: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the blocks of a statement."""
    for field in ("body", "orelse", "finalbody"):
        inner = getattr(statement, field, None)
        if isinstance(inner, list):  # the body of a lambda is none
            yield inner
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def gives_up(statement: ast.AST) -> bool:
    """Return whether a statement fails the test by itself: `raise AssertionError`, `assert False`, `pytest.fail()`."""
    if isinstance(statement, ast.Assert):
        return isinstance(statement.test, ast.Constant) and not statement.test.value
    if isinstance(statement, ast.Raise):
        raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        return isinstance(raised, ast.Name) and raised.id == "AssertionError"
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and _called(call).startswith("fail")


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _is_asserting(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ASSERTING.match(_called(node)) is not None
