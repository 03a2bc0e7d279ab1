"""Calls of methods by other names: `advance = scaler.step`, `partial(scaler.step, optimizer)`."""

import ast

from gates.scan.paths.place import Place
from gates.scan.program.module import tail_of


def by_method(call: ast.Call, place: Place) -> tuple[ast.Call, Place] | None:
    """Return the call of a method that calling a variable comes to, and a place where its parts are known."""
    behind = place.through(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else None
    if behind is None:
        return None
    made, where = behind
    given: list[ast.expr] = []
    named: list[ast.keyword] = []
    if isinstance(made, ast.Call) and tail_of(made.func) == "partial" and made.args:
        given, named, made = made.args[1:], made.keywords, made.args[0]
    if not isinstance(made, ast.Attribute):
        return None
    parts = {f"<{at}>": where.value(part) for at, part in enumerate([made.value, *given])}
    held, *args = (ast.copy_location(ast.Name(name, ast.Load()), call) for name in parts)
    func = ast.copy_location(ast.Attribute(held, made.attr, ast.Load()), call)
    told = ast.copy_location(ast.Call(func, [*args, *call.args], [*named, *call.keywords]), call)
    return told, Place(place.project, place.scope, {**place.names, **parts}, place.heap, place.turns)
