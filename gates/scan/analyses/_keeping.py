"""What code keeps beyond a step: what it adds to a list, a mapping or a sum, as it is."""

import ast
import re
from collections.abc import Iterator

from gates.scan.module import tail_of
from gates.scan.nodes import inner, text_of

ADDS = {"append", "add", "appendleft", "extend", "add_"}
SHAPES = {"view", "reshape", "unsqueeze", "squeeze", "flatten", "clone", "mean", "sum", "float"}
JOINS = {"cat", "concat", "hstack"}
COUNTER = re.compile(r"(?i)step|iter|^it$|^i$|^idx$|batch")


def kept_in(body: ast.AST) -> Iterator[tuple[ast.AST, ast.expr, ast.expr]]:
    """Yield where a body adds something to something: the node, what is added as it is, and to what."""
    for node in inner(body, ast.Call, ast.Assign, ast.AugAssign):
        for value, into in _kept(node):
            for part in _held(value):
                yield node, part, into


def _kept(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what a node adds to something, and to what."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ADDS and node.args:
            into = node.func.value
            is_made = isinstance(into, ast.Call) and tail_of(into.func) == "setdefault"
            if len(node.args) == 1 and (node.func.attr != "extend" or isinstance(node.args[0], ast.List | ast.Tuple)):
                yield node.args[0], into.func.value if is_made else into  # type: ignore[attr-defined]  # a method
    elif isinstance(node, ast.AugAssign):
        if isinstance(node.op, ast.Add):
            yield node.value, node.target
    elif isinstance(node, ast.Assign) and len(node.targets) == 1:
        yield from _assigned(node.targets[0], node.value)


def _assigned(target: ast.expr, given: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what an assignment adds to what its target held before, or keeps under the number of a step."""
    if isinstance(given, ast.Call) and tail_of(given.func) in JOINS and given.args:
        joined = given.args[0].elts if isinstance(given.args[0], ast.List | ast.Tuple) else []
        before = [part for part in joined if _is_before(part, target)]
        yield from ((part, target) for part in joined if before and part not in before)
    for value in (given.body, given.orelse) if isinstance(given, ast.IfExp) else (given,):
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
            sides = (value.left, value.right)
            yield from [(other, target) for one, other in (sides, sides[::-1]) if _is_before(one, target)][:1]
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Name) and COUNTER.search(target.slice.id):
        yield given, target.value


def _held(value: ast.expr) -> Iterator[ast.expr]:
    """Yield what is kept with a value: the parts of a pair or a mapping, a loss without what it is multiplied by."""
    if isinstance(value, ast.List | ast.Tuple):
        for part in value.elts:
            yield from _held(part)
    elif isinstance(value, ast.Dict):
        for part in value.values:
            yield from _held(part)
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in SHAPES:
        yield from _held(value.func.value)
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict":
        for option in value.keywords:
            yield from _held(option.value)
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult | ast.Div):
        turned = isinstance(value.op, ast.Mult) and isinstance(value.left, ast.Constant | ast.BinOp)
        yield value.right if turned else value.left
    else:
        yield value


def _is_before(value: ast.expr, target: ast.expr) -> bool:
    """Return whether a value is what a target held before: `total`, `sums.get(key, 0)` of `sums[key]`."""
    if isinstance(value, ast.Call) and tail_of(value.func) == "get" and isinstance(target, ast.Subscript):
        return text_of(value.func) == f"{text_of(target.value)}.get"
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):  # what a running mean keeps
        return text_of(target) in {text_of(value.left), text_of(value.right)}
    return text_of(value) == text_of(target)
