"""Whether an expression asks if numbers are finite: by a function, by a comparison, by the loss scale that was kept."""

import ast
import re

from gates.scan.analyses.reading.code import calls, constant, function_of
from gates.scan.analyses.reading.flow import set_before
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import text_of
from gates.scan.program.project import Project

BAD, FINITE = {"isnan", "isinf"}, {"isfinite"}
BROKEN = re.compile(
    r"(?i)^(found|has|had|saw|any)_(inf|nan|overflow)s?$|^(inf|nan|overflow)s?_(detected|found|seen)$"
    r"|^overflow(ed)?$|^skipped$"
)
INFINITY = re.compile(r"^float\('\+?(inf|infinity)'\)$|^(torch|math|np|numpy)\.inf$")
COUNTS = {"sum", "count_nonzero"}


def is_finite(_project: Project, module: Module, test: ast.expr) -> bool | None:
    """Return whether numbers are finite where an expression is true; `None` where it does not ask that."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        told = [ask(test) for ask in (_is_number, _is_below, _is_none_bad, _is_none_found)]
        return next((each for each in told if each is not None), _has_kept_scale(module, test))
    tail = tail_of(test.func) if isinstance(test, ast.Call) else ""
    if tail in BAD | FINITE:
        return tail in FINITE
    return False if isinstance(test, ast.Name | ast.Attribute) and BROKEN.search(tail_of(test)) else None


def _is_number(test: ast.Compare) -> bool | None:
    """Return what `norm == norm` says, which does not hold of what is no number."""
    same = isinstance(test.left, ast.Name | ast.Attribute) and text_of(test.left) == text_of(test.comparators[0])
    return isinstance(test.ops[0], ast.Eq) if same and isinstance(test.ops[0], ast.Eq | ast.NotEq) else None


def _is_below(test: ast.Compare) -> bool | None:
    """Return what `norm == float("inf")` and `norm < math.inf` say."""
    if not INFINITY.search(text_of(test.comparators[0])):
        return None
    return {ast.Eq: False, ast.NotEq: True, ast.Lt: True}.get(type(test.ops[0]))


def _is_none_bad(test: ast.Compare) -> bool | None:
    """Return what `torch.isnan(gradient).sum() > 0` says."""
    counted, op, least = test.left, test.ops[0], constant(test.comparators[0])
    if not isinstance(counted, ast.Call) or tail_of(counted.func) not in COUNTS or least not in {0, 1}:
        return None
    asked = counted.args[0] if counted.args else getattr(counted.func, "value", None)
    if not isinstance(asked, ast.Call) or tail_of(asked.func) not in BAD:
        return None
    if (isinstance(op, ast.Gt | ast.NotEq) and least == 0) or (isinstance(op, ast.GtE) and least == 1):
        return False
    return True if (isinstance(op, ast.Eq) and least == 0) or (isinstance(op, ast.Lt) and least == 1) else None


def _is_none_found(test: ast.Compare) -> bool | None:
    """Return what `found_inf > 0` says."""
    if not isinstance(test.left, ast.Name | ast.Attribute) or not BROKEN.search(tail_of(test.left)):
        return None
    if constant(test.comparators[0]) != 0 or isinstance(constant(test.comparators[0]), bool):
        return None
    return {ast.Gt: False, ast.NotEq: False, ast.Eq: True}.get(type(test.ops[0]))


def _has_kept_scale(module: Module, test: ast.Compare) -> bool | None:
    """Return whether the loss scale, now held against the one before the step, is as large: nothing overflowed."""
    body = function_of(test, module) or module.tree
    made = [_scale_made(body, side, test.lineno) for side in (test.left, test.comparators[0])]
    if None in made or made[0] == made[1]:
        return None
    if isinstance(test.ops[0], ast.Eq | ast.NotEq):  # a scale that grew is seldom told from one that fell
        return isinstance(test.ops[0], ast.Eq)
    if not isinstance(test.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        return None
    is_now_left = made[0] > made[1]  # type: ignore[operator]  # both are lines
    less = isinstance(test.ops[0], ast.Lt | ast.LtE) is is_now_left
    strict = isinstance(test.ops[0], ast.Lt | ast.Gt)
    return None if less is not strict else not less


def _scale_made(body: ast.AST, node: ast.expr, line: int) -> int | None:
    """Return the line in which a scaler was asked for its scale, here or for a variable."""
    if isinstance(node, ast.Call):
        return line if tail_of(node.func) == "get_scale" else None
    values = set_before(body, node.id, line) if isinstance(node, ast.Name) else []
    asked = isinstance(values[0][0], ast.Call) and tail_of(values[0][0].func) == "get_scale" if values else False
    return values[0][1] if asked else None


def is_blind(test: ast.Compare, module: Module) -> bool:
    """Return whether the loss scale is held against itself: nothing was called since it was kept."""
    kept = [side for side in (test.left, *test.comparators) if isinstance(side, ast.Name)]
    now = [side for side in (test.left, *test.comparators) if isinstance(side, ast.Call)]
    body = function_of(test, module) or module.tree
    if len(kept) != 1 or len(now) != 1 or tail_of(now[0].func) != "get_scale":
        return False
    values = set_before(body, kept[0].id, test.lineno)
    if not values or text_of(values[0][0]) != text_of(now[0]):
        return False
    between = (c for c in calls(body) if values[0][1] < c.lineno < test.lineno)
    return _is_beside(values[0][0], test, module) and not any(between)


def _is_beside(one: ast.AST, other: ast.AST, module: Module) -> bool:
    """Return whether two nodes stand in statements of the same block."""
    blocks = [{id(each) for each in module.ancestors(node) if hasattr(each, "body")} for node in (one, other)]
    return blocks[0] <= blocks[1]
