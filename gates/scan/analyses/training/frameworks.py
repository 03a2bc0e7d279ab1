"""Functions whose training a framework steps: they are to call its methods, not torch's."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gates.scan.analyses.reading.code import calls, class_of, functions
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project

MAKERS = {
    "accelerate.Accelerator": "Accelerate",
    "accelerate.accelerator.Accelerator": "Accelerate",
    "lightning.fabric.Fabric": "Fabric",
    "lightning.Fabric": "Fabric",
    "lightning_fabric.Fabric": "Fabric",
    "lightning.fabric.fabric.Fabric": "Fabric",
    "deepspeed.initialize": "DeepSpeed",
}
CALLED = {"fabric": "Fabric", "accelerator": "Accelerate"}
ASKED = {"backward", "no_backward_sync", "clip_gradients", "accumulate", "sync_gradients", "clip_grad_norm_", "no_sync"}
LIGHTNING = {"lightning.LightningModule", "lightning.pytorch.LightningModule", "pytorch_lightning.LightningModule"}


@dataclass(frozen=True)
class Framed:
    """A function, the framework that scales in it, and what the framework's object is called."""

    module: Module
    function: Function
    framework: str
    name: str


def framed(project: Project) -> Iterator[Framed]:
    """Yield the functions in which a framework prepares the model, or whose class is its module."""
    for module in project.modules.values():
        for function in functions(module):
            found = (
                _made(project, module, function)
                or _handed(project, module, function)
                or _kept(project, module, function)
                or _manual(project, module, function)
            )
            if found is not None:
                yield Framed(module, function, *found)


def _made(project: Project, module: Module, function: Function) -> tuple[str, str] | None:
    scope = project.scope_of(function, module)
    for node in inner(function, ast.Assign):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            continue
        framework = MAKERS.get(scope.dotted(node.value.func) or "")
        target = node.targets[0]
        if framework == "DeepSpeed" and isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name):
            return framework, target.elts[0].id
        if framework and isinstance(target, ast.Name) and _prepares(function, target.id):
            return framework, target.id
    return None


def _handed(project: Project, module: Module, function: Function) -> tuple[str, str] | None:
    """Return the framework whose object a function is handed and asks for what only the one that scales is asked."""
    scope = project.scope_of(function, module)
    for arg in (*function.args.args, *function.args.kwonlyargs):
        if arg.arg in {"self", "cls"}:
            continue
        named = ast.Name(arg.arg, ast.Load())
        framework = MAKERS.get(project.types.of(named, scope) or "") or CALLED.get(arg.arg)
        asked = {
            n.attr for n in inner(function, ast.Attribute)
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == arg.arg
        }  # fmt: skip
        if framework and asked & ASKED:
            return framework, arg.arg
    return None


def _kept(project: Project, module: Module, function: Function) -> tuple[str, str] | None:
    """Return the framework whose object the instance of a method keeps, and which the method lets run backward."""
    scope = project.scope_of(function, module)
    for call in calls(function):
        held = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "backward" else None
        is_own = isinstance(held, ast.Attribute) and tail_of(held.value) == scope.self_name
        framework = MAKERS.get(project.types.of(held, scope) or "") if is_own and held is not None else None
        if framework and isinstance(held, ast.Attribute):
            return framework, held.attr
    return None


def _prepares(function: Function, name: str) -> bool:
    """Return whether the framework is given an optimizer to look after."""
    return any(
        isinstance(c.func, ast.Attribute)
        and tail_of(c.func.value) == name
        and c.func.attr in {"prepare", "setup"}
        and any("opt" in text_of(arg).lower() for arg in c.args)
        for c in calls(function)
    )


def _manual(project: Project, module: Module, function: Function) -> tuple[str, str] | None:
    """Return Lightning for a training step with manual optimization."""
    owner = class_of(function, module)
    if function.name != "training_step" or owner is None:
        return None
    info = project.scope_of(function, module).owner
    family = project.order_of(info) if info is not None else []
    if not any(each.scope.dotted(base) in LIGHTNING for each in family for base in each.node.bases):
        return None
    off = any(
        isinstance(n, ast.Assign) and tail_of(n.targets[0]) == "automatic_optimization" and text_of(n.value) == "False"
        for each in family
        for n in walk(each.node)
    )
    return ("Lightning", "self") if off else None
