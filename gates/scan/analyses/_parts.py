"""Objects whose states are saved in one loop: those that a dictionary, a list or a list of names holds."""

import ast
from collections.abc import Iterator

from gates.scan.analyses._code import callee, calls, constant, module_of
from gates.scan.module import Function, Module, tail_of
from gates.scan.nodes import inner, walk
from gates.scan.project import Project
from gates.scan.scope import Scope

VIEWS = frozenset({"items", "values", "keys", "enumerate", "list", "sorted", "zip", "tuple"})
MAX_HOPS = 4
Part = tuple[str, ast.expr, Scope]


def saved_together(project: Project, module: Module, body: Function, verb: str) -> Iterator[list[Part]]:
    """Yield for each loop that asks its objects for their states what those are called, and where they are listed."""
    for call in calls(body):
        if tail_of(call.func) != verb or not isinstance(call.func, ast.Attribute):
            continue
        asked = call.func.value
        is_named = isinstance(asked, ast.Call) and tail_of(asked.func) == "getattr" and len(asked.args) > 1
        name = asked.args[1] if is_named and isinstance(asked, ast.Call) else asked
        source = _looped(module, call, name.id) if isinstance(name, ast.Name) else None
        if source is not None:
            found = list(_listed(source, project.scope_at(call, module), MAX_HOPS, named=is_named))
            if found:
                yield found


def _looped(module: Module, node: ast.AST, name: str) -> ast.expr | None:
    """Return what the loop or the comprehension around a node goes through, of which a name is the variable."""
    for around in module.ancestors(node):
        loops = around.generators if isinstance(around, ast.DictComp | ast.ListComp | ast.GeneratorExp) else []
        for target, source in [(g.target, g.iter) for g in loops] or (
            [(around.target, around.iter)] if isinstance(around, ast.For) else []
        ):
            if any(isinstance(n, ast.Name) and n.id == name for n in walk(target)):
                return source
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
    return None


def _listed(node: ast.expr, scope: Scope, hops: int, *, named: bool) -> Iterator[Part]:
    """Yield what a container holds, followed to where it is written out."""
    if isinstance(node, ast.Dict | ast.List | ast.Tuple):
        yield from _written(node, scope, hops, named=named)
        return
    further = list(_behind(node, scope)) if hops else []
    for inside, where in further:
        yield from _listed(inside, where, hops - 1, named=named)


def _written(node: ast.Dict | ast.List | ast.Tuple, scope: Scope, hops: int, *, named: bool) -> Iterator[Part]:
    keys: list[ast.expr | None] = node.keys if isinstance(node, ast.Dict) else [*node.elts]
    for key, value in zip(keys, node.values if isinstance(node, ast.Dict) else node.elts, strict=True):
        if key is None:
            yield from _listed(value, scope, hops - 1, named=named) if hops else ()
            continue
        last = value.elts[-1] if isinstance(value, ast.Tuple) and value.elts else value
        text = key if isinstance(node, ast.Dict) else last
        yield (str(constant(text)) if named else tail_of(last)), last, scope


def _behind(node: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    """Yield what a variable is made by, what a function returns, what a view or a copy is of."""
    target = callee(scope.project, scope.module, node) if isinstance(node, ast.Call) else None
    if target is not None:
        there = scope.project.scope_of(target, module_of(scope.project, target, scope.module))
        for found in inner(target, ast.Return):
            if isinstance(found, ast.Return) and found.value is not None:
                yield found.value, there
    elif isinstance(node, ast.Call) and tail_of(node.func) in VIEWS:
        held = node.args[0] if node.args else node.func.value if isinstance(node.func, ast.Attribute) else None
        if held is not None:
            yield held, scope
    elif (made := scope.through(node)) is not None:
        yield made
