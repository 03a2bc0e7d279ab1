"""What `getattr` asks an object for by a text: which text that is on a path, and whether the object has it."""

import ast

from gates.scan.paths.place import Place
from gates.scan.paths.values import Value
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import tail_of
from gates.scan.program.project import Project

ANSWERING = ("__getattr__", "__getattribute__")


def text_of(node: ast.expr, place: Place) -> str | None:
    """Return the text that an expression is on a path."""
    if isinstance(node, ast.JoinedStr):
        parts = [text_of(p.value if isinstance(p, ast.FormattedValue) else p, place) for p in node.values]
        return "".join(part for part in parts if part is not None) if None not in parts else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = text_of(node.left, place), text_of(node.right, place)
        return left + right if left is not None and right is not None else None
    found = place.value(node).constant
    return found if isinstance(found, str) else None


def is_found(value: Value) -> bool | None:
    """Return whether `getattr` finds a method, or nothing beside its default; `None` where that is not known."""
    asked, place = value.node, value.place
    if not isinstance(asked, ast.Call) or place is None or tail_of(asked.func) != "getattr" or len(asked.args) < 2:
        return None
    name, owner = text_of(asked.args[1], place), place.owner_of(asked.args[0])
    if name is None or owner is None:
        return None
    if place.project.method(owner, name) is not None:
        return True
    is_none = len(asked.args) > 2 and isinstance(asked.args[2], ast.Constant) and not asked.args[2].value
    is_set = f"{place.key(asked.args[0])}.{name}" in place.heap
    return False if is_none and not is_set and _lacks(owner, name, place.project) else None


def _lacks(owner: ClassInfo, name: str, project: Project) -> bool:
    """Return whether no class that an object is of, each one of the program's own, has anything of a name."""
    line = project.order_of(owner)
    whole = all(base in project.classes or base == "object" for info in line for base in info.bases)
    return whole and not any(info.twice or name in info.attributes or _answers(info) for info in line)


def _answers(info: ClassInfo) -> bool:
    return any(name in info.methods for name in ANSWERING)
