"""Whether two places stand in different branches of a condition."""

import ast
from collections.abc import Iterator

from gates.scan.program.module import Module


def is_aside(made: ast.AST, other: ast.AST, module: Module) -> bool:
    """Return whether a statement stands in another branch of a condition than another, so that never both run."""
    above = {node: before for before, node in _up(made, module)}
    for before, branch in _up(other, module):
        if isinstance(branch, ast.If) and branch in above:
            sides = [next((i for i, side in enumerate((branch.body, branch.orelse)) if part in side), -1)
                     for part in (above[branch], before)]  # fmt: skip
            return -1 not in sides and sides[0] != sides[1]
    return False


def _up(node: ast.AST, module: Module) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield what stands around a node, with what holds the node in it."""
    for around in module.ancestors(node):
        yield node, around
        node = around
