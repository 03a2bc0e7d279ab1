"""Tests that assert both sides of one bar: one thing is above it, another one is below, on purpose."""

import ast

from gates.scan.analyses.reading.code import function_of
from gates.scan.program.module import Module
from gates.scan.program.nodes import inner, text_of


def is_contrast(module: Module, compare: ast.Compare) -> bool:
    """Return whether a test asserts the one side of a bar of one thing and the other side of it of another."""
    body = function_of(compare, module)
    made = [n.test for n in inner(body, ast.Assert) if isinstance(n, ast.Assert)] if body is not None else []
    mine = _side(compare)
    sides = [_side(test) for test in made if test is not compare and isinstance(test, ast.Compare)]
    return compare in made and any(bar == mine[0] and below is not mine[1] for bar, below in sides)


def _side(compare: ast.Compare) -> tuple[str, bool]:
    """Return the bar of a comparison, and whether it asks for less than that."""
    return text_of(compare.comparators[-1]), isinstance(compare.ops[0], ast.Lt | ast.LtE)
