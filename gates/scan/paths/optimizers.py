"""Which optimizer an event is about: the whole that it is a part of, what a scheduler drives."""

import ast
import re

from gates.scan.paths.place import Place
from gates.scan.patterns.holes import Hole, Holes
from gates.scan.program.known import OPTIMIZER, SCHEDULER

MAX_HOPS = 4
LISTED = re.compile(r"(.+)\.lr_schedulers\(\)(\[\d+\])")  # Lightning returns both lists in the order of each other


def about(holes: Holes, place: Place) -> dict[str, str]:
    """Return which optimizer an event is about, where it tells."""
    if "O" in holes:
        return {"O": _whole(holes["O"].key, place)}
    driven = _driven(holes["H"]) if "H" in holes else None
    return {} if driven is None else {"O": driven}


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
