"""Keys that a caller reads from a dictionary which the callee never puts there."""

import ast
from collections.abc import Iterator

from gates.scan.analyses._code import broken, callee, function_of
from gates.scan.module import Function, Module, tail_of
from gates.scan.nodes import inner, text_of, walk
from gates.scan.project import Project
from gates.scan.site import Site

WORDS = ("return {",)
PLAIN = {"no_grad", "inference_mode", "enable_grad", "staticmethod", "autocast", "record_function"}


def look(project: Project) -> Iterator[Site]:
    """Yield each `result["key"]` of a call whose function returns only dictionaries without that key."""
    for module in project.modules.values():
        for node in module.live.get(ast.Subscript, []):
            if (
                isinstance(node, ast.Subscript)
                and isinstance(node.slice, ast.Constant)
                and isinstance(node.ctx, ast.Load)
            ) and isinstance(node.slice.value, str):
                yield from _missing(project, module, node, node.slice.value)


def _missing(project: Project, module: Module, node: ast.Subscript, key: str) -> Iterator[Site]:
    call = _origin(module, node)
    target = callee(project, module, call) if call is not None else None
    if target is None or _overridden(project, module, target):
        return
    keys = _returned(target)
    if keys is not None and key not in keys:
        path = project.scope_of(target, module).module.path
        listed = ", ".join(sorted(keys)) or "none"
        yield broken(module, node, f"{target.name} ({path}:{target.lineno}) returns no key {key!r}, its keys: {listed}")


def _overridden(project: Project, module: Module, target: Function) -> bool:
    """Return whether another class may have put its own method in the place of this one."""
    scope = project.scope_of(target, module)
    if any(tail_of(d.func if isinstance(d, ast.Call) else d) not in PLAIN for d in target.decorator_list):
        return True
    return scope.owner is not None and project.method_names[target.name] > 1


def _origin(module: Module, node: ast.Subscript) -> ast.Call | None:
    """Return the call that a subscripted name is bound to, once and for all, and never changed."""
    if isinstance(node.value, ast.Call):
        return node.value
    if not isinstance(node.value, ast.Name):
        return None
    body = function_of(node, module) or module.tree
    bound: list[ast.expr | None] = []
    for other in walk(body):
        if isinstance(other, ast.Name) and other.id == node.value.id:
            parent = module.parents.get(other)
            if isinstance(other.ctx, ast.Store):
                bound.append(parent.value if isinstance(parent, ast.Assign) and other in parent.targets else None)
            elif not _only_reads(parent, other):
                return None
        elif isinstance(other, ast.arg) and other.arg == node.value.id:
            return None
    if len(bound) == 1 and isinstance(bound[0], ast.Call):
        return bound[0]
    return None


def _only_reads(parent: ast.AST | None, name: ast.Name) -> bool:
    """Return whether a use of a dictionary leaves it as it is and does not hand it on."""
    if isinstance(parent, ast.Subscript):
        return parent.value is name and isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.Attribute):
        return parent.attr in {"get", "items", "keys", "values", "copy"}
    if isinstance(parent, ast.Call):
        return text_of(parent.func) in {"print", "len", "sorted", "list", "str", "repr", "json.dumps", "dict"}
    return isinstance(parent, ast.Compare | ast.FormattedValue | ast.For | ast.Return | ast.Dict)


def _returned(function: Function) -> set[str] | None:
    """Return the keys of the dictionaries that a function returns; `None` where they are not all literals."""
    if isinstance(function, ast.AsyncFunctionDef) or any(True for _ in inner(function, ast.Yield, ast.YieldFrom)):
        return None
    keys: set[str] = set()
    returns = [n for n in inner(function, ast.Return) if isinstance(n, ast.Return)]
    for ret in returns:
        if not isinstance(ret.value, ast.Dict):
            return None
        for key in ret.value.keys:
            if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
                return None
            keys.add(key.value)
    return keys if returns else None
