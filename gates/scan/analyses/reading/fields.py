"""Fields of a loaded file, of which one is asked for many rows at once and another for the same rows one by one."""

import ast

from gates.scan.analyses.reading.code import function_of
from gates.scan.analyses.reading.origins import Origins
from gates.scan.program.module import Module
from gates.scan.program.nodes import inner, text_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

LOADS = frozenset({"torch.load"})
TENSORS = frozenset({"safetensors.torch.load_file"})  # of which each field is one
ON_HOST = frozenset({"tolist", "cpu", "numpy", "item"})


def is_field_of_rows(project: Project, module: Module, node: ast.expr, over: ast.expr) -> bool:
    """Return whether rows that `over` numbers are picked of a field beside which another is asked for all of them."""
    origins, scope = Origins(project), project.scope_at(node, module)
    if _is_named_field(origins, scope, node) and _files(origins, scope, node, TENSORS):
        return True
    files, numbers = _files(origins, scope, node, LOADS), _numbers(over)
    if not files or not isinstance(numbers, ast.Name):
        return False
    asked = inner(function_of(over, module) or module.tree, ast.Subscript)
    beside = [n for n in asked if isinstance(n, ast.Subscript) and text_of(_numbers(n.slice)) == numbers.id]
    others = (n.value for n in beside if text_of(n.value) != text_of(node))
    return any(files & _files(origins, scope, other, LOADS) for other in others)


def _files(origins: Origins, scope: Scope, node: ast.expr, kinds: frozenset[str]) -> set[ast.AST]:
    """Return the calls that loaded what something is a field of."""
    ways = origins.ways(node, scope)
    taken = ((made, there) for made, there, path in ways if len(path) == 1)
    return {made for made, there in taken if isinstance(made, ast.Call) and there.dotted(made.func) in kinds}


def _is_named_field(origins: Origins, scope: Scope, node: ast.expr) -> bool:
    """Return whether a field is asked for by a name that is written out, as those of data are."""
    found = (made.node for made in origins.of(node, scope))
    return any(isinstance(made, ast.Subscript) and isinstance(made.slice, ast.Constant) for made in found)


def _numbers(node: ast.expr) -> ast.expr:
    """Return the numbers of rows, wherever they lie: of `index.tolist()`, `index`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ON_HOST:
        node = node.func.value
    return node
