"""Clipping that goes past the framework which would have unscaled."""

from collections.abc import Iterator

from gates.scan.analyses.reading.asides import is_aside
from gates.scan.analyses.reading.code import broken, calls, constant, is_backward, keyword
from gates.scan.analyses.training.frameworks import framed
from gates.scan.program.module import tail_of
from gates.scan.program.project import Project
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
            if scope.dotted(call.func) in TORCH and not all(is_aside(each, call, found.module) for each in passes):
                yield broken(found.module, call, f"{found.framework} has not unscaled these gradients yet")
