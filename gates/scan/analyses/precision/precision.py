"""What a program says of precision: its scalers, its autocast contexts and their types."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.reading.code import constant, keyword, tail_text
from gates.scan.analyses.reading.flow import passed
from gates.scan.analyses.settings import settings
from gates.scan.analyses.settings.defaults import behind_of, defaults, under
from gates.scan.analyses.settings.settings import handed, is_nothing, outcome, setting
from gates.scan.program.known import OPTIMIZER
from gates.scan.program.known import SCALER as SCALERS
from gates.scan.program.module import Module, tail_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

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
STEPPED = re.compile(r"(?i)scaler|optim|\bopt|opt\b|_opt")
SCALES = re.compile(r"(?i)scaler|scale_loss|loss_scale|^(accelerator|fabric)$")
FRAMEWORKS = re.compile(
    r"^(accelerate|lightning|pytorch_lightning|deepspeed|apex|ignite|composer)(\.|$)|^transformers\..*Train"
)
OTHERS = re.compile(r"^sklearn\.|(Standard|MinMax|Robust|MaxAbs)Scaler$")
HALF, BRAIN, WHOLE = "torch.float16", "torch.bfloat16", "torch.float32"
SAME = {"torch.half": HALF, "torch.float16": HALF, "torch.bfloat16": BRAIN, "torch.float32": WHOLE}


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
    given = option(call, "dtype", scope)
    args = call.args[1:] if tail_of(call.func) == "partial" else call.args
    old = (scope.dotted(call.func) or "").startswith("torch.cuda.amp")
    if given is None and not old and len(args) > 1:
        given = args[1]
    if given is not None:
        return type_named(given, scope)
    if any(k.arg is None and not _is_written(k.value, scope) for k in call.keywords):
        return None
    device = option(call, "device_type", scope) or (args[0] if args and not old else None)
    return HALF if old or constant(device) == "cuda" else None


def _is_written(options: ast.expr, scope: Scope) -> bool:
    """Return whether `**options` are written out, so that what they lack is known, too."""
    made = scope.through(options) if not isinstance(options, ast.Dict | ast.Call) else (options, scope)
    if made is None:
        return False
    node = made[0]
    return isinstance(node, ast.Dict) or (isinstance(node, ast.Call) and tail_of(node.func) == "dict")


def option(call: ast.Call, name: str, scope: Scope) -> ast.expr | None:
    """Return what a call passes for a keyword, by itself or in `**options` that are written out."""
    found = keyword(call, name)
    for rest in (k.value for k in call.keywords if k.arg is None) if found is None else ():
        kept = under(rest, name, scope, 4)
        found = kept[0] if kept is not None else found
    return found


def type_named(node: ast.expr, scope: Scope, hops: int = 4) -> str | None:
    """Return the full name of a type of numbers that an expression is, through variables that are bound once."""
    if isinstance(node, ast.IfExp):
        kinds = {type_named(part, scope, hops - 1) for part in (node.body, node.orelse)} if hops else set()
        side = holds(node.test, scope) if hops and kinds not in ({HALF, WHOLE}, {None}) and len(kinds) > 1 else None
        if side is not None:
            return type_named(node.body if side else node.orelse, scope, hops - 1)
        return next(iter(kinds)) if len(kinds) == 1 else HALF if kinds == {HALF, WHOLE} else None
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and hops:
        first = type_named(node.values[0], scope, hops - 1)
        return first or (type_named(node.values[-1], scope, hops - 1) if is_nothing(node.values[0], scope) else None)
    made = scope.through(node) if hops else None
    if made is not None and isinstance(made[0], ast.IfExp):
        return type_named(made[0], made[1], hops - 1)
    dotted = scope.dotted(node)
    if dotted in SAME:
        return SAME[dotted] if not _is_either(node, scope) else None
    if isinstance(node, ast.Subscript) and (key := setting(node.slice, scope)) is not None:
        return _under(node.value, key, scope, hops)
    if isinstance(node, ast.Call) and tail_of(node.func) == "getattr" and len(node.args) > 1:
        return SAME.get(f"{scope.dotted(node.args[0])}.{setting(node.args[1], scope)}")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        return _under(node.func.value, setting(node.args[0], scope), scope, hops)
    return _behind(node, scope, hops)


def _is_either(node: ast.expr, scope: Scope) -> bool:
    """Return whether a variable is set to both short types, each on a way of its own."""
    found = scope.lookup(node.id) if isinstance(node, ast.Name) else None
    values = [b.node for b in found[1] if isinstance(b.node, ast.expr)] if found is not None else []
    return found is not None and {HALF, BRAIN} <= {SAME.get(found[0].dotted(value) or "") for value in values}


def _behind(node: ast.expr, scope: Scope, hops: int) -> str | None:
    """Return the type of numbers that a name is by what it is handed, or made of by default."""
    if isinstance(node, ast.Attribute) and node.attr == "value" and hops and (kept := behind_of(node.value, scope)):
        return type_named(ast.copy_location(ast.Attribute(kept[0], "value", ast.Load()), node), kept[1], hops - 1)
    told = _told(node, scope, hops - 1) if hops else set()
    if len(told - {None}) > 1 or (told and None not in told):
        return told.pop() if len(told) == 1 else None
    through = behind_of(node, scope) if hops else None
    through = through or (next(defaults(node, scope), None) if hops and isinstance(node, ast.Attribute) else None)
    through = through or outcome(node, scope, hops, _meant)
    if through is not None:
        return type_named(through[0], through[1], hops - 1)
    return _handed(node, scope, hops) if isinstance(node, ast.Name) and hops else None


def _told(node: ast.expr, scope: Scope, hops: int) -> set[str | None]:
    """Return the types of numbers that callers pass for a parameter, or makers of objects for a field."""
    return {type_named(*each, hops) if each is not None else None for each in handed(node, scope)}


def _handed(node: ast.Name, scope: Scope, hops: int) -> str | None:
    """Return the type of numbers that every caller passes for a parameter."""
    found = scope.lookup(node.id)
    if found is None or any(binding.kind != "parameter" for binding in found[1]):
        return None
    kinds = {type_named(value, where, hops - 1) for value, where, _ in passed(scope.project, node.id, found[0])}
    return kinds.pop() if len(kinds) == 1 else None


def _under(container: ast.expr, key: object, scope: Scope, hops: int) -> str | None:
    """Return the type of numbers that stands under a key of a dictionary that is written out."""
    found = under(container, key, scope, 8)
    return type_named(found[0], found[1], hops - 1) if found is not None and hops else None


def scalers(project: Project, module: Module) -> Iterator[tuple[ast.Call, Scope]]:
    """Yield the calls that make a scaler."""
    for found in module.calls.values():
        for call in found:
            if "caler" in tail_of(call.func):
                scope = project.scope_at(call, module)
                if scope.dotted(call.func) in SCALER:
                    yield call, scope


def is_scaler(node: ast.expr, scope: Scope) -> bool:
    """Return whether an object is a scaler of losses: by what it is called, or by its class."""
    if "caler" in tail_of(node):
        return True
    return scope.project.types.is_a(scope.project.types.of(node, scope), SCALERS) is True


def is_step(project: Project, module: Module, func: ast.expr) -> bool:
    """Return whether a method steps an optimizer or a scaler: by what its object is called, or by its class."""
    if not isinstance(func, ast.Attribute) or func.attr != "step":
        return False
    if STEPPED.search(tail_text(func.value)):
        return True
    named = project.types.of(func.value, project.scope_at(func, module))
    return any(project.types.is_a(named, kind) for kind in (OPTIMIZER, SCALERS))


def is_on(call: ast.Call) -> bool:
    """Return whether a scaler or a context is turned on for sure."""
    enabled = keyword(call, "enabled")
    return enabled is None or constant(enabled) is True


def holds(node: ast.expr, scope: Scope) -> bool | None:
    """Return whether a condition on settings holds where nobody changes these; `None` where that is not known."""
    return settings.holds(node, scope, _meant)


def _meant(node: ast.expr, scope: Scope) -> object:
    """Return the type of numbers, or the constant, that an expression is."""
    return type_named(node, scope) or setting(node, scope)


def knows_scaling(project: Project, module: Module) -> bool:
    """Return whether a file speaks of anything that scales losses, its own or a framework's."""
    if any(FRAMEWORKS.search(name) or "GradScaler" in name for name in module.aliases.values()):
        return True
    if "transformers" in module.aliases.values() and any("Trainer" in tail for tail in module.calls):
        return True
    if any(SCALES.search(n.arg) for n in module.live.get(ast.arg, []) if isinstance(n, ast.arg)):
        return True
    named = [*module.live.get(ast.Name, []), *module.live.get(ast.Attribute, [])]
    return any(
        isinstance(node, ast.Name | ast.Attribute)
        and SCALES.search(tail_of(node))
        and not _is_other(project, module, node)
        for node in named
    )


def _is_other(project: Project, module: Module, node: ast.expr) -> bool:
    """Return whether what is called a scaler is known to scale something other than losses: `StandardScaler`."""
    scope = project.scope_at(node, module)
    return OTHERS.search(project.types.of(node, scope) or scope.dotted(node) or "") is not None
