"""Which comparisons allow so much that hardly any number could miss."""

import ast
import math

BOUNDLESS = 1e6  # times what is expected, or times one where that is less: not a tolerance of any number
RELATIVE = 10.0  # of what is expected: the sign and the order of magnitude may both be wrong
INFINITE = frozenset({"float('inf')", "float('infinity')", "math.inf", "np.inf", "numpy.inf", "torch.inf"})
OF_VALUE = frozenset({"rel", "rtol", "rel_tol"})
OF_ONE = frozenset({"abs", "atol", "abs_tol", "delta", "places"})
COMPARING = ("approx", "isclose", "allclose", "assert_", "assertAlmostEqual")


def is_boundless(test: ast.expr) -> bool:
    """Return whether a condition allows all numbers that are near a number written in it, and nearly all others."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, operator, right = test.left, test.ops[0], test.comparators[0]
        if isinstance(operator, ast.Lt | ast.LtE):
            return _is_far(left, _number(right))
        if isinstance(operator, ast.Gt | ast.GtE):
            return _is_far(right, _number(left))
        return isinstance(operator, ast.Eq) and any(map(_is_wide_call, (left, right)))
    return _is_wide_call(test)


def _is_far(distance: ast.expr, limit: float | None) -> bool:
    """Return whether a limit is far beyond the number in `abs(x - number)`."""
    called = distance if isinstance(distance, ast.Call) and last_name(distance.func) == "abs" else None
    of = called.args[0] if called is not None and len(called.args) == 1 else None
    if limit is None or not isinstance(of, ast.BinOp) or not isinstance(of.op, ast.Sub):
        return False
    return any(number is not None and _exceeds(limit, number) for number in (_number(of.left), _number(of.right)))


def _is_wide_call(call: ast.expr) -> bool:
    """Return whether a call of `approx`, `isclose` and the like is given a tolerance without bounds."""
    if not isinstance(call, ast.Call) or not last_name(call.func).startswith(COMPARING):
        return False
    expected = [number for argument in call.args[:2] if (number := _number(argument)) is not None]
    for word in call.keywords:
        limit = _number(word.value)
        if limit is None:
            continue
        if word.arg in OF_VALUE and limit >= RELATIVE:
            return True
        limit = 10.0 ** min(-limit, 300) if word.arg == "places" else limit
        if word.arg in OF_ONE and any(_exceeds(limit, number) for number in expected):
            return True
    return False


def _exceeds(limit: float, expected: float) -> bool:
    return limit >= BOUNDLESS * max(1.0, abs(expected))


def _number(node: ast.expr) -> float | None:
    """Return a number that is written out: `6`, `-1e9`, `10**9`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return None if isinstance(node.value, bool) else float(min(node.value, 10**300))
    if isinstance(node, ast.Call | ast.Attribute) and ast.unparse(node).lower() in INFINITE:
        return math.inf
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        base, exponent = _number(node.left), _number(node.right)
        if base is not None and exponent is not None and base > 0 and abs(exponent) < 100 and base <= 1000:
            return float(base**exponent)
    return None


def last_name(node: ast.expr) -> str:
    """Return the last part of a dotted name, or nothing."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
