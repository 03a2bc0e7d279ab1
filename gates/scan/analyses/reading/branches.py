"""What runs only where the condition of a branch does not hold."""

import ast

from gates.scan.program.module import Module

LEAVES = (ast.Continue, ast.Return, ast.Break, ast.Raise)


def leaves(block: list[ast.stmt]) -> bool:
    """Return whether a block ends by leaving its loop or its function."""
    return bool(block) and isinstance(block[-1], LEAVES)


def rest_of(module: Module, node: ast.If) -> list[ast.stmt]:
    """Return what runs only where a condition does not hold, because its branch leaves: what follows it."""
    if not leaves(node.body):
        return []
    block = next(
        (value for _, value in ast.iter_fields(module.parents[node]) if isinstance(value, list) and node in value), []
    )
    return block[block.index(node) + 1 :] if block else []
