"""What a text means, so far as it can be told that another one means the same."""

import ast
import itertools

STRICT: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.LtE: ast.Lt, ast.GtE: ast.Gt}


def meaning(tree: ast.Module) -> str:
    """Return a tree as text, the same for two of which nobody can see the difference.

    `if y > 10: y = 10` gives for 10 what `if y >= 10: y = 10` gives, and so does `a if a > b else b`.
    """
    loose = [node for node in ast.walk(tree) if isinstance(node, ast.Compare) and type(node.ops[0]) in STRICT]
    if not loose:
        return ast.dump(tree)
    kept = {id(node): node.ops for node in loose}
    for test in _without_a_boundary(tree):
        test.ops = [STRICT.get(type(op), type(op))() for op in test.ops]
    text = ast.dump(tree)
    for node in loose:
        node.ops = kept[id(node)]
    return text


def _without_a_boundary(tree: ast.Module) -> list[ast.Compare]:
    """Return the comparisons that come to the same where both sides are equal."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.IfExp) and _gives(node.test, node.body, node.orelse):
            found.append(node.test)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            for one, after in itertools.pairwise([*block, None]) if isinstance(block, list) else ():
                if isinstance(one, ast.If) and _settles(one, after):
                    found.append(one.test)
    return [test for test in found if isinstance(test, ast.Compare)]


def _settles(node: ast.If, after: ast.stmt | None) -> bool:
    """Return whether an `if` sets one side to the other, or gives back one of both and the next statement the other."""
    if len(node.body) != 1:
        return False
    only = node.body[0]
    if isinstance(only, ast.Assign) and len(only.targets) == 1 and not node.orelse:
        return _gives(node.test, only.targets[0], only.value)
    other = node.orelse[0] if len(node.orelse) == 1 else after if not node.orelse else None
    if not isinstance(only, ast.Return) or not isinstance(other, ast.Return):
        return False
    return only.value is not None and other.value is not None and _gives(node.test, only.value, other.value)


def _gives(test: ast.expr, one: ast.expr, other: ast.expr) -> bool:
    """Return whether two expressions are the two sides of a comparison."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    sides = sorted([ast.unparse(test.left), ast.unparse(test.comparators[0])])
    return sides == sorted([ast.unparse(one), ast.unparse(other)])
