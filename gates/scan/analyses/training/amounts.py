"""What a number goes by: the names and the constants that it is set to, through fields, parameters and roundings."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.precision.guards import named
from gates.scan.analyses.reading.code import constant, keyword
from gates.scan.analyses.reading.origins import Origins
from gates.scan.program.module import tail_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

ROUNDS = frozenset({"ceil", "floor", "int", "max", "round"})
MAX_HOPS = 3


def amounts(project: Project, size: ast.expr, scope: Scope, hops: int = MAX_HOPS) -> Iterator[ast.expr]:
    """Yield the names and the constants behind a size: of `self.size`, what the instance was made with."""
    for made in Origins(project).of(size, scope):
        yield made.node
        for part, where in _behind(project, made.node, made.scope) if hops else ():
            yield from amounts(project, part, where, hops - 1)


def _behind(project: Project, node: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    """Yield what a size is reckoned of, and what a data class was made with for it."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.FloorDiv):
        yield from ((part, scope) for part in (node.left, node.right) if not isinstance(part, ast.Constant))
    elif isinstance(node, ast.UnaryOp):
        yield node.operand, scope
    elif isinstance(node, ast.Call) and tail_of(node.func) in ROUNDS:
        yield from ((part, scope) for part in node.args if constant(part) is None)
    elif isinstance(node, ast.Attribute):
        yield from _passed(project, node, scope)


def _passed(project: Project, node: ast.Attribute, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    """Yield what a class without a constructor of its own is called with for a field."""
    owner = scope.class_of(node.value)
    if owner is None or "__init__" in owner.methods:
        return
    fields = [s.target.id for s in owner.node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
    for call, module in project.named.get(owner.node.name, []) if node.attr in fields else ():
        at = fields.index(node.attr)
        value = keyword(call, node.attr) or (call.args[at] if at < len(call.args) else None)
        if value is not None:
            yield value, project.scope_at(call, module)


def names_of(found: list[ast.expr]) -> set[str]:
    """Return what numbers are called."""
    return {named(node) for node in found} - {""}
