"""Questions of the host whether a loss is a number: `if not torch.isfinite(loss)` waits for the device."""

import ast

from gates.scan.analyses.reading.origins import Origins
from gates.scan.analyses.training.graphs import is_cut
from gates.scan.analyses.training.on_device import differentiated
from gates.scan.program.module import Module, tail_of
from gates.scan.program.scope import Scope

ASKS = frozenset({"isfinite", "isnan", "isinf"})
WRAPS = frozenset({"all", "any", "bool"})
SCALES = frozenset({"scale", "unscale_", "GradScaler"})


def is_asked(call: ast.expr, module: Module) -> bool:
    """Return whether the host goes one way or another by whether a value is a number."""
    if not isinstance(call, ast.Call) or tail_of(call.func) not in ASKS:
        return False
    inside: ast.AST = call
    around = module.parents.get(call)
    while isinstance(around, ast.UnaryOp | ast.BoolOp | ast.Attribute | ast.Call):
        if isinstance(around, ast.Attribute | ast.Call) and tail_of(getattr(around, "func", around)) not in WRAPS:
            return False
        inside, around = around, module.parents.get(around)
    return isinstance(around, ast.If | ast.IfExp) and around.test is inside


def asked_for(call: ast.Call) -> ast.expr:
    """Return the value that is asked for: of `loss.isnan()` and of `torch.isnan(loss)`, the loss."""
    return call.args[0] if call.args else getattr(call.func, "value", call.func)


def is_loss(origins: Origins, value: ast.expr, scope: Scope) -> bool:
    """Return whether a value is what a backward pass starts from, which no scaler is to look after."""
    for found in origins.of(value, scope):
        body = found.scope.function or found.module.tree
        name = found.node.id if isinstance(found.node, ast.Name) else ""
        if name in differentiated(body) and not SCALES & found.module.calls.keys():
            return not is_cut(name, found.node, found.module, body)
    return False
