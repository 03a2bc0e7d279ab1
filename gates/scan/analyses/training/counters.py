"""Counters of a window that are put back by hand, `seen += 1`, `if seen < size`, `seen = 0`, or by the turn itself."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.reading.code import class_of, constant, function_of, loop_of
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import text_of, walk

FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE, ast.Eq: ast.Eq, ast.NotEq: ast.NotEq,
}  # fmt: skip
UP: dict[type[ast.cmpop], bool] = {ast.Eq: True, ast.GtE: True, ast.NotEq: False, ast.Lt: False}
DOWN: dict[type[ast.cmpop], bool] = {ast.Eq: True, ast.LtE: True, ast.NotEq: False, ast.Gt: False}
SINCE = UP | {ast.Gt: True, ast.LtE: False}
BEGUN = "__init__"


def counted(test: ast.Compare, module: Module) -> tuple[bool, ast.expr] | None:
    """Return whether a condition holds where a counter is full, or is used up, and the size that it counts to."""
    if len(test.ops) > 1:
        return None
    op = type(test.ops[0])
    sides = ((test.left, op, test.comparators[0]), (test.comparators[0], FLIPPED.get(op, op), test.left))
    found = (_upward(*side, module) or _downward(*side, module) or _since(*side, module) for side in sides)
    return next((each for each in found if each is not None), None)


def _upward(left: ast.expr, op: type[ast.cmpop], right: ast.expr, module: Module) -> tuple[bool, ast.expr] | None:
    """Return what `seen < size` says of a counter that goes up, and back to zero."""
    count, size = _without(left, ast.Add), _without(right, ast.Sub)
    if op not in UP or not isinstance(count, ast.Name | ast.Attribute) or constant(size) in {0, 1, 2}:
        return None
    if not isinstance(size, ast.Name | ast.Attribute | ast.Subscript | ast.Constant):
        return None
    return (UP[op], size) if 0 in {constant(value) for value in _put_back(count, 1, module)} else None


def _downward(left: ast.expr, op: type[ast.cmpop], right: ast.expr, module: Module) -> tuple[bool, ast.expr] | None:
    """Return what `left > 0` says of a counter that goes down, and back to a size."""
    if op not in DOWN or constant(right) != 0 or not isinstance(left, ast.Name | ast.Attribute):
        return None
    size = next((value for value in _put_back(left, -1, module) if not isinstance(value, ast.Constant)), None)
    return (DOWN[op], size) if size is not None else None


def _since(left: ast.expr, op: type[ast.cmpop], right: ast.expr, module: Module) -> tuple[bool, ast.expr] | None:
    """Return what `turn - last < size` and `turn < last + size` say, where `last` is set to the turn at each end."""
    if op not in SINCE:
        return None
    for now, last, size in _apart(left, right):
        is_size = isinstance(size, ast.Name | ast.Attribute | ast.Subscript | ast.Constant)
        if is_size and constant(size) not in {0, 1, 2} and _is_marked(last, now, module):
            return SINCE[op], size
    return None


def _apart(left: ast.expr, right: ast.expr) -> Iterator[tuple[ast.expr, ast.expr, ast.expr]]:
    """Yield a turn, the turn that it is compared with, and how far they are apart."""
    if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Sub):
        yield _without(left.left, ast.Add), left.right, _without(right, ast.Sub)
    if isinstance(right, ast.BinOp) and isinstance(right.op, ast.Add):
        yield _without(left, ast.Add), right.left, right.right
        yield _without(left, ast.Add), right.right, right.left


def _is_marked(last: ast.expr, now: ast.expr, module: Module) -> bool:
    """Return whether a variable or an attribute is set to the turn in its loop, or in a method: `last = turn`."""
    if not isinstance(last, ast.Name | ast.Attribute) or not isinstance(now, ast.Name | ast.Attribute):
        return False
    is_own = isinstance(last, ast.Attribute) and tail_of(last.value) == "self"
    body = (class_of(last, module) if is_own else function_of(last, module)) or module.tree
    for node in walk(body):
        if isinstance(node, ast.Assign) and text_of(last) in map(text_of, node.targets):
            inside = function_of(node, module)
            is_late = inside is not None and inside.name != BEGUN if is_own else loop_of(node, module) is not None
            if is_late and text_of(_without(node.value, ast.Add)) == text_of(now):
                return True
    return False


def _without(node: ast.expr, op: type[ast.operator]) -> ast.expr:
    """Return what one is added to, or taken off."""
    is_next = isinstance(node, ast.BinOp) and isinstance(node.op, op) and constant(node.right) == 1
    return node.left if is_next and isinstance(node, ast.BinOp) else node


def _put_back(count: ast.Name | ast.Attribute, by: int, module: Module) -> Iterator[ast.expr]:
    """Yield what a counter is set to in the loop in which it goes on, or in another method than the constructor."""
    is_own = isinstance(count, ast.Attribute) and tail_of(count.value) == "self"
    body = (class_of(count, module) if is_own else function_of(count, module)) or module.tree
    steps = [node for node in walk(body) if _is_step(node, text_of(count), by)]
    for node in walk(body) if steps else ():
        if not isinstance(node, ast.Assign) or text_of(count) not in {text_of(target) for target in node.targets}:
            continue
        inside = function_of(node, module)
        is_late = is_own and inside is not None and inside.name != BEGUN
        if is_late or any(loop_of(node, module) is loop_of(s, module) is not None for s in steps):
            yield node.value


def _is_step(node: ast.AST, name: str, by: int) -> bool:
    """Return whether a statement counts one on."""
    op = ast.Add if by > 0 else ast.Sub
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, op) and constant(node.value) == 1 and text_of(node.target) == name
    value = node.value if isinstance(node, ast.Assign) and text_of(node.targets[0]) == name else None
    return value is not None and _without(value, op) is not value and text_of(_without(value, op)) == name
