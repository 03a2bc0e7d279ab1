"""What a program says of precision: its scalers, its autocast contexts and their types."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses._code import constant, keyword
from gates.scan.module import Module, tail_of
from gates.scan.project import Project
from gates.scan.scope import Scope

AUTOCAST = {
    "torch.amp.autocast",
    "torch.autocast",
    "torch.cuda.amp.autocast",
    "torch.amp.autocast_mode.autocast",
    "torch.cuda.amp.autocast_mode.autocast",
    "torch.cpu.amp.autocast",
}
SCALER = {
    "torch.amp.GradScaler",
    "torch.GradScaler",
    "torch.cuda.amp.GradScaler",
    "torch.amp.grad_scaler.GradScaler",
    "torch.cuda.amp.grad_scaler.GradScaler",
    "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler",
}
SCALES = re.compile(
    r"scaler|scale_loss|loss_scale|Accelerator|Fabric|deepspeed|LightningModule|Trainer\b|apex", re.IGNORECASE
)
HALF, BRAIN = "torch.float16", "torch.bfloat16"
SAME = {"torch.half": HALF, "torch.float16": HALF, "torch.bfloat16": BRAIN}


def autocasts(project: Project, module: Module) -> Iterator[tuple[ast.Call, Scope]]:
    """Yield the calls that make an autocast context, `partial(autocast, ...)` too."""
    for name in ("autocast", "partial"):
        for call in module.calls.get(name, []):
            scope = project.scope_at(call, module)
            made = call.args[0] if name == "partial" and call.args else call.func
            if scope.dotted(made) in AUTOCAST:
                yield call, scope
    for tail, found in module.calls.items():
        for call in found if tail not in {"autocast", "partial"} else ():
            scope = project.scope_at(call, module)
            if isinstance(call.func, ast.Name) and "cast" in tail and scope.dotted(call.func) in AUTOCAST:
                yield call, scope


def dtype_of(call: ast.Call, scope: Scope) -> str | None:
    """Return the type of an autocast context, that of the device where none is given; `None` where it is not known."""
    given = keyword(call, "dtype")
    args = call.args[1:] if tail_of(call.func) == "partial" else call.args
    old = (scope.dotted(call.func) or "").startswith("torch.cuda.amp")
    if given is None and not old and len(args) > 1:
        given = args[1]
    if given is not None:
        return type_named(given, scope)
    device = keyword(call, "device_type") or (args[0] if args and not old else None)
    return HALF if old or constant(device) == "cuda" else None


def type_named(node: ast.expr, scope: Scope, hops: int = 4) -> str | None:
    """Return the full name of a type of numbers that an expression is, through variables that are bound once."""
    dotted = scope.dotted(node) if not isinstance(node, ast.IfExp) else None
    if dotted in SAME:
        return SAME[dotted]
    through = scope.through(node) if hops else None
    if through is not None and isinstance(through[1], Scope):
        return type_named(through[0], through[1], hops - 1)
    return None


def scalers(project: Project, module: Module) -> Iterator[tuple[ast.Call, Scope]]:
    """Yield the calls that make a scaler."""
    for found in module.calls.values():
        for call in found:
            if "caler" in tail_of(call.func):
                scope = project.scope_at(call, module)
                if scope.dotted(call.func) in SCALER:
                    yield call, scope


def is_on(call: ast.Call) -> bool:
    """Return whether a scaler or a context is turned on for sure."""
    enabled = keyword(call, "enabled")
    return enabled is None or constant(enabled) is True


def knows_scaling(module: Module) -> bool:
    """Return whether a file speaks of anything that scales losses, its own or a framework's."""
    names = [n.id for n in module.live.get(ast.Name, []) if isinstance(n, ast.Name)]
    names += [n.attr for n in module.live.get(ast.Attribute, []) if isinstance(n, ast.Attribute)]
    names += [n.arg for n in module.live.get(ast.arg, []) if isinstance(n, ast.arg)]
    return any(SCALES.search(name) for name in (*names, *module.aliases.values()))


def context_of(item: ast.withitem, scope: Scope) -> tuple[ast.Call, Scope] | None:
    """Return the call that makes the autocast context of a `with`, a stored one followed."""
    return _made(item.context_expr, scope, 4)


def _made(node: ast.expr, scope: Scope, hops: int) -> tuple[ast.Call, Scope] | None:
    if isinstance(node, ast.Call):
        if scope.dotted(node.func) in AUTOCAST:
            through = scope.through(node.func)
            if through is not None and isinstance(through[0], ast.Call):
                return through[0], through[1]  # a partial
            return node, scope
        return None
    if isinstance(node, ast.IfExp):
        return _made(node.body, scope, hops) or _made(node.orelse, scope, hops)
    through = scope.through(node) if hops else None
    return _made(through[0], through[1], hops - 1) if through is not None else None
