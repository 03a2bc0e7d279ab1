"""Backward passes that go past the framework which scales."""

import ast
import itertools
from collections.abc import Iterator

from gates.scan.analyses.precision.precision import is_scaler
from gates.scan.analyses.reading.code import broken, calls, is_backward
from gates.scan.analyses.training.frameworks import framed, framed_helpers
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner
from gates.scan.program.project import Project
from gates.scan.site import Site

WORDS = ("backward*", "caler*")
INSTEAD = {
    "Accelerate": "{}.backward(loss)",
    "Fabric": "{}.backward(loss)",
    "DeepSpeed": "{}.backward(loss)",
    "Lightning": "{}.manual_backward(loss)",
}


def look(project: Project) -> Iterator[Site]:
    """Yield each `loss.backward()` in a function whose training a framework steps, and each scaled loss thrown away."""
    for module in project.modules.values():
        for call in _thrown_away(project, module):
            yield broken(module, call, "the scaled loss is thrown away: scale() changes nothing in place")
    for found in (*project.once(framed), *project.once(framed_helpers)):
        if found.framework == "DeepSpeed" and not _steps(found.function, found.name):
            continue
        chooses = _chooses(found.function, found.name)
        for call in calls(found.function):
            if not isinstance(call.func, ast.Attribute) or call.func.attr != "backward":
                continue
            if call.args or tail_of(call.func.value) in {found.name, "self"} or _is_scaled(call.func.value):
                continue
            if chooses and _is_choice(call, found.module, found.function):
                continue  # both ways, each in its branch
            instead = INSTEAD[found.framework].format(found.name)
            yield broken(found.module, call, f"{found.framework} scales the loss in {instead}, which this goes past")


def _thrown_away(project: Project, module: Module) -> Iterator[ast.Call]:
    """Yield the calls that scale a loss for nothing: what they return is used by no one."""
    for call in module.calls.get("scale", ()):
        held = call.func.value if isinstance(call.func, ast.Attribute) else None
        is_lost = isinstance(module.parents.get(call), ast.Expr) and len(call.args) == 1
        if is_lost and held is not None and is_scaler(held, project.scope_at(call, module)):
            yield call


def _steps(function: ast.AST, name: str) -> bool:
    return any(
        tail_of(c.func) == "step" and isinstance(c.func, ast.Attribute) and tail_of(c.func.value) == name
        for c in calls(function)
    )


def _chooses(function: ast.AST, name: str) -> bool:
    """Return whether a function calls the framework's own backward, too."""
    return any(
        is_backward(c) and isinstance(c.func, ast.Attribute) and tail_of(c.func.value) == name for c in calls(function)
    )


def _is_choice(call: ast.Call, module: Module, function: ast.AST) -> bool:
    """Return whether a call stands in a branch of a function, or after one that leaves with the framework's own."""
    around = itertools.takewhile(lambda each: each is not function, module.ancestors(call))
    left = (n for n in inner(function, ast.If) if isinstance(n, ast.If) and isinstance(n.body[-1], ast.Return))
    is_after = any(is_backward(c) and n.lineno < call.lineno for n in left for c in calls(n))
    return is_after or any(isinstance(each, ast.If | ast.Match | ast.Try) for each in around)


def _is_scaled(node: ast.expr) -> bool:
    return isinstance(node, ast.Call)
