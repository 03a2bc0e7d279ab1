"""The calls of a function that stands inside another, which returns or yields it: `log = make_log(run)`, `as log`."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.reading.code import FUNCTIONS, callee, function_of, named
from gates.scan.program.module import Function, Module
from gates.scan.program.nodes import inner, kept
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.signatures import parameters

Calls = list[tuple[ast.Call, Module]]
MAX_CALLERS = 20
HOPS = 2


def calls_of_inner(project: Project, function: Function, module: Module) -> Calls | None:
    """Return the calls of a function inside of another; `None` where it is in none, or not all are known."""
    outer = project.scope_of(function, module).outer
    maker = outer.function if outer is not None else None
    if not isinstance(maker, Function):
        return None
    found = _by_name(project, function.name, maker, module, HOPS, own=True)
    if found is None or not _gives(maker, function.name):
        return found
    for call, there in project.named.get(maker.name, [])[:MAX_CALLERS]:
        if callee(project, there, call) is not maker:
            continue
        name, around = _bound(call, there), function_of(call, there) or there.tree
        more = _by_name(project, name, around, there, HOPS) if name is not None else None
        if more is None:
            return None
        found += more
    return found


def _gives(maker: Function, name: str) -> bool:
    """Return whether a function returns or yields what stands in it under a name."""
    given = (n.value for n in inner(maker, ast.Return, ast.Yield) if isinstance(n, ast.Return | ast.Yield))
    return any(isinstance(value, ast.Name) and value.id == name for value in given)


def _bound(call: ast.Call, module: Module) -> str | None:
    """Return the variable that is set to what a call returns, or to what it gives as a context."""
    parent = module.parents.get(call)
    target = parent.optional_vars if isinstance(parent, ast.withitem) else None
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        target = parent.targets[0]
    return target.id if isinstance(target, ast.Name) else None


def _by_name(
    project: Project, name: str, body: ast.AST, module: Module, hops: int, *, own: bool = False
) -> Calls | None:
    """Return the calls of what a variable of a body holds, and of the parameters that it is passed for.

    `None` where it is handed on in some other way; what defines it is to return or yield its `own`.
    """
    found: Calls = []
    for node in kept(body, named).get(name, ()):
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        parent = module.parents.get(node)
        if isinstance(parent, ast.Call) and parent.func is node:
            found.append((parent, module))
        elif not (own and isinstance(parent, ast.Return | ast.Yield)):
            more = _passed(project, node, module, hops - 1) if hops > 1 else None
            if more is None:
                return None
            found += more
    return found


def _passed(project: Project, node: ast.Name, module: Module, hops: int) -> Calls | None:
    """Return the calls of what a function is passed, by the name that it has there."""
    parent = module.parents.get(node)
    call = module.parents.get(parent) if isinstance(parent, ast.keyword) else parent
    target = callee(project, module, call) if isinstance(call, ast.Call) else None
    if target is None or not isinstance(call, ast.Call) or not isinstance(target, FUNCTIONS):
        return None
    scope = project.scope_of(target, module)
    taken = _taken(call, target, node, bound=scope.owner is not None)
    return _by_name(project, taken, target, scope.module, hops) if taken is not None else None


def _taken(call: ast.Call, target: Function, node: ast.expr, *, bound: bool) -> str | None:
    """Return the parameter for which a call passes something."""
    names: Iterator[str] = (n for n in parameters(target) if argument(call, target, n, bound=bound) is node)
    return next(names, None)
