"""Differences with their variables replaced: by what loops around them go through, by what a call passes."""

import ast

from gates.scan.program.module import Module, tail_of

COMPREHENSIONS = (ast.GeneratorExp, ast.ListComp, ast.DictComp)


def side_by_side(node: ast.GeneratorExp | ast.ListComp | ast.DictComp) -> dict[str, ast.expr]:
    """Return what the variables of `for a, b in zip(one, other)` go through."""
    found: dict[str, ast.expr] = {}
    for each in node.generators:
        if isinstance(each.iter, ast.Call) and tail_of(each.iter.func) == "zip" and isinstance(each.target, ast.Tuple):
            pairs = zip(each.target.elts, each.iter.args, strict=False)
            found |= {name.id: over for name, over in pairs if isinstance(name, ast.Name)}
    return found


def of_loops(found: ast.BinOp, node: ast.AST, module: Module) -> ast.BinOp:
    """Return a difference with the variables of the loops around a node replaced by what these go through."""
    given: dict[str, ast.expr] = {}
    for around in module.ancestors(node):
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            break
        turns = around.generators if isinstance(around, (*COMPREHENSIONS, ast.SetComp)) else [around]
        for turn in turns:
            if isinstance(turn, ast.For | ast.comprehension):
                given = {**paired(turn.target, turn.iter), **given}
    return renamed(found, given)


def paired(target: ast.expr, over: ast.expr) -> dict[str, ast.expr]:
    """Return what the variables of a loop are elements of: of `for i, (a, b) in enumerate(zip(one, other))`, both."""
    tail = tail_of(over.func) if isinstance(over, ast.Call) else ""
    if not isinstance(over, ast.Call) or not isinstance(target, ast.Tuple):
        return {target.id: over} if isinstance(target, ast.Name) else {}
    if tail == "zip" and len(over.args) == len(target.elts):
        pairs = zip(target.elts, over.args, strict=True)
        return {name: value for one, each in pairs for name, value in paired(one, each).items()}
    if tail == "enumerate" and over.args and len(target.elts) == 2:
        return paired(target.elts[1], over.args[0])
    of_items = isinstance(over.func, ast.Attribute) and tail in {"items", "named_parameters"} and len(target.elts) == 2
    return paired(target.elts[1], over.func.value) if of_items else {}  # type: ignore[attr-defined]


def difference_of(left: ast.expr, right: ast.expr, at: ast.expr) -> ast.BinOp:
    """Return a difference that stands where an expression does."""
    return ast.copy_location(ast.BinOp(left, ast.Sub(), right), at)


def renamed(found: ast.BinOp, given: dict[str, ast.expr]) -> ast.BinOp:
    """Return a difference with its names replaced by what they stand for."""
    return difference_of(_replaced(found.left, given), _replaced(found.right, given), found) if given else found


def _replaced(node: ast.expr, given: dict[str, ast.expr]) -> ast.expr:
    if isinstance(node, ast.Name):
        return given.get(node.id, node)
    if isinstance(node, ast.Attribute):
        return ast.copy_location(ast.Attribute(_replaced(node.value, given), node.attr, node.ctx), node)
    if isinstance(node, ast.Subscript):
        return ast.copy_location(ast.Subscript(_replaced(node.value, given), node.slice, node.ctx), node)
    if isinstance(node, ast.Call):
        func = _replaced(node.func, given)
        return ast.copy_location(ast.Call(func, [_replaced(a, given) for a in node.args], node.keywords), node)
    return node
