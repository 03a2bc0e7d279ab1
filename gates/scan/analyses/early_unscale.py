"""Gradients that a function unscales each time, though it leaves the step to the call that its caller asks it of."""

import ast
import itertools
import re
from collections.abc import Iterator

from gates.scan.analyses.precision.precision import is_scaler, is_step
from gates.scan.analyses.reading.branches import rest_of
from gates.scan.analyses.reading.code import broken, calls, constant, function_of, is_backward, loop_of
from gates.scan.analyses.training import windows
from gates.scan.program.module import Function, Module
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.program.signatures import parameters
from gates.scan.site import Site

WORDS = ("unscale_",)
MANY = 12  # branches
ASKED = re.compile(r"(?i)update|step|sync|accum|boundary|last|final")  # what callers ask for once in a window


def look(project: Project) -> Iterator[Site]:
    """Yield each `unscale_` that stands after a backward pass and outside of the branch that steps."""
    for module in project.modules.values():
        for call in module.calls.get("unscale_", ()):
            function = function_of(call, module)
            held = call.func.value if isinstance(call.func, ast.Attribute) else None
            if function is None or held is None or not is_scaler(held, project.scope_at(call, module)):
                continue
            if any(is_backward(c) and c.lineno < call.lineno for c in calls(function)):
                branch = _asked(project, module, function)
                if branch is not None and call not in {n for statement in branch[1] for n in walk(statement)}:
                    said = f"gradients are unscaled with each call, and stepped only where {branch[0]} is true"
                    yield broken(module, call, said)
                elif (test := _gathered(project, module, call)) is not None:
                    said = f"gradients are unscaled with each micro-batch, and stepped only where {text_of(test)}"
                    yield broken(module, call, said)


def _asked(project: Project, module: Module, function: Function) -> tuple[str, list[ast.stmt]] | None:
    """Return the parameter that says whether a function steps, with the statements that run only then."""
    stepping = [call for call in calls(function) if is_step(project, module, call.func)]
    for node in inner(function, ast.If) if stepping else ():
        if not isinstance(node, ast.If):
            continue
        turned = isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not)
        test = node.test.operand if isinstance(node.test, ast.UnaryOp) and turned else node.test
        is_asked = isinstance(test, ast.Name) and test.id in parameters(function) and ASKED.search(test.id)
        if not is_asked and (turned or not _is_full(test) or loop_of(node, module) is not None):
            continue
        branch = (node.orelse or rest_of(module, node)) if turned else node.body
        within = {n for statement in branch for n in walk(statement)}
        if all(call in within for call in stepping):
            return text_of(test), branch
    return None


def _gathered(project: Project, module: Module, call: ast.Call) -> ast.expr | None:
    """Return the condition of the step where a long loop unscales in each turn, and steps at the end of a window.

    In a loop with fewer branches the paths are walked, and tell.
    """
    loop = loop_of(call, module)
    around = itertools.takewhile(lambda node: node is not loop, module.ancestors(call)) if loop is not None else ()
    branches = [n for n in inner(loop, ast.If) if isinstance(n, ast.If)] if loop is not None else []
    if len(branches) < MANY or any(isinstance(node, ast.If | ast.IfExp | ast.ExceptHandler) for node in around):
        return None
    for node in branches:
        end = windows.boundary(project, module, node.test) if loop_of(node, module) is loop else None
        if end is None or not end.holds or not end.is_gathering or node.lineno < call.lineno:
            continue
        own = {made for statement in node.body for made in calls(statement)}
        others = [made for made in calls(loop) if made not in own]  # type: ignore[arg-type]  # there is one
        if windows.within(project, module, node.body, windows.steps) and not any(
            windows.does(project, module, made, windows.steps, 2) for made in others
        ):
            return node.test
    return None


def _is_full(test: ast.expr) -> bool:
    """Return whether a condition asks if a window of micro-batches is full: `self.seen % self.window == 0`."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq) or len(test.ops) > 1:
        return False
    rest = test.left
    is_rest = isinstance(rest, ast.BinOp) and isinstance(rest.op, ast.Mod) and not isinstance(rest.right, ast.Constant)
    return is_rest and constant(test.comparators[0]) == 0
