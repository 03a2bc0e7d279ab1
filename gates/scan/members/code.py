"""What the analysis of members asks of code: who stands around a node, what is called there."""

import ast
from collections.abc import Iterator

from gates.scan.program.module import Function, Module
from gates.scan.program.nodes import inner
from gates.scan.site import Site

Told = tuple[str, Module, ast.AST]


def broken(module: Module, node: ast.AST, message: str, *way: Told) -> Site:
    """Return a place that breaks a rule; `way` names other places that make it so, each by what happens there."""
    line = getattr(node, "lineno", 1)
    last = getattr(node, "end_lineno", None) or line
    trace = dict.fromkeys(f"{what} {there.path}:{getattr(part, 'lineno', 1)}" for what, there, part in way)
    return Site(module.path, line, last, ok=False, message=message, trace=tuple(trace))


def calls(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls that a node holds, but for those in definitions inside of it."""
    for call in inner(node, ast.Call):
        if isinstance(call, ast.Call):
            yield call


def function_of(node: ast.AST, module: Module) -> Function | None:
    """Return the function that a node stands in."""
    for around in module.ancestors(node):
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            return around
    return None


def constant(node: ast.expr | None) -> object:
    """Return the value of a constant expression, a negative number too; `None` for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return -node.operand.value if isinstance(node.operand.value, int | float) else None
    return node.value if isinstance(node, ast.Constant) else None
