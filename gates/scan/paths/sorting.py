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
    if sort is None or ("key" not in given and not all(map(is_row, values))):
        return list(values)
    name, sign = _asked(given["key"]) if "key" in given else (0, 1)
    ranks = [_rank(value, name) for value in values]
    reverse = given.get("reverse", ast.Constant(False))
    if not isinstance(reverse, ast.Constant) or any(rank is None for rank in ranks):
        return []
    known = [sign * rank for rank in ranks if rank is not None]
    order = sorted(range(len(values)), key=known.__getitem__, reverse=bool(reverse.value))
    return [values[at] for at in order]


def is_row(value: Value) -> bool:
    """Return whether a value is a tuple that is written out, or a record which is ordered by its fields."""
    if isinstance(value.node, ast.Tuple):
        return True
    owner = value.place.project.classes.get(value.type or "") if value.place is not None else None
    marks = owner.node.decorator_list if owner is not None else []
    return any(k.arg == "order" for mark in marks if isinstance(mark, ast.Call) for k in mark.keywords)


def _asked(key: ast.expr | None) -> tuple[str | int, int]:
    """Return the attribute, or the place in a row, that a sort goes by, and whether backwards; else an empty name."""
    if isinstance(key, ast.Call) and tail_of(key.func) == "attrgetter" and isinstance(key.args[0], ast.Constant):
        return str(key.args[0].value), 1
    if isinstance(key, ast.Call) and tail_of(key.func) == "itemgetter" and isinstance(key.args[0], ast.Constant):
        return key.args[0].value if isinstance(key.args[0].value, int) else "", 1
    asked = key.body if isinstance(key, ast.Lambda) else None
    is_negative = isinstance(asked, ast.UnaryOp) and isinstance(asked.op, ast.USub)
    asked = asked.operand if isinstance(asked, ast.UnaryOp) and is_negative else asked
    name: str | int = asked.attr if isinstance(asked, ast.Attribute) and isinstance(asked.value, ast.Name) else ""
    if isinstance(asked, ast.Subscript) and isinstance(asked.value, ast.Name) and isinstance(asked.slice, ast.Constant):
        name = asked.slice.value if isinstance(asked.slice.value, int) else ""
    return name, -1 if is_negative else 1


def _rank(value: Value, name: str | int) -> float | None:
    """Return the number that a row has at a place, or a record or the class of an object under a name."""
    part = _part(value, name)
    if part is not None and value.place is not None:
        return _number(part, value.place)
    if value.place is None or value.type is None or isinstance(name, int):
        return None
    project = value.place.project
    owner = project.classes.get(value.type)
    bound = [binding.node for binding, _ in project.attribute(owner, name)] if owner is not None and name else []
    made = bound[0] if len(bound) == 1 else None
    return _number(made, value.place) if isinstance(made, ast.expr) else None


def _part(value: Value, name: str | int) -> ast.expr | None:
    """Return what a row has at a place, or what a record was made with for a field."""
    made = value.node
    if isinstance(made, ast.Tuple) and isinstance(name, int):
        return made.elts[name] if -len(made.elts) <= name < len(made.elts) else None
    owner = value.place.project.classes.get(value.type or "") if value.place is not None else None
    if not isinstance(made, ast.Call) or owner is None or "__init__" in owner.methods:
        return None
    lines = (s.target for s in owner.node.body if isinstance(s, ast.AnnAssign))
    fields = [target.id for target in lines if isinstance(target, ast.Name)]
    named = fields[name] if isinstance(name, int) and name < len(fields) else name
    given = {**dict(zip(fields, made.args, strict=False)), **{k.arg: k.value for k in made.keywords if k.arg}}
    return given.get(str(named))


def _number(node: ast.expr, place: Place) -> float | None:
    sign = -1 if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else 1
    known = place.value(node.operand if isinstance(node, ast.UnaryOp) else node)
    return sign * known.constant if isinstance(known.constant, int | float) else None
