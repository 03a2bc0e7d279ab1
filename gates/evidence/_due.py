"""Which assertions each passing run of a test should come to, by the way it is written."""

import ast
from collections.abc import Iterator, Sequence

from gates.evidence._pytest_witness.asserting import gives_up, is_plain
from gates.evidence._pytest_witness.tolerance import last_name

AS_IT_IS = frozenset({"enumerate", "list", "reversed", "sorted", "tuple", "zip"})
PARTS = frozenset({"items", "keys", "values"})
LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def due_lines(function: Function, asserting: Sequence[ast.stmt]) -> tuple[int, ...]:
    """Return the lines of those assertions that stand in no branch, and in loops only over tables of the module."""
    own = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    wanted = {id(node) for node in asserting if is_plain(node) and not gives_up(node)}
    return tuple(node.lineno for node in _in_block(function.body, own) if id(node) in wanted)


def _in_block(block: list[ast.stmt], own: set[str]) -> Iterator[ast.stmt]:
    for statement in block:
        if any(isinstance(node, LEAVES) for node in ast.walk(statement)) and not isinstance(statement, ast.Return):
            return  # a branch may end it: what comes after is for some
        yield statement
        if isinstance(statement, ast.With | ast.For) and _is_entered(statement, own):
            yield from _in_block(statement.body, own)


def _is_entered(statement: ast.With | ast.For, own: set[str]) -> bool:
    """Return whether the block of a statement is one that a test should come to, to its end."""
    if isinstance(statement, ast.For):
        return _is_table(statement.iter, own)
    calls = (item.context_expr for item in statement.items if isinstance(item.context_expr, ast.Call))
    return not any(last_name(call.func) == "suppress" for call in calls)


def _is_table(node: ast.expr, own: set[str]) -> bool:
    """Return whether something that is gone through is what a name outside of the function stands for."""
    if isinstance(node, ast.Name):
        return node.id not in own
    if not isinstance(node, ast.Call) or node.keywords:
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in PARTS and not node.args and _is_table(node.func.value, own)
    named = isinstance(node.func, ast.Name) and node.func.id in AS_IT_IS
    return named and bool(node.args) and all(_is_table(one, own) for one in node.args)
