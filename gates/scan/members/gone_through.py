"""What a loop goes through, under views of it and what counts or pairs its elements."""

import ast

from gates.scan.program.module import Module, tail_of

PASSES = frozenset({"enumerate", "sorted", "reversed", "zip", "tqdm", "list", "track"})
Source = tuple[ast.expr, list[int]]


def source_of(name: ast.AST, module: Module) -> Source | None:
    """Return what a loop's variable goes through, and its place there: of `for k, row in rows`, `rows` and 1."""
    path: list[int] = []
    node, around = name, module.parents.get(name)
    while isinstance(around, ast.Tuple | ast.List):
        path.insert(0, next(at for at, part in enumerate(around.elts) if part is node))
        node, around = around, module.parents.get(around)
    is_turned = isinstance(around, ast.For | ast.comprehension) and around.target is node
    return _beneath(around.iter, path) if is_turned and isinstance(around, ast.For | ast.comprehension) else None


def _beneath(node: ast.expr, path: list[int]) -> Source | None:
    """Return the container under views of it and what counts or pairs its elements, and the place in an element."""
    if not isinstance(node, ast.Call):
        return (node, path) if not isinstance(node, ast.Dict) else None
    tail = tail_of(node.func)
    if isinstance(node.func, ast.Attribute) and not node.args:
        wanted = {"items": path[1:] if path[:1] == [1] else None, "values": path}.get(tail)
        return (node.func.value, wanted) if wanted is not None else None
    if tail not in PASSES or not node.args:
        return None
    if tail == "zip":
        return _beneath(node.args[path[0]], path[1:]) if path and path[0] < len(node.args) else None
    if tail == "enumerate":
        return _beneath(node.args[0], path[1:]) if path[:1] == [1] else None
    return _beneath(node.args[0], path)
