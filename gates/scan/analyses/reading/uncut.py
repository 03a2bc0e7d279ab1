"""Values that code cuts off from their graph, and leaves as they are where they are no tensors."""

import ast

from gates.scan.analyses.reading.code import FUNCTIONS
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, walk

CUTS = frozenset({"detach", "item", "tolist", "numpy"})


def is_uncut(value: ast.expr, around: ast.AST) -> bool:
    """Return whether a piece of code cuts a value off beside where it leaves it: `v.item() if is_tensor(v) else v`."""
    return isinstance(value, ast.Name) and any(_cuts(call, value.id) for call in inner(around, ast.Call))


def is_put_uncut(value: ast.expr, node: ast.AST, module: Module) -> bool:
    """Return whether a statement puts a value somewhere as it is in one branch, and another cuts it off."""
    for branch in module.ancestors(node):
        if isinstance(branch, FUNCTIONS):
            return False
        if isinstance(branch, ast.If) and is_uncut(value, branch):
            return True
    return False


def cut_again(body: ast.AST) -> frozenset[str]:
    """Return the variables that a body sets to what it cuts off from them: `v = v.item()`."""
    found = (n for n in inner(body, ast.Assign) if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name))
    return frozenset(
        tail_of(n.targets[0]) for n in found if any(_cuts(call, tail_of(n.targets[0])) for call in walk(n.value))
    )


def _cuts(call: ast.AST, name: str) -> bool:
    """Return whether a call cuts a variable off from its graph: `v.detach()`, `float(v)`."""
    if not isinstance(call, ast.Call):
        return False
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in CUTS and isinstance(call.func.value, ast.Name) and call.func.value.id == name
    given = call.args[0] if len(call.args) == 1 else None
    return tail_of(call.func) == "float" and isinstance(given, ast.Name) and given.id == name
