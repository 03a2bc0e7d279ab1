"""Has the values looked at that assertions ask for, where that can be told only as they run."""

import ast

from . import insertions
from .tolerance import last_name


def look_at(statement: ast.stmt, number: ast.Constant) -> list[ast.stmt]:
    """Have the parts and the message of an assertion looked at; return what is to come after it."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    test = statement.test if isinstance(statement, ast.Assert) else None
    if isinstance(call, ast.Call) and last_name(call.func) == "assertTrue" and call.args:
        test = call.args[0]
        _look_at_message(call)
    parts = _all_parts(test)
    if parts is None:
        return []
    parts.elt = insertions.answer("each", parts.elt, number, parts.elt)
    return [insertions.call("all_of", statement, number, ast.Constant(statement.lineno))]


def _all_parts(test: ast.expr | None) -> ast.GeneratorExp | ast.ListComp | None:
    """Return what `all` goes through."""
    if not isinstance(test, ast.Call) or not isinstance(test.func, ast.Name) or test.func.id != "all":
        return None
    given = test.args[0] if len(test.args) == 1 else None
    return given if isinstance(given, ast.GeneratorExp | ast.ListComp) else None


def _look_at_message(call: ast.Call) -> None:
    value, line = call.args[0], ast.Constant(call.lineno)
    message = call.args[1] if len(call.args) == 2 else None
    if isinstance(message, ast.Constant | ast.Name | ast.Attribute | ast.Subscript | ast.List | ast.Tuple | ast.Dict):
        plain = ast.Constant(isinstance(message, ast.Constant))
        titled = insertions.answer("titled", value, value, message, line, plain)
        call.args = [ast.copy_location(ast.Starred(titled, ast.Load()), value)]
    elif isinstance(value, ast.Attribute | ast.Call | ast.Name):
        call.args[0] = insertions.answer("value", value, value, ast.Constant(_name(value)), line)


def values_in(module: ast.Module) -> dict[tuple[int, int], str | None]:
    """Return where a value is asserted by itself, each with the name of the attribute that it is."""
    asserts = (node for node in ast.walk(module) if isinstance(node, ast.Assert))
    plain = (node for node in asserts if isinstance(node.test, ast.Attribute | ast.Call | ast.Name))
    return {(node.lineno, node.col_offset): _name(node.test) for node in plain}


def look_at_values(module: ast.Module, values: dict[tuple[int, int], str | None]) -> None:
    """Have those values looked at, once pytest has rewritten the assertions to `if not value: raise`."""
    for node in ast.walk(module):
        if not isinstance(node, ast.If) or not isinstance(node.body[-1], ast.Raise):
            continue
        where = (node.lineno, node.col_offset)
        if where in values and isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not):
            value, line = node.test.operand, ast.Constant(node.lineno)
            node.test.operand = insertions.answer("value", value, value, ast.Constant(values[where]), line)


def _name(value: ast.expr) -> str | None:
    """Return the name of an attribute, `name()` of one that is called, and `None` of what is kept under its own."""
    called = isinstance(value, ast.Call)
    named = value.func if isinstance(value, ast.Call) else value
    if isinstance(named, ast.Attribute):
        return f"{named.attr}()" if called else named.attr
    return "" if called else None
