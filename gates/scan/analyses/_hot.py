"""The hot path: statements that run with each step of training, and not only now and then."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses._benching import is_benchmark
from gates.scan.analyses._code import FUNCTIONS, LOOPS, accelerated, callee, calls, function_of, is_backward
from gates.scan.module import Function, Module, tail_of
from gates.scan.nodes import inner, text_of, walk
from gates.scan.project import Project

TRANSPARENT = re.compile(r"scaler|amp|half|fp16|mixed|clip|grad_norm|None|precision")
MAX_DEPTH = 3


def hot_calls(project: Project, module: Module, tails: set[str]) -> Iterator[ast.Call]:
    """Yield the calls by some names that run with each step, in a file that knows of an accelerator."""
    found = [call for tail in sorted(tails) for call in module.calls.get(tail, [])]
    if found and accelerated(module):
        for call in sorted(found, key=lambda c: c.lineno):
            if is_hot(project, module, call):
                yield call


def is_hot(project: Project, module: Module, node: ast.AST) -> bool:
    """Return whether a node runs with each step: its loop, or its function outside of loops, takes a step."""
    for around in module.ancestors(node):
        if isinstance(around, ast.ExceptHandler | ast.Lambda):
            return False
        if isinstance(around, ast.BoolOp) and _is_asked_after(node, around):
            return False
        if (
            isinstance(around, ast.If | ast.IfExp)
            and _is_guard(around.test)
            and not any(inside is node for inside in walk(around.test))
            and not _takes_step(project, module, around)
        ):
            return False
        if isinstance(around, LOOPS):
            return _trains(project, module, around, MAX_DEPTH)
        if isinstance(around, FUNCTIONS):
            return _is_step(project, module, around, MAX_DEPTH)
    return False


def used_with_each_step(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call stands in a context manager of the program that is entered with each step of a training."""
    function = function_of(call, module)
    owner = project.scope_of(function, module).owner if function is not None else None
    if owner is None or function is None or function.name not in {"__enter__", "__exit__"}:
        return False
    for there in project.modules.values():
        for node in there.live.get(ast.With, []):
            for item in node.items if isinstance(node, ast.With) else ():
                named = project.types.of(item.context_expr, project.scope_at(item.context_expr, there))
                if named == owner.name and not is_benchmark(node, there) and _holds_step(project, there, node):
                    return True
    return False


def _holds_step(project: Project, module: Module, node: ast.AST) -> bool:
    """Return whether a block stands in a loop and takes a step of a training."""
    in_loop = any(isinstance(around, LOOPS) for around in module.ancestors(node))
    return in_loop and _trains(project, module, node, MAX_DEPTH)


def _takes_step(project: Project, module: Module, node: ast.If | ast.IfExp) -> bool:
    """Return whether the branch of a condition steps the optimizer, so that it is no branch for now and then."""
    if not isinstance(node, ast.If) or any(isinstance(n, ast.Mod) for n in walk(node.test)):
        return False
    return any(
        _is_optimizer_step(call) or _steps_inside(project, module, call) for part in node.body for call in calls(part)
    )


def _steps_inside(project: Project, module: Module, call: ast.Call) -> bool:
    target = callee(project, module, call)
    return target is not None and any(_is_optimizer_step(inside) for inside in calls(target))


def _is_asked_after(node: ast.AST, operation: ast.BoolOp) -> bool:
    """Return whether a part of a condition is asked only where one before it, that counts, holds."""
    for value in operation.values:
        if any(inside is node for inside in walk(value)):
            return False
        if any(isinstance(n, ast.Mod) for n in walk(value)):
            return True
    return False


def _is_guard(test: ast.expr) -> bool:
    """Return whether a condition holds only now and then, as far as its words tell."""
    counts = any(isinstance(n, ast.Mod) for n in walk(test))
    return counts or not TRANSPARENT.search(text_of(test))


def _is_step(project: Project, module: Module, function: Function, depth: int) -> bool:
    if any(_trains(project, module, loop, depth) for loop in inner(function, *LOOPS)):
        return False
    return function.name == "training_step" or _trains(project, module, function, depth)


def _trains(project: Project, module: Module, node: ast.AST, depth: int) -> bool:
    """Return whether a loop or function takes a step itself, not in a loop inside of it."""
    for call in calls(node):
        if any(isinstance(a, LOOPS) for a in _between(call, node, module)):
            continue
        if is_backward(call) or _is_optimizer_step(call):
            return True
        target = callee(project, module, call) if depth else None
        if (
            target is not None
            and target is not node
            and _trains(project, project.scope_of(target, module).module, target, depth - 1)
        ):
            return True
    return False


def _between(node: ast.AST, outer: ast.AST, module: Module) -> Iterator[ast.AST]:
    for around in module.ancestors(node):
        if around is outer:
            return
        yield around


def _is_optimizer_step(call: ast.Call) -> bool:
    if tail_of(call.func) != "step" or not isinstance(call.func, ast.Attribute):
        return False
    return re.search(r"(?i)opt|scaler", tail_of(call.func.value)) is not None
