"""Training steps with manual optimization, or offered in parts, that never clear their gradients."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.reading.code import broken, callee, calls, class_of, module_of
from gates.scan.analyses.training.frameworks import Framed, framed
from gates.scan.analyses.training.in_parts import in_parts
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.site import Site

WORDS = ("automatic_optimization*", "backward")
CLEARS = {"zero_grad", "optimizer_zero_grad", "grad"}
HOPS = 2
PROBLEM = "no optimizer's gradients are ever cleared"


def look(project: Project) -> Iterator[Site]:
    """Yield the steps of each Lightning module that steps by hand, or of a trainer in parts, that clear nothing."""
    yield from in_parts(project)
    for found in project.once(framed):
        owner = class_of(found.function, found.module)
        if found.framework != "Lightning" or owner is None:
            continue
        info = project.scope_of(found.function, found.module).owner
        family = project.order_of(info) if info is not None else []
        cleared = set().union(_cleared(owner), *(_cleared(each.node) for each in family))
        steps = [c for c in calls(found.function) if tail_of(c.func) == "step" and _is_optimizer(c)]
        own = not cleared or _clear_their_own(family, found.function)
        apart = _clears_apart(project, found.module, found.function)
        if steps and not cleared and not apart:
            yield broken(found.module, min(steps, key=lambda c: c.lineno), PROBLEM)
            continue
        yield from _by_one(found, steps, cleared)
        yield from _of_helpers(project, found.module, found.function, HOPS) if own and not apart else ()


def _by_one(found: Framed, steps: list[ast.Call], cleared: set[str]) -> Iterator[Site]:
    """Yield the step of one of several optimizers that is not cleared where the others are."""
    held = {_owner(c) for c in steps}
    if len(held) < 2 or not cleared <= held or not all(map(str.isidentifier, held)) or _is_bound_anew(found, held):
        return
    for call in steps:
        if _owner(call) not in cleared:
            yield broken(found.module, call, f"the gradients of {_owner(call)} are never cleared")


def _is_bound_anew(found: Framed, held: set[str]) -> bool:
    """Return whether a name stands for more than one optimizer: of a loop over them, or bound more than once."""
    stored = [n.id for n in inner(found.function, ast.Name) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return any(stored.count(name) != 1 for name in held) or any(True for _ in inner(found.function, ast.For))


def _clears_apart(project: Project, module: Module, function: ast.AST) -> bool:
    """Return whether a function calls one that clears gradients, and does not step."""
    targets = [target for call in calls(function) if (target := callee(project, module, call)) is not None]
    return any(_cleared(t) and not any(tail_of(c.func) == "step" for c in calls(t)) for t in targets)


def _of_helpers(project: Project, module: Module, function: ast.AST, hops: int) -> Iterator[Site]:
    """Yield the steps of the functions that a training step hands its optimizers to, and that do not clear these."""
    for call in calls(function):
        target = callee(project, module, call)
        if target is None or target is function:
            continue
        there = module_of(project, target, module)
        steps = [c for c in calls(target) if tail_of(c.func) == "step" and _is_optimizer(c)]
        backward = any(tail_of(c.func) == "manual_backward" for c in calls(target))
        if steps and backward and not _cleared(target):
            yield broken(there, min(steps, key=lambda c: c.lineno), PROBLEM)
        elif hops and not steps:
            yield from _of_helpers(project, there, target, hops - 1)


def _clear_their_own(classes: list[ClassInfo], step: ast.AST) -> bool:
    """Return whether what clears gradients in some classes are methods which clear only what they step with."""
    methods = [m for info in classes for m in info.methods.values() if _cleared(m)]
    return step not in methods and all(
        _cleared(m) <= {_owner(c) for c in calls(m) if tail_of(c.func) == "step"} for m in methods
    )


def _cleared(node: ast.AST) -> set[str]:
    """Return what a class or a function clears the gradients of, as it is written."""
    found = (n for n in walk(node) if isinstance(n, ast.Attribute) and n.attr in CLEARS)
    return {text_of(n.value) for n in found if tail_of(n.value) != "autograd"}


def _owner(call: ast.Call) -> str:
    return text_of(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def _is_optimizer(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and re.search("(?i)opt", tail_of(call.func.value)) is not None
