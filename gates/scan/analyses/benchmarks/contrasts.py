"""Comparisons that mean both sides: of one bar, of which two things are on either side, or of a range."""

import ast

from gates.scan.analyses.reading.code import function_of, statement_of
from gates.scan.program.module import Module
from gates.scan.program.nodes import inner, text_of


def is_contrast(module: Module, compare: ast.Compare) -> bool:
    """Return whether a test asserts the one side of a bar of one thing and the other side of it of another."""
    body = function_of(compare, module)
    made = [n.test for n in inner(body, ast.Assert) if isinstance(n, ast.Assert)] if body is not None else []
    mine = _side(compare)
    sides = [_side(test) for test in made if test is not compare and isinstance(test, ast.Compare)]
    return compare in made and any(bar == mine[0] and below is not mine[1] for bar, below in sides)


def is_of_range(module: Module, compare: ast.Compare) -> bool:
    """Return whether one verdict asks a value to be above one bar, and below another: `0.8 < ratio`, `ratio < 1.2`."""
    body, mine = function_of(compare, module) or module.tree, _asked(compare)
    others = [n for n in inner(body, ast.Compare) if isinstance(n, ast.Compare) and n is not compare]
    return mine is not None and any(
        theirs is not None and theirs[0] == mine[0] and theirs[1] is not mine[1]
        for theirs in map(_asked, (n for n in others if _verdict(n, module) == _verdict(compare, module)))
    )


def _asked(compare: ast.Compare) -> tuple[str, bool] | None:
    """Return what is held against a number or a name, and whether it should be less than that."""
    sides, below = [compare.left, *compare.comparators], isinstance(compare.ops[0], ast.Lt | ast.LtE)
    if len(sides) > 2 or not isinstance(compare.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        return None
    is_turned = isinstance(sides[0], ast.Constant)
    return text_of(sides[is_turned]), below is not is_turned


def _verdict(compare: ast.Compare, module: Module) -> str | ast.AST | None:
    """Return the verdict that a comparison is for: the name that it is given, all that is asserted, or a statement."""
    said = statement_of(compare, module)
    if isinstance(said, ast.Assert):
        return "assert"
    target = said.targets[0] if isinstance(said, ast.Assign) else getattr(said, "target", None)
    if target is None or isinstance(getattr(said, "value", None), ast.Dict):
        return said
    return text_of(target)


def _side(compare: ast.Compare) -> tuple[str, bool]:
    """Return the bar of a comparison, and whether it asks for less than that."""
    return text_of(compare.comparators[-1]), isinstance(compare.ops[0], ast.Lt | ast.LtE)
