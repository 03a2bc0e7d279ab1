"""Calls that are written in live code, and may all the same never come to anything."""

import ast
from collections.abc import Iterable

from gates.scan.program.module import Module
from gates.scan.program.scope import Scope
from gates.syntax import constant_truth, never_loops, own_nodes

Function = ast.FunctionDef | ast.AsyncFunctionDef
LAZY = frozenset({"map", "filter", "functools.partial"})


def may_never_run(node: ast.AST, module: Module, scope: Scope) -> bool:
    """Return whether nothing runs where a node stands: in a loop over nothing, behind a switch that is off, in a lambda
    that nobody reads.
    """
    inner = node
    for around in module.ancestors(node):
        if isinstance(around, ast.For) and never_loops(around) and inner in around.body:
            return True
        if isinstance(around, ast.If | ast.IfExp) and inner is not around.test:
            truth = _switch(around.test, scope)
            taken = around.body if isinstance(around.body, list) else [around.body]
            if truth is not None and truth is not (inner in taken):
                return True
        if isinstance(around, ast.Lambda) and _is_unread(around, module):
            return True
        inner = around
    return False


def is_dropped(call: ast.Call, named: str | None, units: Iterable[ast.AST], module: Module) -> bool:
    """Return whether a call only makes something that would run later (a coroutine, a generator), and nobody has it."""
    if not isinstance(module.parents.get(call), ast.Expr) and not _is_unread(call, module):
        return False
    return named in LAZY or any(isinstance(unit, ast.AsyncFunctionDef) or _yields(unit) for unit in units)


def _yields(unit: ast.AST) -> bool:
    if not isinstance(unit, Function) or unit.decorator_list:
        return False
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own_nodes(unit))


def _is_unread(value: ast.expr, module: Module) -> bool:
    """Return whether a value is given to a local name that nothing reads."""
    given = module.parents.get(value)
    if not isinstance(given, ast.Assign) or len(given.targets) != 1 or not isinstance(given.targets[0], ast.Name):
        return False
    name = given.targets[0].id
    around = next((n for n in module.ancestors(given) if isinstance(n, Function)), None)
    return around is not None and not any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load) for node in ast.walk(around)
    )


def _switch(test: ast.expr, scope: Scope) -> bool | None:
    """Return what a switch of the module is set to, once and for all: `USE = False`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _switch(test.operand, scope)
        return None if inner is None else not inner
    if not isinstance(test, ast.Name):
        return None
    found = scope.lookup(test.id)
    if found is None or found[0].function is not None or len(found[1]) != 1 or found[1][0].kind != "value":
        return None
    value = found[1][0].node
    return constant_truth(value) if isinstance(value, ast.Constant) else None
