"""Clipping that goes past the framework which would have unscaled."""

import ast
import itertools
from collections.abc import Iterator

from gates.scan.analyses.reading.asides import is_aside
from gates.scan.analyses.reading.code import broken, calls, constant, is_backward, keyword
from gates.scan.analyses.training.frameworks import framed
from gates.scan.program.module import Module, tail_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.site import Site

WORDS = ("clip_grad*",)
TORCH = {
    "torch.nn.utils.clip_grad_norm_",
    "torch.nn.utils.clip_grad_value_",
    "torch.nn.utils.clip_grad.clip_grad_norm_",
}
UNSCALES = {"unscale_gradients", "unscale_", "clip_gradients"}


def _mixed(project: Project) -> bool:
    """Return whether the program has Lightning train in float16."""
    made = [keyword(call, "precision") for call, _ in project.named.get("Trainer", [])]
    return any(constant(told) in {"16-mixed", "16", 16} for told in made)


def look(project: Project) -> Iterator[Site]:
    """Yield each clipping by torch in a function where Accelerate or Fabric scales the loss."""
    for found in project.once(framed):
        if found.framework not in {"Accelerate", "Fabric"} and not (found.framework == "Lightning" and _mixed(project)):
            continue
        scope = project.scope_of(found.function, found.module)
        own = list(calls(found.function))
        if any(tail_of(c.func) in UNSCALES for c in own) or not any(map(is_backward, own)):
            continue
        passes = [call for call in own if is_backward(call)]
        passes = [call for call in passes if call.args] or passes  # those that are handed a loss are the framework's
        for call in own:
            if all(is_aside(each, call, found.module) for each in passes):
                continue
            for clip, there in _clips(project, call, scope):
                yield broken(there, clip, f"{found.framework} has not unscaled these gradients yet")


def _clips(project: Project, call: ast.Call, scope: Scope) -> Iterator[tuple[ast.Call, Module]]:
    """Yield a clipping by torch: a call itself, what a helper called here alone does, the call of another."""
    if scope.dotted(call.func) in TORCH:
        yield call, scope.module
        return
    target = project.types.function(call, scope)
    if target is None or any(is_backward(c) or tail_of(c.func) in UNSCALES for c in calls(target)):
        return
    there = project.scope_of(target, scope.module)
    clips = [c for c in calls(target) if there.dotted(c.func) in TORCH and not _is_choice(c, target, there.module)]
    is_only = len(project.named.get(target.name, ())) == 1
    yield from ((clip, there.module) if is_only else (call, scope.module) for clip in clips[:1])


def _is_choice(call: ast.Call, function: ast.AST, module: Module) -> bool:
    """Return whether a helper clips so in one branch alone, such as that without the framework."""
    around = itertools.takewhile(lambda each: each is not function, module.ancestors(call))
    return any(isinstance(each, ast.If | ast.Match | ast.Try) for each in around)
