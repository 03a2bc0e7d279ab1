"""Gradients cleared with each micro-batch of an accumulation."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.precision.precision import is_step
from gates.scan.analyses.reading.code import (
    FUNCTIONS,
    LOOPS,
    broken,
    callee,
    calls,
    function_of,
    is_backward,
    loop_of,
    nodes,
)
from gates.scan.analyses.reading.flow import set_before
from gates.scan.analyses.training.frameworks import framed
from gates.scan.program.module import Module, is_property, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.site import Site

WORDS = ("zero_grad*",)
COUNTING = {"Accelerate", "DeepSpeed"}  # their optimizers clear nothing before the end of an accumulation


def look(project: Project) -> Iterator[Site]:
    """Yield each `zero_grad()` that runs with each turn of a loop whose step runs only now and then, or after it.

    A function that runs a backward pass and steps now and then is such a turn, whoever has the loop.
    """
    known = project.once(framed) if "zero_grad" in project.named else ()
    delegated = {each.function for each in known if each.framework in COUNTING}
    for module in project.modules.values():
        for call in module.calls.get("zero_grad", []):
            loop = loop_of(call, module)
            turn = loop or function_of(call, module)
            if turn is None or not _directly(call, turn, module) or _every_nth(project, call, turn, module):
                continue
            own = [c for c in calls(turn) if loop_of(c, module) is loop]
            if _delegated(call, module, delegated) or not any(_runs_backward(project, module, c, 2) for c in own):
                continue  # a framework's, or the micro-batches are the turns of another loop
            steps = [c for c in calls(turn) if _is_step(project, module, c, 2)]
            if steps and all(_every_nth(project, c, turn, module) for c in steps):
                yield broken(module, call, "gradients are cleared with each micro-batch, the step is for several")
            elif loop is not None and not steps and not _takes_gradients(loop) and _steps_after(project, module, loop):
                yield broken(module, call, "gradients are cleared with each micro-batch, the step comes after all")
        if "zero_grad" in project.named:
            yield from _in_helpers(project, module)
            yield from _with_the_last(project, module)


def _in_helpers(project: Project, module: Module) -> Iterator[Site]:
    """Yield each `zero_grad()` of a helper that a loop runs with each turn, beside its backward pass."""
    for loop in nodes(module, *LOOPS):
        own = [c for c in calls(loop) if loop_of(c, module) is loop and _directly(c, loop, module)]
        for call in own:
            target = callee(project, module, call)
            if target is None or _every_nth(project, call, loop, module):
                continue
            there = project.scope_of(target, module).module
            clears = [c for c in calls(target) if tail_of(c.func) == "zero_grad" and _directly(c, target, there)]
            if not clears or not any(_runs_backward(project, there, c, 1) for c in calls(target)):
                continue
            if any(loop_of(c, there) is not None or _is_step(project, there, c, 2) for c in calls(target)):
                continue  # it takes the step, or has micro-batches, itself
            steps = [c for c in calls(loop) if _is_step(project, module, c, 2)]
            if steps and all(_every_nth(project, c, loop, module) for c in steps):
                yield broken(there, clears[0], "gradients are cleared with each micro-batch, the step is for several")


def _with_the_last(project: Project, module: Module) -> Iterator[Site]:
    """Yield each `zero_grad()` that runs before the backward pass of the very turn that the step is taken in."""
    for call in module.calls.get("zero_grad", ()):
        function, counted = function_of(call, module), _count_of(project, call, module)
        if function is None or counted is None:
            continue
        after = sorted((c for c in calls(function) if c.lineno > call.lineno), key=lambda c: c.lineno)
        backward = next((c for c in after if is_backward(c)), None)
        if backward is None or _count_of(project, backward, module) is not None:
            continue
        steps = [c for c in after if c.lineno > backward.lineno and _is_step(project, module, c, 1)]
        if steps and all(_count_of(project, c, module) == counted for c in steps):
            yield broken(module, call, "gradients are cleared with the last micro-batch, before its backward pass")


def _count_of(project: Project, call: ast.Call, module: Module) -> str | None:
    """Return the condition that counts turns which a call stands under, its variables replaced by what they are."""
    inside: ast.AST = call
    for around in module.ancestors(call):
        if isinstance(around, ast.If) and inside in around.body and _counts(project, around.test, module):
            found = set_before(function_of(call, module) or module.tree, text_of(around.test), around.lineno)
            return text_of(found[0][0] if len(found) == 1 else around.test)
        if isinstance(around, (*LOOPS, *FUNCTIONS)):
            return None
        inside = around
    return None


def _delegated(call: ast.Call, module: Module, functions: "set[ast.FunctionDef | ast.AsyncFunctionDef]") -> bool:
    return any(around in functions for around in module.ancestors(call))


def _directly(call: ast.Call, loop: ast.AST, module: Module) -> bool:
    """Return whether a call runs with each turn of a loop."""
    for around in module.ancestors(call):
        if around is loop:
            return True
        if isinstance(around, ast.If | ast.Try | ast.IfExp | ast.ExceptHandler | ast.Match):
            return False
    return False


def _runs_backward(project: Project, module: Module, call: ast.Call, depth: int) -> bool:
    """Return whether a call runs a backward pass, itself or in the function that it runs."""
    if is_backward(call):
        return True
    target = callee(project, module, call) if depth else None
    if target is None:
        return False
    there = project.scope_of(target, module).module
    return any(_runs_backward(project, there, inside, depth - 1) for inside in calls(target))


def _is_step(project: Project, module: Module, call: ast.Call, depth: int) -> bool:
    """Return whether a call steps an optimizer, itself or in the function that it runs."""
    if tail_of(call.func) == "step" and isinstance(call.func, ast.Attribute):
        return is_step(project, module, call.func)
    target = callee(project, module, call) if depth else None
    if target is None:
        return False
    there = project.scope_of(target, module).module
    return any(_is_step(project, there, c, depth - 1) for c in calls(target))


def _every_nth(project: Project, call: ast.Call, loop: ast.AST, module: Module) -> bool:
    """Return whether a call stands under a condition that counts: `(index + 1) % n == 0`, or after one that leaves."""
    if any(isinstance(n, ast.Mod) for arg in (*call.args, *(k.value for k in call.keywords)) for n in walk(arg)):
        return True  # the function that steps is told when
    inside: ast.AST = call
    for around in module.ancestors(call):
        before = getattr(around, "body", None)
        for other in before[: before.index(inside)] if isinstance(before, list) and inside in before else ():
            leaves = isinstance(other, ast.If) and isinstance(other.body[-1], ast.Continue)
            if leaves and isinstance(other, ast.If) and _counts(project, other.test, module):
                return True
        if around is loop:
            return False
        if isinstance(around, ast.If) and inside is not around.test and _counts(project, around.test, module):
            return True
        inside = around
    return False


def _counts(project: Project, test: ast.expr, module: Module) -> bool:
    """Return whether a condition counts turns, itself, in a variable, or in the function or property that it asks."""
    body = function_of(test, module) or module.tree
    asked = (each for node in walk(test) for each in (node, *_behind(project, node, body, module)))
    return any(isinstance(n, ast.Mod) for each in asked for n in walk(each))


def _behind(project: Project, node: ast.AST, body: ast.AST, module: Module) -> Iterator[ast.AST]:
    """Yield what a variable was set to, or what runs for a call, a property or the block that gives a variable."""
    if isinstance(node, ast.Name):
        yield from (value for value, _ in set_before(body, node.id, node.lineno))
        items = (i for w in inner(body, ast.With) if isinstance(w, ast.With) for i in w.items)
        for item in items:
            if isinstance(item.optional_vars, ast.Name) and item.optional_vars.id == node.id:
                yield from _behind(project, item.context_expr, body, module)
    elif isinstance(node, ast.Call):
        target = callee(project, module, node)
        yield from (target,) if target is not None else ()
    elif isinstance(node, ast.Attribute):
        owner = project.scope_at(node, module).class_of(node.value)
        found = project.method(owner, node.attr) if owner is not None else None
        yield from (found[0],) if found is not None and is_property(found[0]) else ()


def _takes_gradients(loop: ast.AST) -> bool:
    """Return whether a loop takes the gradients of each turn for itself: `kept.append(p.grad.clone())`."""
    return any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in walk(loop))


def _steps_after(project: Project, module: Module, loop: ast.AST) -> bool:
    """Return whether a step follows a loop, in its block or in one around that in the same turn."""
    inside = loop
    for around in module.ancestors(loop):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(around, name, None)
            if isinstance(block, list) and inside in block:
                after = [s for s in block[block.index(inside) + 1 :] if not isinstance(s, LOOPS)]
                if any(_is_step(project, module, c, 1) for s in after for c in calls(s)):
                    return True
        if isinstance(around, (*LOOPS, *FUNCTIONS)):
            return False
        inside = around
    return False
