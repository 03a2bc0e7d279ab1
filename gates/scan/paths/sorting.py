"""The order that a sort gives to the objects of a list, by an attribute that their classes set."""

import ast
from collections.abc import Sequence

from gates.scan.paths.place import Place
from gates.scan.paths.values import Value
from gates.scan.program.module import tail_of


def sort_in_place(node: ast.expr, place: Place) -> ast.Call | None:
    """Return the sort, where it stands, of a list that is kept as an attribute: `self.hooks.sort(key=by_rank)`."""
    for call, _ in place.project.named.get("sort", ()) if isinstance(node, ast.Attribute) else ():
        held = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(held, ast.Attribute) and held.attr == tail_of(node):
            return call
    return None


def in_order(values: Sequence[Value], sort: ast.Call | None) -> list[Value]:
    """Return objects in the order of a sort by a key; nothing where that cannot be told."""
    given = {keyword.arg: keyword.value for keyword in sort.keywords} if sort is not None else {}
    if "key" not in given:
        return list(values)
    name, sign = _asked(given.get("key"))
    ranks = [_rank(value, name) for value in values]
    reverse = given.get("reverse", ast.Constant(False))
    if not isinstance(reverse, ast.Constant) or any(rank is None for rank in ranks):
        return []
    known = [sign * rank for rank in ranks if rank is not None]
    order = sorted(range(len(values)), key=known.__getitem__, reverse=bool(reverse.value))
    return [values[at] for at in order]


def _asked(key: ast.expr | None) -> tuple[str, int]:
    """Return the attribute that a sort goes by, and whether backwards; no name where it goes by something else."""
    if isinstance(key, ast.Call) and tail_of(key.func) == "attrgetter" and isinstance(key.args[0], ast.Constant):
        return str(key.args[0].value), 1
    asked = key.body if isinstance(key, ast.Lambda) else None
    is_negative = isinstance(asked, ast.UnaryOp) and isinstance(asked.op, ast.USub)
    asked = asked.operand if isinstance(asked, ast.UnaryOp) and is_negative else asked
    name = asked.attr if isinstance(asked, ast.Attribute) and isinstance(asked.value, ast.Name) else ""
    return name, -1 if is_negative else 1


def _rank(value: Value, name: str) -> float | None:
    """Return the number that the class of an object has under a name."""
    if value.place is None or value.type is None:
        return None
    project = value.place.project
    owner = project.classes.get(value.type)
    bound = [binding.node for binding, _ in project.attribute(owner, name)] if owner is not None and name else []
    made = bound[0] if len(bound) == 1 else None
    sign = -1 if isinstance(made, ast.UnaryOp) and isinstance(made.op, ast.USub) else 1
    made = made.operand if isinstance(made, ast.UnaryOp) else made
    known = made.value if isinstance(made, ast.Constant) else None
    return sign * known if isinstance(known, int | float) else None
