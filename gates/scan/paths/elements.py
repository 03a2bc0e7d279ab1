"""What is in a list that code goes through, where that is written out: a list, a mapping's values, a sum of these."""

import ast
from collections.abc import Iterator

from gates.scan.paths.place import Place
from gates.scan.paths.values import Value
from gates.scan.program.module import Named, tail_of
from gates.scan.program.project import Project

COPIES = frozenset({"list", "tuple", "reversed", "iter"})
MAX_ELEMENTS, MAX_OBJECTS, MAX_HOPS = 4, 8, 6


def elements(node: ast.expr, place: Place) -> list[Value] | None:
    """Return the values that a loop goes through, or `None` where these are not known."""
    found = _written(node, place, MAX_HOPS)
    if not found or tail_of(node) in place.project.once(_sorted)[0]:
        return None
    is_told = all(is_object(each) or isinstance(each.constant, str) for each in found)
    return found if len(found) <= (MAX_OBJECTS if is_told else MAX_ELEMENTS) else None


def is_object(value: Value) -> bool:
    """Return whether a value is an object of a class of the program, or a function of it."""
    if value.place is None or value.node is None:
        return False
    if isinstance(value.node, Named):
        return True
    project = value.place.project
    return value.type in project.classes or value.place.dotted(value.node) in project.functions


def mapping(node: ast.expr, place: Place) -> tuple[ast.Dict, Place] | None:
    """Return the mapping that is written out under a name of this file."""
    behind = place.through(node) if isinstance(node, ast.Name | ast.Attribute) else None
    return (behind[0], behind[1]) if behind is not None and isinstance(behind[0], ast.Dict) else None


def _sorted(project: Project) -> Iterator[set[str]]:
    """Yield the names of the lists that the program sorts in place: their order is not the one that is written."""
    calls = (call for module in project.modules.values() for call in module.calls.get("sort", []))
    yield {tail_of(call.func.value) for call in calls if isinstance(call.func, ast.Attribute)}


def _written(node: ast.expr, place: Place, hops: int) -> list[Value] | None:
    """Return the values of a list that is written out, through variables and copies."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in COPIES and node.args:
        found = _written(node.args[0], place, hops)
        return found[::-1] if found is not None and node.func.id == "reversed" else found
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and tail_of(node.func) == "values":
        node = node.func.value
    if isinstance(node, ast.Tuple | ast.List):
        starred = any(isinstance(element, ast.Starred) for element in node.elts)
        return None if starred else [place.value(element) for element in node.elts]
    if isinstance(node, ast.Dict):
        return [place.value(element) for element in node.values] if None not in node.keys else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and hops:
        left, right = (_written(part, place, hops - 1) for part in (node.left, node.right))
        return [*left, *right] if left is not None and right is not None else None
    held = place.find(node) if isinstance(node, ast.Name | ast.Attribute) else None
    if held is not None and isinstance(held.rest, tuple) and held.node is None:
        return list(held.rest)
    behind = place.through(node) if isinstance(node, ast.Name | ast.Attribute) and hops else None
    return _written(behind[0], behind[1], hops - 1) if behind is not None else None
