"""Which optimizer an event is about: the whole that it is a part of, what a scheduler drives, what it was handed."""

import ast
import re

from gates.scan.paths.place import Place
from gates.scan.patterns.holes import Hole, Holes
from gates.scan.program.known import OPTIMIZER, SCHEDULER

PARAMETERS = "PARAMETERS"
MAX_HOPS = 4
LISTED = re.compile(r"(.+)\.lr_schedulers\(\)(\[\d+\])")  # Lightning returns both lists in the order of each other


def about(node: ast.AST, holes: Holes, place: Place) -> dict[str, str]:
    """Return what an event tells of an optimizer: which it is about, and what that was handed."""
    found: dict[str, str] = {}
    if "O" in holes:
        found["O"] = _whole(holes["O"].key, place)
    elif "H" in holes and (driven := _driven(holes["H"])) is not None:
        found["O"] = driven
    handed = [each for each in (_handed(h.node, h.names) for h in holes.values()) if each is not None]
    owned = next((key for key in (_owned(*each) for each in handed) if key), None)
    if owned is None and isinstance(node, ast.Call) and node.args and "S" not in holes:
        owned = _owned(node.args[0], place)
    return found if owned is None else {**found, PARAMETERS: owned}


def _whole(key: str, place: Place) -> str:
    """Return the optimizer of the program's own that another is a part of, which a method of it steps or clears."""
    scope = place.scope
    if scope.owner is None or scope.self_name is None or not place.project.types.is_a(scope.owner.name, OPTIMIZER):
        return key
    own = place.key(ast.Name(scope.self_name, ast.Load()))
    return own if key.startswith(f"{own}.") else key


def _driven(hole: Hole) -> str | None:
    """Return the optimizer whose learning rate a scheduler sets: what it was made with, or the one of its place."""
    node, place = hole.node, hole.names
    for _ in range(MAX_HOPS):
        if not isinstance(place, Place) or not isinstance(node, ast.Name | ast.Attribute):
            break
        beside = LISTED.fullmatch(place.key(node))
        if beside is not None:
            return f"{beside[1]}.optimizers(){beside[2]}"
        behind = place.through(node)
        if behind is None:
            return None
        node, place = behind
    if not isinstance(node, ast.Call) or not isinstance(place, Place):
        return None
    is_scheduler = place.project.types.is_a(place.dotted(node.func), SCHEDULER)
    given = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "optimizer")] if is_scheduler else []
    return place.key(given[0]) if given and _is_told(given[0], place, hole.names) else None


def _is_told(node: ast.expr, place: Place, here: object) -> bool:
    """Return whether a variable is one of the path, and not of a function that the path has not come through."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return place is here or (isinstance(node, ast.Name) and node.id in place.names)


def _handed(node: ast.AST, names: object) -> tuple[ast.expr, Place] | None:
    """Return what an optimizer was made for, and its place."""
    if not isinstance(node, ast.expr) or not isinstance(names, Place):
        return None
    made, place = names.made_by(node)
    is_optimizer = made is not None and place.project.types.is_a(place.dotted(made.func), OPTIMIZER)
    return (made.args[0], place) if made is not None and is_optimizer and made.args else None


def _owned(node: ast.expr, place: Place) -> str | None:
    """Return the module of `module.parameters()`."""
    made, where = place.made_by(node)
    of = made.func if made is not None else None
    return where.key(of.value) if isinstance(of, ast.Attribute) and of.attr == "parameters" else None
