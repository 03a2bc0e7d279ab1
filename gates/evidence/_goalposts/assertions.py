"""What a test asserts, and whether one assertion asks for less than another."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

STRICTNESS: dict[type[ast.cmpop], int] = {
    ast.Eq: 4, ast.Is: 4, ast.Lt: 3, ast.Gt: 3, ast.LtE: 2, ast.GtE: 2,
    ast.In: 1, ast.NotEq: 1, ast.IsNot: 1, ast.NotIn: 1,
}  # fmt: skip
ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
TOLERANCES = {"rel", "abs", "rtol", "atol", "delta", "rel_tol", "abs_tol", "msec"}
DIGITS = {"places", "decimal", "significant"}
BROADEST = {"Exception", "BaseException"}
Number = int | float


@dataclass(frozen=True)
class Assertion:
    """One live assertion of a test: its text with constants filled in, its line, and the conditions around it."""

    text: str
    line: int
    guards: tuple[str, ...] = ()
    node: ast.expr | None = field(default=None, compare=False)

    @property
    def subject(self) -> str:
        """Return what it speaks of: the left side of a comparison, a call with its first argument."""
        return _subject(self.tree)

    @property
    def tree(self) -> ast.expr:
        """Return the expression that must hold."""
        return self.node or ast.parse(self.text, mode="eval").body


def written(node: ast.AST) -> str:
    """Return a tree as source; the few that Python cannot write itself as a dump, which tells them apart as well."""
    try:
        return ast.unparse(node)
    except (ValueError, RecursionError):
        return ast.dump(node)


def weaker(before: Assertion, after: Assertion) -> str:
    """Return in words how the second assertion asks for less than the first, or nothing where it does not."""
    old, new = before.tree, after.tree
    if always_holds(new) and not always_holds(old):
        return "always holds"
    if isinstance(new, ast.BoolOp) and isinstance(new.op, ast.Or) and _is_part(old, new):
        return "another way to hold was added"
    if isinstance(old, ast.BoolOp) and isinstance(old.op, ast.And) and _is_part(new, old):
        return "a part of it was dropped"
    if _subject(old) != _subject(new):
        return ""
    return _looser_comparison(old, new) or _looser_call(old, new)


def always_holds(test: ast.expr) -> bool:
    """Return whether an expression is true whatever the code does: a constant, or a thing compared with itself."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.Tuple | ast.List):
        return bool(test.elts)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return any(always_holds(value) for value in test.values)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        same = ast.dump(test.left) == ast.dump(test.comparators[0])
        return same and isinstance(test.ops[0], ast.Eq | ast.Is | ast.LtE | ast.GtE)
    return False


def _is_part(one: ast.expr, whole: ast.BoolOp) -> bool:
    parts = {ast.dump(value) for value in whole.values}
    inner = one.values if isinstance(one, ast.BoolOp) and type(one.op) is type(whole.op) else [one]
    return {ast.dump(value) for value in inner} < parts


def _looser_comparison(old: ast.expr, new: ast.expr) -> str:
    """Compare operator, limit and tolerance of two comparisons of one subject."""
    if not isinstance(old, ast.Compare):
        return ""
    if not isinstance(new, ast.Compare):
        return "compares no more" if ast.dump(new) == ast.dump(old.left) else ""
    was, now = type(old.ops[-1]), type(new.ops[-1])
    left, right = old.comparators[-1], new.comparators[-1]
    if STRICTNESS.get(now, 0) < STRICTNESS.get(was, 0):
        return "a weaker comparison"
    if was is now and was in ORDERED:
        one, other = _number(left), _number(right)
        raised = one is not None and other is not None and one != other and (other > one) == (was in {ast.Lt, ast.LtE})
        return "a wider limit" if raised else ""
    if isinstance(left, ast.Call) or isinstance(right, ast.Call):
        return _looser_call(left, right)
    return ""


def _looser_call(old: ast.expr, new: ast.expr) -> str:
    """Compare tolerances and expected exceptions of two calls, wherever they stand in an expression."""
    before, after = _tolerances(old), _tolerances(new)
    for name, value in after.items():
        was = before.get(name)
        wider = was is not None and ((value < was) if name in DIGITS else (value > was))
        if wider or (was is None and not before and _last(new) == "approx" and _last(old) != "approx"):
            return "a wider tolerance"
    if _last(new) == "approx" and not isinstance(old, ast.Call):
        return "a tolerance was added"
    if not isinstance(old, ast.Call) or not isinstance(new, ast.Call):
        return ""
    if _last(old) == _last(new) in {"raises", "assertRaises", "warns", "assertRaisesRegex", "assertWarns"}:
        return _looser_exception(old, new)
    return ""


def _looser_exception(old: ast.Call, new: ast.Call) -> str:
    one, other = ({written(arg) for arg in _exceptions(call)} for call in (old, new))
    if one != other and (other & BROADEST or one < other):
        return "a broader exception"
    names = [{keyword.arg for keyword in call.keywords} for call in (old, new)]
    return "the message is not looked at any more" if "match" in names[0] - names[1] else ""


def _exceptions(call: ast.Call) -> list[ast.expr]:
    first = call.args[0] if call.args else None
    return [*first.elts] if isinstance(first, ast.Tuple) else [first] if first else []


def _tolerances(tree: ast.expr) -> dict[str, Number]:
    found = {}
    for node in ast.walk(tree):
        for keyword in node.keywords if isinstance(node, ast.Call) else ():
            value = _number(keyword.value)
            if keyword.arg in TOLERANCES | DIGITS and value is not None:
                found[keyword.arg] = value
    return found


def _subject(test: ast.expr) -> str:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _subject(test.operand)
    if isinstance(test, ast.Compare):
        return written(test.left)
    if isinstance(test, ast.Call) and _last(test) in {"raises", "warns"}:
        return _last(test)
    if isinstance(test, ast.Call) and _last(test).lstrip("_").startswith("assert"):
        return f"{written(test.func)} {written(test.args[0]) if test.args else ''}"
    if isinstance(test, ast.Call) and _last(test) in {"isclose", "allclose"}:
        return f"{written(test.func)} {written(test.args[0]) if test.args else ''}"
    return written(test)


def _last(node: ast.expr) -> str:
    """Return the last name of what is called."""
    func = node.func if isinstance(node, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _number(node: ast.expr) -> Number | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return None if inner is None else -inner
    return node.value if isinstance(node, ast.Constant) and _is_number(node.value) else None


def _is_number(value: object) -> TypeGuard[Number]:
    return isinstance(value, int | float) and not isinstance(value, bool)


class Filled(ast.NodeTransformer):
    """Puts a module's constant numbers in the place of their names."""

    def __init__(self, constants: Mapping[str, ast.expr]) -> None:
        self._constants = constants

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Return the number that a name stands for."""
        return self._constants.get(node.id, node)


def constants_of(module: ast.Module) -> dict[str, ast.expr]:
    """Return the names that a module gives a number to, once."""
    found: dict[str, list[ast.expr]] = {}
    for node in module.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
                found.setdefault(target.id, []).append(node.value)
    return {name: values[0] for name, values in found.items() if len(values) == 1 and _number(values[0]) is not None}
