"""Calls that may run one of two functions: the sides of a choice."""

import ast

from gates.scan.paths.conditions import branch
from gates.scan.paths.contexts import Run
from gates.scan.paths.running import Running
from gates.scan.paths.state import State
from gates.scan.program.nodes import kept
from gates.scan.program.scope import Scope

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


def _sides(node: ast.Call) -> tuple[ast.Call, ast.Call]:
    """Return the calls of a method of the one and of the other side of a choice."""
    assert isinstance(node.func, ast.Attribute)
    assert isinstance(node.func.value, ast.IfExp)
    one, other = (
        ast.copy_location(ast.Attribute(part, node.func.attr, ast.Load()), node.func)
        for part in (node.func.value.body, node.func.value.orelse)
    )
    return tuple(ast.copy_location(ast.Call(func, node.args, node.keywords), node) for func in (one, other))  # type: ignore[return-value]  # two
