"""What a condition goes by on a path: the comparisons that its flags, and the functions which it asks, stand for."""

import ast
from collections.abc import Iterator

from gates.scan.paths.place import Place
from gates.scan.paths.values import Value
from gates.scan.program.module import Function, tail_of
from gates.scan.program.nodes import inner, text_of

MAX_HOPS = 4
PLAIN = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)


def guard_of(test: ast.expr, value: Value | None, place: Place) -> str:
    """Return the text of a condition, and in brackets the comparisons behind it; `value` is what the whole of it is."""
    told = dict.fromkeys(_behind(test, value, place, MAX_HOPS))
    return f"{text_of(test)} ({'; '.join(told)})" if told else text_of(test)


def _behind(test: ast.expr, value: Value | None, place: Place, hops: int) -> Iterator[str]:
    """Yield the comparisons that the parts of a condition stand for."""
    if isinstance(test, ast.UnaryOp | ast.NamedExpr):
        yield from _behind(test.operand if isinstance(test, ast.UnaryOp) else test.value, None, place, hops)
    elif isinstance(test, ast.BoolOp):
        for part in test.values:
            yield from _behind(part, None, place, hops)
    elif isinstance(test, ast.IfExp):
        for part in (test.test, test.body, test.orelse):
            yield from _behind(part, None, place, hops)
    elif isinstance(test, ast.Call) and tail_of(test.func) == "bool" and len(test.args) == 1:
        yield from _behind(test.args[0], None, place, hops)
    elif isinstance(test, PLAIN) and hops:
        made, where = _made(test, value or place.find(test), place)
        for each in made:
            yield from _compared(each, where, hops - 1)


def _made(test: ast.expr, value: Value | None, place: Place) -> tuple[list[ast.expr], Place]:
    """Return what made a flag: on this path, by any assignment where it is at its default there, or in a function."""
    is_set = value is not None and not value.is_known and value.node is not test
    if is_set and value is not None and value.node is not None and value.place is not None:
        return [value.node], value.place
    if isinstance(test, ast.Name):
        bound = place.scope.bindings.get(test.id, ()) if place.scope.function is not None else ()
        return [b.node for b in bound if b.kind == "value" and isinstance(b.node, ast.expr)], place
    target = place.project.types.function(test, place.scope) if isinstance(test, ast.Call) else None
    return (_returned(target), place) if target is not None else ([], place)


def _returned(function: Function) -> list[ast.expr]:
    """Return what a function returns, where that is all it does."""
    found = [n for n in inner(function, ast.Return) if isinstance(n, ast.Return)]
    return [n.value for n in found if n.value is not None] if len(found) == 1 else []


def _compared(made: ast.expr, place: Place, hops: int) -> Iterator[str]:
    """Yield the comparisons in what made a flag, those that stand behind other flags too."""
    if isinstance(made, ast.Compare):
        yield text_of(made)
    elif isinstance(made, ast.BoolOp | ast.IfExp):
        parts = made.values if isinstance(made, ast.BoolOp) else [made.test, made.body, made.orelse]
        for part in parts:
            yield from _compared(part, place, hops)
    elif isinstance(made, ast.UnaryOp):
        yield from _compared(made.operand, place, hops)
    elif isinstance(made, ast.Call) and tail_of(made.func) == "bool" and len(made.args) == 1:
        yield from _compared(made.args[0], place, hops)
    else:
        yield from _behind(made, None, place, hops)
