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
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None and hops:
                yield from _listed(value, scope, hops - 1, named=named)
            elif key is not None:
                yield (str(constant(key)) if named else tail_of(value)), value, scope
    elif isinstance(node, ast.List | ast.Tuple):
        for value in node.elts:
            last = value.elts[-1] if isinstance(value, ast.Tuple) and value.elts else value
            yield (str(constant(last)) if named else tail_of(last)), last, scope
    elif not hops:
        return
    elif isinstance(node, ast.Call):
        target = callee(scope.project, scope.module, node)
        if target is not None:
            there = scope.project.scope_of(target, module_of(scope.project, target, scope.module))
            for value in inner(target, ast.Return):
                if isinstance(value, ast.Return) and value.value is not None:
                    yield from _listed(value.value, there, hops - 1, named=named)
        elif tail_of(node.func) in VIEWS:
            inside = node.args[0] if node.args else node.func.value if isinstance(node.func, ast.Attribute) else None
            if inside is not None:
                yield from _listed(inside, scope, hops - 1, named=named)
    else:
        behind = scope.through(node)
        if behind is not None:
            yield from _listed(behind[0], behind[1], hops - 1, named=named)
