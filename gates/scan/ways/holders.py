"""What holds an object next: the variables and attributes that it is set to, the parameters that it is passed for."""

import ast
from collections.abc import Iterator

from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.scope import Scope

MAX_BLOCKS = 20
Holder = str | tuple[str, Scope]  # an attribute by its name, or a variable and the scope that it is of


def holders_of(node: ast.expr, module: Module, scope: Scope) -> Iterator[Holder]:
    """Yield what an expression is set to, directly, in a choice or a partial, and the parameters it is passed for."""
    here: ast.AST = node
    while (around := module.parents.get(here)) is not None:
        if (targets := set_to(here, module)) is not None:
            for target in targets:
                yield from held(target, scope)
            return
        if isinstance(around, ast.keyword | ast.Call):
            yield from _handed(here, around, module, scope)
        if isinstance(around, ast.Yield):
            yield from _entered(scope)
        is_partial = isinstance(around, ast.Call) and around.func is not here and tail_of(around.func) == "partial"
        if not isinstance(around, ast.IfExp | ast.BoolOp) and not is_partial:
            return
        here = around


def set_to(node: ast.AST, module: Module) -> list[ast.expr] | None:
    """Return what is set to an expression, alone or at its place among others, or as a loop goes through these."""
    around = module.parents.get(node)
    if isinstance(around, ast.Assign):
        return around.targets
    if isinstance(around, ast.AnnAssign):
        return [around.target]
    outer = module.parents.get(around) if around is not None else None
    if isinstance(around, ast.Tuple | ast.List) and isinstance(outer, ast.For) and outer.iter is around:
        return [outer.target]
    if not isinstance(around, ast.Tuple | ast.List) or not isinstance(outer, ast.Assign) or outer.value is not around:
        return None
    at = next(index for index, each in enumerate(around.elts) if each is node)
    rows = [target.elts for target in outer.targets if isinstance(target, ast.Tuple | ast.List)]
    return [row[at] for row in rows if len(row) == len(around.elts)]


def held(target: ast.expr, scope: Scope) -> Iterator[Holder]:
    """Yield the variables or attributes that are set, those of a tuple each."""
    if isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from held(part, scope)
    elif isinstance(target, ast.Attribute):
        yield target.attr
    elif isinstance(target, ast.Name) and (found := scope.lookup(target.id)) is not None:
        yield target.id, found[0]


def _entered(scope: Scope) -> Iterator[Holder]:
    """Yield what blocks take of the context manager that a function is, which yields it: `with steps() as step`."""
    name = getattr(scope.function, "name", "")
    for call, module in scope.project.named.get(name, ())[:MAX_BLOCKS]:
        item = module.parents.get(call)
        if isinstance(item, ast.withitem) and item.optional_vars is not None:
            yield from held(item.optional_vars, scope.project.scope_at(call, module))


def _handed(node: ast.AST, around: ast.keyword | ast.Call, module: Module, scope: Scope) -> Iterator[Holder]:
    """Yield the parameters that something is passed for; of what is no function of the program what is called so."""
    call = module.parents.get(around) if isinstance(around, ast.keyword) else around
    if not isinstance(call, ast.Call) or call.func is node:
        return
    named = around.arg if isinstance(around, ast.keyword) else None
    at = call.args.index(node) if named is None and node in call.args else -1
    callee, skipped = call.func, 0
    if at > 0 and tail_of(callee) == "partial":
        callee, skipped = call.args[0], 1
    function, is_bound = _run_by(callee, scope)
    if function is None:
        yield from [named] if named is not None else _field(callee, at - skipped, scope)
        return
    names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)][int(is_bound) :]
    if named is None and 0 <= at - skipped < len(names):
        if not any(isinstance(arg, ast.Starred) for arg in call.args[: at + 1]):
            yield names[at - skipped], scope.project.scope_of(function, module)
    elif named is not None and named in {*names, *(arg.arg for arg in function.args.kwonlyargs)}:
        yield named, scope.project.scope_of(function, module)


def _field(callee: ast.expr, at: int, scope: Scope) -> list[Holder]:
    """Return the field that a record of the program is made with at a place."""
    named = scope.dotted(callee) if isinstance(callee, ast.Name | ast.Attribute) else None
    owner = scope.project.classes.get(named or "")
    lines = owner.node.body if owner is not None else []
    names = [s.target.id for s in lines if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
    return [names[at]] if 0 <= at < len(names) else []


def _run_by(callee: ast.expr, scope: Scope) -> tuple[Function | None, bool]:
    """Return the function of the program that a call runs, the constructor of a class, and whether it is bound."""
    project = scope.project
    named = scope.dotted(callee) if isinstance(callee, ast.Name | ast.Attribute) else None
    if named in project.functions:
        return project.functions[named][0], False
    owner = project.classes.get(named or "")
    name = "__init__"
    if owner is None and isinstance(callee, ast.Attribute):
        owner, name = scope.class_of(callee.value), callee.attr
    found = project.method(owner, name) if owner is not None else None
    is_static = found is not None and any(tail_of(d) == "staticmethod" for d in found[0].decorator_list)
    return (found[0], not is_static) if found else (None, False)
