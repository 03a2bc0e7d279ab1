"""What the calls of an assertion allow a number to be off, with what they allow where nothing is said."""

import ast
import operator
from collections import Counter
from collections.abc import Callable
from typing import TypeGuard

Number = int | float
Key = tuple[str, int, str]
DIGITS = {"places", "decimal", "significant", "ndigits"}
TOLERANCES = {"rel", "abs", "rtol", "atol", "delta", "rel_tol", "abs_tol", "msec"}
LIKE_NUMPY: dict[str, Number] = {"rtol": 1e-5, "atol": 1e-8}
DEFAULTS: dict[str, dict[str, Number]] = {
    "approx": {"rel": 1e-6, "abs": 1e-12},
    "assert_allclose": {"rtol": 1e-7, "atol": 0},
    "allclose": LIKE_NUMPY,
    "isclose": {**LIKE_NUMPY, "rel_tol": 1e-9, "abs_tol": 0},
    "assert_close": {"rtol": 1.3e-6, "atol": 1e-5},
    "assert_frame_equal": LIKE_NUMPY,
    "assert_series_equal": LIKE_NUMPY,
    "assertAlmostEqual": {"places": 7},
    "assert_almost_equal": {"decimal": 7},
    "assert_array_almost_equal": {"decimal": 6},
    "assert_approx_equal": {"significant": 7},
    "round": {"ndigits": 0},
}
POSITIONS: dict[str, tuple[int, tuple[str, ...]]] = {
    "approx": (1, ("rel", "abs")),
    "assert_allclose": (2, ("rtol", "atol")),
    "allclose": (2, ("rtol", "atol")),
    "isclose": (2, ("rtol", "atol")),
    "assertAlmostEqual": (2, ("places",)),
    "assert_almost_equal": (2, ("decimal",)),
    "assert_array_almost_equal": (2, ("decimal",)),
    "assert_approx_equal": (2, ("significant",)),
    "round": (1, ("ndigits",)),
}


SUMS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip


def is_wider(old: ast.expr, new: ast.expr) -> bool:
    """Return whether a call that stands in both allows more than it did."""
    before, after = allowed(old), allowed(new)
    calls = {key[:2] for key in before} | {key[:2] for key in _calls(old)}
    for key in after.keys() | before.keys():
        if key[:2] not in calls or key[:2] not in _calls(new):
            continue
        was, now = before.get(key, 0), after.get(key, 0)
        if key[2] in DIGITS:
            if key in before and key in after and now < was:
                return True
        elif now > was and now > _other(before, key):
            return True
    return False


def allowed(tree: ast.expr) -> dict[Key, Number]:
    """Return each tolerance of each call, by the call's name, its place among those of that name, and its own name."""
    found: dict[Key, Number] = {}
    for (name, place), call in _calls(tree).items():
        given = _given(name, call)
        default = dict(DEFAULTS.get(name, {}))
        if name == "approx" and "abs" in given and "rel" not in given:
            default["rel"] = 0
        if "delta" in given:
            default = {}
        found.update({(name, place, key): value for key, value in {**default, **given}.items()})
    return found


def number(node: ast.expr) -> Number | None:
    """Return a number that is written out."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = number(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp) and type(node.op) in SUMS:
        one, other = number(node.left), number(node.right)
        return None if one is None or other is None else _result(type(node.op), one, other)
    return node.value if isinstance(node, ast.Constant) and _is_number(node.value) else None


def _result(op: type[ast.operator], one: Number, other: Number) -> Number | None:
    try:
        found: Number = SUMS[op](one, other)
    except (ArithmeticError, ValueError):
        return None
    return found


def last(node: ast.expr) -> str:
    """Return the last name of what is called."""
    func = node.func if isinstance(node, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _other(before: dict[Key, Number], key: Key) -> Number:
    """Return what the relative tolerance of `approx` allowed, where an absolute one takes its place."""
    return before.get((*key[:2], "rel"), 0) if key[0] == "approx" and key[2] == "abs" else 0


def _calls(tree: ast.expr) -> dict[tuple[str, int], ast.Call]:
    found, times = {}, Counter[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = last(node)
            found[name, times[name]] = node
            times[name] += 1
    return found


def _given(name: str, call: ast.Call) -> dict[str, Number]:
    first, names = POSITIONS.get(name, (0, ()))
    said = [*zip(names, call.args[first:], strict=False), *((keyword.arg, keyword.value) for keyword in call.keywords)]
    numbers = {key: number(value) for key, value in said if key and key in TOLERANCES | DIGITS}
    return {key: value for key, value in numbers.items() if value is not None}


def _is_number(value: object) -> TypeGuard[Number]:
    return isinstance(value, int | float) and not isinstance(value, bool)
