"""Assertions in one form, however they are written: the methods of `unittest`, constants on the left, chains."""

import ast

EQUAL = ("assertEqual", "assertEquals", "assertListEqual", "assertTupleEqual", "assertDictEqual", "assertSetEqual",
         "assertSequenceEqual", "assertMultiLineEqual")  # fmt: skip
COMPARES: dict[str, type[ast.cmpop]] = {
    **dict.fromkeys(EQUAL, ast.Eq), "assertNotEqual": ast.NotEq, "assertIs": ast.Is, "assertIsNot": ast.IsNot,
    "assertIn": ast.In, "assertNotIn": ast.NotIn, "assertLess": ast.Lt, "assertLessEqual": ast.LtE,
    "assertGreater": ast.Gt, "assertGreaterEqual": ast.GtE,
}  # fmt: skip
NONE: dict[str, type[ast.cmpop]] = {"assertIsNone": ast.Is, "assertIsNotNone": ast.IsNot}
MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE,
    ast.Eq: ast.Eq, ast.NotEq: ast.NotEq, ast.Is: ast.Is, ast.IsNot: ast.IsNot,
}  # fmt: skip

OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt,
}  # fmt: skip


def plain(test: ast.expr) -> ast.expr:
    """Return what must hold as a bare expression, with what is looked at on the left."""
    test = _of_method(test) if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) else test
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = _negated(plain(test.operand)) or test
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, right, op = test.left, test.comparators[0], type(test.ops[0])
        if op in MIRRORED and _is_constant(left) and not _is_constant(right):
            return _compared(right, MIRRORED[op], left)
    return test


def parts_of(test: ast.expr) -> list[ast.expr]:
    """Return all that must hold at once: the parts of an `and`, the comparisons of a chain."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return [part for value in test.values for part in parts_of(value)]
    if isinstance(test, ast.Compare) and len(test.ops) > 1:
        sides = [test.left, *test.comparators]
        return [plain(_compared(sides[i], type(op), sides[i + 1])) for i, op in enumerate(test.ops)]
    return [plain(test)]


def _of_method(call: ast.Call) -> ast.expr:
    """Return what a method of `unittest` asserts."""
    name, given = call.func.attr if isinstance(call.func, ast.Attribute) else "", call.args
    if name in COMPARES and len(given) > 1:
        return _compared(given[0], COMPARES[name], given[1])
    if name in NONE and given:
        return _compared(given[0], NONE[name], ast.Constant(None))
    if name == "assertTrue" and given:
        return given[0]
    if name == "assertFalse" and given:
        return ast.UnaryOp(ast.Not(), given[0])
    if name == "assertIsInstance" and len(given) > 1:
        return ast.Call(ast.Name("isinstance", ast.Load()), given[:2], [])
    return call


def _negated(test: ast.expr) -> ast.expr | None:
    """Return the comparison that holds where another one does not; `None` for what is none, or a chain of some."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or type(test.ops[0]) not in OPPOSITE:
        return None
    return _compared(test.left, OPPOSITE[type(test.ops[0])], test.comparators[0])


def _compared(left: ast.expr, op: type[ast.cmpop], right: ast.expr) -> ast.expr:
    return ast.Compare(left, [op()], [right])


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)
