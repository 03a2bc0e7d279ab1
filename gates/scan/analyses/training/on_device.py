"""What lies on the device for certain: losses, results of models, and what is reckoned from these."""

import ast
import re

from gates.scan.analyses.reading.code import calls, is_backward
from gates.scan.analyses.reading.flow import is_forward
from gates.scan.analyses.reading.origins import Origin, Origins
from gates.scan.program.module import tail_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

READS = frozenset({"item", "tolist", "cpu", "numpy"})
MAKER = re.compile(r"(?i)klass|class|cls|factory|builder")
MAX_DEPTH = 7
OUTPUTS = frozenset({"loss", "logits"})  # of what a model returns
JOINS = frozenset({"Categorical", "Normal", "Bernoulli", "minimum", "maximum", "stack", "cat", "where"})
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
        "entropy",
        "log",
        "log_prob",
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
        "square",
        "sigmoid",
        "softmax",
        "to",
        "var",
    }
)


def is_on_device(project: Project, origins: Origins, node: ast.expr, scope: Scope) -> bool:
    """Return whether some way leads from a device's result to a value, and none that is known reads it before."""
    return _Results(project, origins).lead_to(node, scope, MAX_DEPTH)


class _Results:
    """Answers whether a value is reckoned from what a device made; each expression is looked at once."""

    def __init__(self, project: Project, origins: Origins) -> None:
        self._project = project
        self._origins = origins
        self._seen: set[ast.expr] = set()

    def lead_to(self, node: ast.expr, scope: Scope, depth: int, *, reckoned: bool = False) -> bool:
        """Return whether a value comes from a device; of what is reckoned with, a part of a result does, too."""
        for found, where, path in self._origins.ways(node, scope):
            if path and not (
                reckoned and isinstance(found, ast.Call) and is_forward(self._project, where.module, found)
            ):
                continue
            if found not in self._seen:
                self._seen.add(found)
                if path or self._is_result(Origin(found, where), depth):
                    return True
        return False

    def _is_result(self, origin: Origin, depth: int) -> bool:
        node = origin.node
        if isinstance(node, ast.Name):
            return node.id in differentiated(origin.scope.function or origin.module.tree)
        if isinstance(node, ast.Call):
            return self._is_made(node, origin, depth)
        if isinstance(node, ast.Attribute) and _is_differentiated(self._origins, node, origin.scope):
            return True
        parts: list[ast.expr] = []
        if isinstance(node, ast.BinOp):
            parts = [node.left, node.right]
        elif isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            parts = [node.operand]
        elif isinstance(node, ast.Attribute) and node.attr == "grad":
            return True
        elif isinstance(node, ast.Attribute) and node.attr in OUTPUTS:
            parts = [node.value]
        return depth > 0 and any(self.lead_to(n, origin.scope, depth - 1, reckoned=True) for n in parts)

    def _is_made(self, node: ast.Call, origin: Origin, depth: int) -> bool:
        named = origin.scope.dotted(node.func) or ""
        if named.startswith(("torch.nn.functional.", "torch.nn.utils.clip_grad_norm")):
            return True
        if isinstance(node.func, ast.Attribute) and node.func.attr == "detach":
            return True
        if isinstance(node.func, ast.Attribute) and node.func.attr in REDUCES and not named.startswith("torch."):
            held = not _to_host(node) and depth > 0
            return held and self.lead_to(node.func.value, origin.scope, depth - 1, reckoned=True)
        if named.startswith("torch.") and depth and named.rpartition(".")[2] in REDUCES | JOINS:
            given = [*node.args[:2], *(k.value for k in node.keywords)]
            return any(self.lead_to(arg, origin.scope, depth - 1, reckoned=True) for arg in given)
        if node.args or node.keywords:
            return not MAKER.search(tail_of(node.func)) and is_forward(self._project, origin.module, node)
        return False


def _is_differentiated(origins: Origins, node: ast.Attribute, scope: Scope) -> bool:
    """Return whether a backward pass starts from an attribute: in a method of its object, or where that comes from."""
    owners = origins.classes(node.value, scope)
    named = (
        f"{m.args.args[0].arg}.{node.attr}" in differentiated(m)
        for o in owners
        for m in o.methods.values()
        if m.args.args
    )
    held = (o for o in origins.of(node.value, scope) if isinstance(o.node, ast.Name))
    return any(named) or any(
        f"{tail_of(o.node)}.{node.attr}" in differentiated(o.scope.function or o.module.tree) for o in held
    )


def _to_host(call: ast.Call) -> bool:
    return any(isinstance(arg, ast.Constant) and arg.value == "cpu" for arg in call.args)


def differentiated(body: ast.AST) -> set[str]:
    """Return the names and the plain attributes that the backward passes of a body start from."""
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
    if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name):
        return {f"{value.value.id}.{value.attr}"}
    if isinstance(value, ast.Call) and tail_of(value.func) == "scale":
        return set().union(*map(_terms, value.args))
    if isinstance(value, ast.BinOp):
        return _terms(value.left) | (_terms(value.right) if isinstance(value.op, ast.Add | ast.Sub) else set())
    return set()
