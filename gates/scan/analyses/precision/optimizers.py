"""The optimizers of a program: where they are made, and which of them scalers step."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gates.scan.analyses.precision.precision import is_scaler, scalers
from gates.scan.analyses.reading.origins import Origins
from gates.scan.program.known import OPTIMIZER
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

STEPS = ("step", "unscale_")
CLIPS = ("clip_grad_norm_", "clip_grad_value_")
Made = tuple[ast.Call, Module, Scope]


@dataclass(frozen=True)
class Stepped:
    """What a scaler steps: the calls that made it, and where it is handed to the scaler."""

    made: frozenset[ast.AST]
    call: ast.Call
    scope: Scope


def optimizers(project: Project) -> Iterator[Made]:
    """Yield the calls that make optimizers."""
    for module in project.modules.values():
        for name, found in module.calls.items():
            for call in found if name[:1].isupper() else ():
                scope = project.scope_at(call, module)
                if (call.args or call.keywords) and project.types.is_a(scope.dotted(call.func), OPTIMIZER):
                    yield call, module, scope


def scaled(project: Project) -> Iterator[Made]:
    """Yield the optimizers that scalers step, as far as their files and what the scalers are handed tell."""
    paths = {m.path for m in project.modules.values() if any(True for _ in scalers(project, m))}
    stepped = frozenset(made for each in project.once(_stepped) for made in each.made) if paths else frozenset()
    for call, module, scope in optimizers(project) if paths else ():
        if module.path in paths or call in stepped or _used_in(project, call, module, paths):
            yield call, module, scope


def clipped(project: Project) -> Iterator[Made]:
    """Yield the clips of gradients that a scaler unscaled of an optimizer which nobody knows the making of."""
    if not any(True for m in project.modules.values() for _ in scalers(project, m)):
        return
    known = {call for call, _, _ in optimizers(project)}
    for each in project.once(_stepped):
        if tail_of(each.call.func) != "unscale_" or each.made & known:
            continue
        for clip in inner(each.scope.function or each.scope.module.tree, ast.Call):
            if isinstance(clip, ast.Call) and tail_of(clip.func) in CLIPS and clip.lineno > each.call.lineno:
                yield clip, each.scope.module, each.scope


def _stepped(project: Project) -> Iterator[Stepped]:
    """Yield what the scalers of a program step."""
    origins = Origins(project)
    for call, module in (found for name in STEPS for found in project.named.get(name, [])):
        scope = project.scope_at(call, module)
        if not isinstance(call.func, ast.Attribute) or not call.args or not is_scaler(call.func.value, scope):
            continue
        made = {o.node for node, where in _meant(project, call.args[0], scope) for o in origins.of(node, where)}
        yield Stepped(frozenset(made), call, scope)


def _meant(project: Project, node: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    """Yield an expression, and what the classes that extend this one set an attribute to that it has from these."""
    yield node, scope
    owner = scope.self_class
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == scope.self_name
    if owner is None or not is_own or not isinstance(node, ast.Attribute) or project.attribute(owner, node.attr):
        return
    for info in project.below(owner):
        for binding, where in project.attribute(info, node.attr):
            if binding.kind == "value" and isinstance(binding.node, ast.expr):
                yield binding.node, where


def _used_in(project: Project, call: ast.Call, module: Module, paths: set[str]) -> bool:
    """Return whether the function or the class that makes an optimizer is called in one of some files."""
    scope = project.scope_at(call, module)
    name = scope.owner.node.name if scope.owner is not None else getattr(scope.function, "name", "")
    return any(there.path in paths for _, there in project.named.get(name, []))
