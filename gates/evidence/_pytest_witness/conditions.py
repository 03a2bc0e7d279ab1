"""What the assertions of unittest ask for, as conditions: `assertIsNotNone(x)` asks for `x is not None`."""

import ast

COMPARING: dict[str, type[ast.cmpop]] = {
    "assertEqual": ast.Eq, "assertNotEqual": ast.NotEq, "assertIs": ast.Is, "assertIsNot": ast.IsNot,
    "assertIn": ast.In, "assertNotIn": ast.NotIn, "assertGreater": ast.Gt, "assertGreaterEqual": ast.GtE,
    "assertLess": ast.Lt, "assertLessEqual": ast.LtE,
}  # fmt: skip
OF_NONE: dict[str, type[ast.cmpop]] = {"assertIsNone": ast.Is, "assertIsNotNone": ast.IsNot}


def condition_of(call: ast.Call) -> ast.expr | None:
    """Return what a call of an assertion of unittest asks for; `None` for one that is not known."""
    name, given = getattr(call.func, "attr", ""), call.args
    if name in OF_NONE and given:
        return ast.Compare(given[0], [OF_NONE[name]()], [ast.Constant(None)])
    if name in {"assertTrue", "assertFalse"} and given:
        return given[0] if name == "assertTrue" else ast.UnaryOp(ast.Not(), given[0])
    if len(given) < 2:
        return None
    if name == "assertIsInstance":
        return ast.Call(ast.Name("isinstance", ast.Load()), given[:2], [])
    return ast.Compare(given[0], [COMPARING[name]()], [given[1]]) if name in COMPARING else None


def waits_for_anything(call: ast.expr, *more: str) -> bool:
    """Return whether an assertion waits for an exception of any kind, or for one of some more names."""
    first = call.args[0] if isinstance(call, ast.Call) and call.args else None
    return isinstance(first, ast.Name) and first.id in {"Exception", "BaseException", *more}
