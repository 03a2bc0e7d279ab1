"""Losses that a program scales by hand: multiplied for the backward pass by what their gradients are divided by."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.reading.code import functions, keyword
from gates.scan.analyses.reading.flow import spine
from gates.scan.analyses.settings.defaults import behind_of
from gates.scan.analyses.settings.settings import setting
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

MULTIPLIES = frozenset({"mul", "mul_", "multiply", "multiply_"})
DIVIDES = frozenset({"div", "div_", "divide", "divide_", "true_divide", "_foreach_div", "_foreach_div_"})
SCALE = re.compile(r"(?i)scale|scaling")
Factor = tuple[ast.expr, Scope]


def is_scaled_by_hand(project: Project, call: ast.Call, scope: Scope) -> bool:
    """Return whether the loss of a backward pass is multiplied by a scale, or its gradient begins as one."""
    loss = call.args[0] if call.args else call.func.value if isinstance(call.func, ast.Attribute) else call
    if not call.args and keyword(call, "gradient") is not None:
        return True
    return any(
        not _is_fraction(*factor) and (SCALE.search(tail_of(factor[0])) or _is_undone(project, *factor))
        for factor in _factors(project, loss, scope, call.lineno)
    )


def _factors(project: Project, loss: ast.expr, scope: Scope, line: int) -> Iterator[Factor]:
    """Yield what a loss as a whole is multiplied by."""
    for source in spine(project, loss, scope, line):
        node = source.node
        if isinstance(node, ast.BinOp):
            yield from ((part, source.scope) for part in _multiplied(node))
        elif isinstance(node, ast.Call) and tail_of(node.func) in MULTIPLIES:
            yield from ((arg, source.scope) for arg in node.args)
        elif isinstance(node, ast.Name):
            for sets in inner(source.body, ast.AugAssign):
                if isinstance(sets, ast.AugAssign) and isinstance(sets.op, ast.Mult) and _is_name(sets.target, node.id):
                    yield sets.value, source.scope


def _multiplied(node: ast.expr) -> Iterator[ast.expr]:
    """Yield what is multiplied in an expression: of `loss * scale / steps`, `loss`, `scale`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        yield from _multiplied(node.left)
        yield from _multiplied(node.right) if isinstance(node.op, ast.Mult) else ()
    else:
        yield node


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_fraction(node: ast.expr, scope: Scope) -> bool:
    """Return whether a factor makes a loss smaller, as that of a mean over several steps does."""
    behind = behind_of(node, scope)
    made = behind[0] if behind is not None else node
    if isinstance(made, ast.BinOp) and isinstance(made.op, ast.Div) and isinstance(made.left, ast.Constant):
        return True
    known = setting(node, scope)
    return isinstance(known, int | float) and known <= 1


def _is_undone(project: Project, factor: ast.expr, scope: Scope) -> bool:
    """Return whether a function of the program that has gradients divides by a factor."""
    known = setting(factor, scope)
    for module in project.modules.values():
        for divisor in _divisors(module):
            same = bool(tail_of(factor)) and tail_of(divisor) == tail_of(factor)
            if same or (known is not None and setting(divisor, project.scope_at(divisor, module)) == known):
                return True
    return False


def _divisors(module: Module) -> Iterator[ast.expr]:
    """Yield what is divided by in functions that have gradients."""
    for function in functions(module):
        if not any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in walk(function)):
            continue
        for node in inner(function, ast.BinOp, ast.AugAssign, ast.Call):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
                yield node.right
            elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
                yield node.value
            elif isinstance(node, ast.Call) and tail_of(node.func) in DIVIDES:
                yield from node.args[-1:]
