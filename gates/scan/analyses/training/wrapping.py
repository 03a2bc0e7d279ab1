"""The autocast contexts that decorators of the program run functions in: `with autocast(...): return fn(*args)`."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.precision.contexts import Context, around
from gates.scan.analyses.reading.code import FUNCTIONS
from gates.scan.analyses.training.forwards import NO_GRAD
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

OFF = frozenset({"no_grad", "inference_mode"})


def wrapped(project: Project, module: Module, node: ast.AST) -> Iterator[Context]:
    """Yield the calls that make the autocast contexts which decorators run a node in."""
    for outer in module.ancestors(node):
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from decorated(project, module, outer)


def decorated(project: Project, module: Module, function: Function) -> Iterator[Context]:
    """Yield the calls that make the autocast contexts which the decorators of a function run it in."""
    if any(NO_GRAD.search(text_of(each)) for each in function.decorator_list):
        return
    for each in function.decorator_list:
        yield from _entered(project, each, project.scope_at(function, module))


def has_no_gradients(module: Module, node: ast.AST) -> bool:
    """Return whether a node runs where gradients are always off: in `with torch.no_grad()`, or by a decorator."""
    for outer in module.ancestors(node):
        entered = [item.context_expr for item in outer.items] if isinstance(outer, ast.With | ast.AsyncWith) else []
        entered += outer.decorator_list if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef) else []
        if any(isinstance(c, ast.Call) and not c.args and not c.keywords and tail_of(c.func) in OFF for c in entered):
            return True
    return False


def _entered(project: Project, decorator: ast.expr, scope: Scope) -> Iterator[Context]:
    """Yield the contexts that a decorator calls what it is given in, where it never calls that without one."""
    func = decorator.func if isinstance(decorator, ast.Call) else decorator
    known = project.functions.get(scope.dotted(func) or "")
    function = known[0] if known is not None else None
    if function is not None and isinstance(decorator, ast.Call):
        function = _returned(function)
    name = function.args.args[0].arg if function is not None and function.args.args else None
    if function is None or known is None or name is None:
        return
    ran = [n for n in walk(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == name]
    found = [list(around(project, known[1], call)) for call in ran]
    yield from (made for contexts in found for made in contexts) if all(found) else ()


def _returned(function: Function) -> Function | None:
    """Return the function inside of another one that this returns."""
    inside = {f.name: f for f in inner(function, *FUNCTIONS) if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef)}
    values = [n.value for n in inner(function, ast.Return) if isinstance(n, ast.Return)]
    value = values[0] if len(values) == 1 else None
    return inside.get(value.id) if isinstance(value, ast.Name) else None
