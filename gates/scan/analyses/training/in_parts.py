"""Trainers that offer their step in parts, for code that is not there to call, and never clear their gradients."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.reading.call_sites import calls_of
from gates.scan.analyses.reading.code import broken, calls, class_of, function_of, is_backward
from gates.scan.analyses.reading.targets import COMMON
from gates.scan.program.classes import ClassInfo
from gates.scan.program.known import MODULE
from gates.scan.program.module import Function, tail_of
from gates.scan.program.nodes import text_of, walk
from gates.scan.program.project import Project
from gates.scan.site import Site

OPTIMIZER = re.compile(r"(?i)(^|_)opt(im(izer)?)?s?(_|$)")
CLEARS = frozenset({"zero_grad", "optimizer_zero_grad", "grad", "_zero_grad"})
PROBLEM = "neither this step nor the backward pass of its class clears the gradients"


def in_parts(project: Project) -> Iterator[Site]:
    """Yield the steps of optimizers that a class makes, where another method of it goes backward and none clears.

    Where any code calls both methods the walk of that code tells whether it clears.
    """
    for info in project.classes.values():
        if not {"step", "backward"} <= info.scope.module.calls.keys():
            continue
        family = [info, *project.ancestors_of(info), *project.below(info)]
        if info.twice or any(_clears(each) or not _is_known(project, each) for each in family):
            continue
        steps = {name: found for name, method in info.methods.items() if (found := _step(method, info))}
        back = {name for name, method in info.methods.items() if any(map(is_backward, calls(method)))}
        if not back or set(steps) & back or _is_driven(project, info, set(steps) | back) or _is_cleared(project, steps):
            continue
        for call in steps.values():
            yield broken(info.scope.module, call, PROBLEM)


def _is_known(project: Project, info: ClassInfo) -> bool:
    """Return whether all that a class extends is known, so that it is no model of a framework that clears by itself."""
    return all(b in project.classes or b in {"object", MODULE} for b in info.bases)


def _clears(info: ClassInfo) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr in CLEARS for n in walk(info.node))


def _step(method: Function, info: ClassInfo) -> ast.Call | None:
    """Return the call that steps an optimizer which the object makes: `self.scaler.step(self.optimizer)`."""
    this = method.args.args[0].arg if method.args.args else ""
    made = {name for name, found in info.attributes.items() for b, _ in found if isinstance(b.node, ast.Call)}
    for call in calls(method):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "step":
            for each in (*call.args, *_receiver(call)):
                if text_of(each) in {f"{this}.{name}" for name in made if OPTIMIZER.search(name)}:
                    return call
    return None


def _is_driven(project: Project, info: ClassInfo, parts: set[str]) -> bool:
    """Return whether some code may call a part, so that what it walks tells what is cleared."""
    sites = (site for name in parts for site in calls_of(info.methods[name], project))
    return any(
        (class_of(call, there) is not info.node and tail_of(call.func) not in COMMON)
        or project.types.function(call, project.scope_at(call, there)) is not None
        for call, there in sites
    )


def _is_cleared(project: Project, steps: dict[str, ast.Call]) -> bool:
    """Return whether some code may clear the optimizer of an object from outside: `trainer.optimizer.zero_grad()`."""
    held = [each for call in steps.values() for each in (*call.args, *_receiver(call))]
    names = {tail_of(each) for each in held}
    for call, module in project.named.get("zero_grad", ()):
        cleared = call.func.value if isinstance(call.func, ast.Attribute) else None
        around = function_of(call, module)
        if isinstance(cleared, ast.Name) and around is not None and _steps_by(cleared.id, around):
            continue
        own = isinstance(cleared, ast.Attribute) and text_of(cleared.value) == "self"
        if not own and (not isinstance(cleared, ast.Attribute) or cleared.attr in names):
            return True
    return False


def _steps_by(name: str, function: Function) -> bool:
    """Return whether a function steps what it clears by the same name."""
    return any(text_of(call.func) == f"{name}.step" or name in map(text_of, call.args) for call in calls(function)
               if tail_of(call.func) == "step")  # fmt: skip


def _receiver(call: ast.Call) -> list[ast.expr]:
    return [call.func.value] if isinstance(call.func, ast.Attribute) else []
