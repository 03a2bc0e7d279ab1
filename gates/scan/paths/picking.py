"""Calls that may run one of several functions: the sides of a choice, the classes of an object."""

import ast

from gates.scan.paths.conditions import branch
from gates.scan.paths.running import Running
from gates.scan.paths.stacks import Run
from gates.scan.paths.state import State
from gates.scan.paths.values import Value
from gates.scan.program.nodes import kept
from gates.scan.program.scope import Scope
from gates.scan.program.types import is_choice

Paths = list[State]


class Picking(Running):
    """Forks paths by which function a call runs."""

    def of_choice(self, node: ast.Call, chosen: ast.IfExp, paths: Paths, scope: Scope) -> Run:
        """Run the method of what is chosen of two: `(scaler.scale(loss) if scaler else loss).backward()`."""
        found: Run = []
        for path in paths:
            for side, truth in branch(chosen.test, path, self.place(path, scope)):
                found += self.call(kept(node, _sides)[not truth], [side], scope)
        return found

    def sorted_by(self, func: ast.expr, path: State, scope: Scope) -> Paths:
        """Fork by the classes that the object of a method may be of, where it is one of several."""
        held = func.value if isinstance(func, ast.Attribute) else None
        if not isinstance(held, ast.Name | ast.Attribute):
            return [path]
        place = self.place(path, scope)
        known = place.find(held)
        made = known.node if known is not None else None
        chosen = isinstance(made, ast.Call) and known.place is not None and is_choice(made.func, known.place.scope)  # type: ignore[union-attr]  # it made something
        chosen = chosen or (isinstance(made, ast.Name) and known is not None and known.type is None)
        if known is not None and (known.owner is not None or (made is not None and not chosen)):
            return [path]
        kinds = self.project.alternatives.of(held, scope)
        found: Paths = []
        for kind in kinds:
            value = Value(f"{place.key(held)}.as_{kind.node.name}", owner=kind)
            if isinstance(held, ast.Name):
                found.append(path.binds(held.id, value))
            else:
                found.append(path.stores(f"{place.key(held.value)}.{held.attr}", value))
        return found or [path]


def _sides(node: ast.Call) -> tuple[ast.Call, ast.Call]:
    """Return the calls of a method of the one and of the other side of a choice."""
    assert isinstance(node.func, ast.Attribute)
    assert isinstance(node.func.value, ast.IfExp)
    one, other = (
        ast.copy_location(ast.Attribute(part, node.func.attr, ast.Load()), node.func)
        for part in (node.func.value.body, node.func.value.orelse)
    )
    return tuple(ast.copy_location(ast.Call(func, node.args, node.keywords), node) for func in (one, other))  # type: ignore[return-value]  # two
