"""Which functions of a module of tests can fail by nothing, whatever they are named."""

import ast

from .asserting import asserts
from .bindings import Bound
from .truths import Truths


def asks(node: Bound, truths: Truths) -> bool:
    """Return whether a function only says whether something is so: who drops its answer has asserted nothing."""
    if not isinstance(node, ast.FunctionDef) or node.decorator_list:
        return False
    inner = [one for part in node.body for one in ast.walk(part)]
    if any(isinstance(one, ast.Raise | ast.Yield | ast.YieldFrom) or asserts(one) for one in inner):
        return False
    if any(isinstance(one, ast.Expr) and not isinstance(one.value, ast.Constant) for one in inner):
        return False
    answers = [one.value for one in inner if isinstance(one, ast.Return)]
    return bool(answers) and all(map(truths.is_a_truth, answers))


def does_nothing(node: Bound) -> bool:
    """Return whether a function of a test has nothing that it could fail by."""
    body = node.body if isinstance(node, ast.FunctionDef) else [node]
    returned = [part.value for part in body if isinstance(part, ast.Return | ast.Expr)]
    plain = all(value is None or isinstance(value, ast.Constant) for value in returned)
    return plain and all(isinstance(part, ast.Return | ast.Expr | ast.Pass) for part in body)


def is_protocol(kind: ast.ClassDef) -> bool:
    """Return whether a class only says what others have: what it states is nobody's own."""
    return any(getattr(base, "attr", getattr(base, "id", "")) == "Protocol" for base in kind.bases)
