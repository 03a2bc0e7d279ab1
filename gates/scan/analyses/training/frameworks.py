"""Functions whose training a framework steps: they are to call its methods, not torch's."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gates.scan.analyses.reading.code import calls, class_of, functions
from gates.scan.program.known import OPTIMIZER, is_called
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

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
                or _steps_kept(project, module, function)
                or _manual(project, module, function)
            )
            if found is not None:
                yield Framed(module, function, *found)


def framed_helpers(project: Project) -> Iterator[Framed]:
    """Yield the functions that take a whole step for one which a framework steps, with what it has prepared."""
    seen: set[ast.AST] = {found.function for found in project.once(framed)}
    for found in project.once(framed):
        is_lightning, prepared = found.framework == "Lightning", _prepared(found)
        for call in calls(found.function):
            target = project.types.function(call, project.scope_of(found.function, found.module))
            if target is None or target in seen or not _runs_step(target):
                continue
            handed = (*call.args, *(option.value for option in call.keywords))
            is_own = isinstance(call.func, ast.Attribute) and text_of(call.func.value) == "self"
            if is_own if is_lightning else any(tail_of(arg) in prepared for arg in handed):
                seen.add(target)
                where = project.scope_of(target, found.module)
                yield Framed(where.module, target, found.framework, found.name)


def _prepared(found: Framed) -> set[str]:
    """Return the optimizers that a function has had prepared by its framework."""
    sets = (n for n in inner(found.function, ast.Assign) if isinstance(n, ast.Assign))
    made = (n for n in sets if isinstance(n.value, ast.Call) and tail_of(n.value.func) in {"prepare", "setup"})
    names = (each.id for n in made for t in n.targets for each in walk(t) if isinstance(each, ast.Name))
    return {name for name in names if is_called(name, OPTIMIZER)}


def _runs_step(function: Function) -> bool:
    """Return whether a function runs a backward pass by torch itself and lets an optimizer step."""
    passes = any(c for c in calls(function) if tail_of(c.func) == "backward" and not c.args)
    return passes and any(map(_is_step, calls(function)))


def _is_step(call: ast.Call) -> bool:
    """Return whether a call is the step of an optimizer, by what that is called."""
    held = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "step" else None
    return held is not None and is_called(tail_of(held), OPTIMIZER)


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


def _steps_kept(project: Project, module: Module, function: Function) -> tuple[str, str] | None:
    """Return the framework that some object keeps which a function asks for what only the one that scales is asked.

    Or which has prepared the optimizer of the object whose method takes a step with it.
    """
    passes = [c for c in calls(function) if tail_of(c.func) in {"backward", "zero_grad"}]
    scope = project.scope_of(function, module)
    for node in inner(function, ast.Attribute) if passes else ():
        held = node.value if isinstance(node, ast.Attribute) and node.attr in ASKED else None
        framework = MAKERS.get(project.types.of(held, scope) or "") if isinstance(held, ast.Attribute) else None
        if framework and isinstance(held, ast.Attribute):
            return framework, held.attr
    if not passes or scope.self_class is None or not any(map(_is_step, calls(function))):
        return _engine(function, scope)
    return _prepared_by_object(project, scope)


def _engine(function: Function, scope: Scope) -> tuple[str, str] | None:
    """Return DeepSpeed where a method takes its step with the engine that its object keeps."""
    for call in calls(function):
        held = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "step" else None
        for binding, where in scope.attribute(held) if isinstance(held, ast.Attribute) else ():
            made = binding.node if binding.kind == "item" and binding.index == 0 else None
            if isinstance(made, ast.Call) and MAKERS.get(where.dotted(made.func) or "") == "DeepSpeed":
                return "DeepSpeed", tail_of(held) if held is not None else ""
    return None


def _prepared_by_object(project: Project, scope: Scope) -> tuple[str, str] | None:
    """Return the framework by which a method of the object around has had its optimizer prepared."""
    owner = scope.self_class
    for info in project.order_of(owner) if owner is not None else ():
        for method in info.methods.values():
            where = project.scope_of(method, info.scope.module)
            for call in calls(method):
                held = call.func.value if isinstance(call.func, ast.Attribute) else None
                is_one = held is not None and call.func.attr in {"prepare", "setup"}  # type: ignore[attr-defined]
                if not is_one or not any("opt" in text_of(arg).lower() for arg in call.args):
                    continue
                framework = MAKERS.get(project.types.of(held, where) or "")  # type: ignore[arg-type]
                if framework:
                    return framework, tail_of(held)  # type: ignore[arg-type]
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
