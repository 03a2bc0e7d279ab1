"""Conditions of a path: forks remember what was assumed, and the same condition later goes the same way."""

import ast
from collections.abc import Iterator

from gates.scan.paths.place import Place
from gates.scan.paths.state import State, Value
from gates.scan.program.module import tail_of

NEGATED: dict[type[ast.cmpop], tuple[str, bool]] = {
    ast.Eq: ("==", True),
    ast.NotEq: ("==", False),
    ast.Is: ("==", True),
    ast.IsNot: ("==", False),
    ast.Lt: ("<", True),
    ast.GtE: ("<", False),
    ast.Gt: (">", True),
    ast.LtE: (">", False),
    ast.In: ("in", True),
    ast.NotIn: ("in", False),
}
MAX_HOPS = 4
Branches = Iterator[tuple[State, bool]]


def branch(test: ast.expr, state: State, place: Place, hops: int = 0) -> Branches:
    """Yield the path for each side that a condition can take."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        for after, truth in branch(test.operand, state, place, hops):
            yield after, not truth
    elif isinstance(test, ast.BoolOp):
        yield from _either(test, state, place, hops)
    elif isinstance(test, ast.NamedExpr):
        yield from branch(test.value, state, place, hops)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        yield from _compared(test, state, place)
    elif isinstance(test, ast.Call) and tail_of(test.func) == "bool" and len(test.args) == 1:
        yield from branch(test.args[0], state, place, hops)
    else:
        yield from _truth(test, state, place, hops)


def _either(test: ast.BoolOp, state: State, place: Place, hops: int) -> Branches:
    """Go through the parts from left to right, as Python does."""
    decided = isinstance(test.op, ast.Or)
    pending = [state]
    for part in test.values:
        after: list[State] = []
        for each in pending:
            for result, truth in branch(part, each, place, hops):
                if truth is decided:
                    yield result, truth
                else:
                    after.append(result)
        pending = after
    for each in pending:
        yield each, not decided


def _compared(test: ast.Compare, state: State, place: Place) -> Branches:
    left, right = place.value(test.left), place.value(test.comparators[0])
    sign, positive = NEGATED[type(test.ops[0])]
    if sign == "==" and right.is_known and right.constant is None:
        for after, truth in _truth_of(left, state):
            yield after, truth is not positive
        return
    if sign == "==" and left.is_known and right.is_known:
        yield state, (left.constant == right.constant) is positive
        return
    if sign == "==" and right.is_known and isinstance(right.constant, bool):
        for after, truth in _truth_of(left, state):
            yield after, (truth is right.constant) is positive
        return
    for after, truth in _assumed(f"{left.key} {sign} {right.key}", state):
        yield after, truth is positive


def _truth(test: ast.expr, state: State, place: Place, hops: int) -> Branches:
    value = place.value(test)
    made = value.node
    is_plain = isinstance(made, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Name | ast.Attribute)
    if made is not None and made is not test and value.place is not None and is_plain and hops < MAX_HOPS:
        yield from branch(made, state, value.place, hops + 1)
    else:
        yield from _truth_of(value, state)


def _truth_of(value: Value, state: State) -> Branches:
    if value.is_known:
        yield state, bool(value.constant)
    elif value.closure is not None:
        yield state, True
    else:
        yield from _assumed(value.key, state)


def _assumed(key: str, state: State) -> Branches:
    known = state.assumed.get(key)
    for truth in (True, False) if known is None else (known,):
        yield (state.assumes(key, truth=truth) if known is None else state), truth
