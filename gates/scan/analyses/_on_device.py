"""What lies on the device for certain: losses, results of models, and what is reckoned from these."""

import ast
import re

from gates.scan.analyses._code import calls, is_backward
from gates.scan.analyses._flow import is_forward
from gates.scan.analyses._origins import Origin, Origins
from gates.scan.module import tail_of
from gates.scan.project import Project
from gates.scan.scope import Scope

READS = frozenset({"item", "tolist", "cpu", "numpy"})
MAKER = re.compile(r"(?i)klass|class|cls|factory|builder")
MAX_DEPTH = 4
REDUCES = frozenset(
    {
        "abs",
        "amax",
        "amin",
        "clamp",
        "clone",
        "contiguous",
        "detach",
        "exp",
        "float",
        "double",
        "log",
        "max",
        "mean",
        "min",
        "norm",
        "pow",
        "sqrt",
        "sum",
        "std",
        "squeeze",
        "view",
        "reshape",
        "flatten",
        "argmax",
        "softmax",
        "to",
        "var",
    }
)


def is_on_device(project: Project, origins: Origins, node: ast.expr, scope: Scope, depth: int = MAX_DEPTH) -> bool:
    """Return whether some way leads from a device's result to a value, and none that is known reads it before."""
    return any(_is_result(project, origins, origin, depth) for origin in origins.of(node, scope))


def _is_result(project: Project, origins: Origins, origin: Origin, depth: int) -> bool:
    node = origin.node
    if isinstance(node, ast.Name):
        return node.id in differentiated(origin.scope.function or origin.module.tree)
    if isinstance(node, ast.BinOp) and depth:
        return any(is_on_device(project, origins, n, origin.scope, depth - 1) for n in (node.left, node.right))
    if not isinstance(node, ast.Call):
        return False
    named = origin.scope.dotted(node.func) or ""
    if named.startswith(("torch.nn.functional.", "torch.nn.utils.clip_grad_norm")):
        return True
    if isinstance(node.func, ast.Attribute) and node.func.attr == "detach":
        return True
    if isinstance(node.func, ast.Attribute) and node.func.attr in REDUCES and depth:
        return not _to_host(node) and is_on_device(project, origins, node.func.value, origin.scope, depth - 1)
    return bool(node.args) and not MAKER.search(tail_of(node.func)) and is_forward(project, origin.module, node)


def _to_host(call: ast.Call) -> bool:
    return any(isinstance(arg, ast.Constant) and arg.value == "cpu" for arg in call.args)


def differentiated(body: ast.AST) -> set[str]:
    """Return the names of the losses that the backward passes of a body start from."""
    found: set[str] = set()
    for call in calls(body):
        if is_backward(call) and isinstance(call.func, ast.Attribute):
            for value in (call.func.value, *call.args):
                found |= _terms(value)
    return found


def _terms(value: ast.expr) -> set[str]:
    """Return the names that a loss is the scaled sum of."""
    if isinstance(value, ast.Name):
        return set() if value.id == "self" else {value.id}
    if isinstance(value, ast.Call) and tail_of(value.func) == "scale":
        return set().union(*map(_terms, value.args))
    if isinstance(value, ast.BinOp):
        return _terms(value.left) | (_terms(value.right) if isinstance(value.op, ast.Add | ast.Sub) else set())
    return set()
