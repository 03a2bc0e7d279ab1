"""What callers pass for a parameter of a function, or of a method whose object is handed in or called itself."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.reading.called import Made
from gates.scan.analyses.reading.origins import Origins
from gates.scan.analyses.settings.defaults import callers_pass
from gates.scan.program.module import Function, Module
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.program.signatures import accepts, shape_of

CALLED = "__call__"


def given(name: str, scope: Scope) -> list[Made]:
    """Return what calls of a function pass for a parameter; of a method, calls on all that may be of its class."""
    return list(callers_pass(name, scope)) or list(_by_objects(name, scope))


def _by_objects(name: str, scope: Scope) -> Iterator[Made]:
    """Yield what is passed in the calls of a method whose object tells its class only by what made it."""
    found = scope.lookup(name)
    function, owner = (found[0].function, found[0].owner) if found is not None else (None, None)
    if found is None or owner is None or not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    if any(binding.kind != "parameter" for binding in found[1]):
        return
    bound = found[0].self_name is not None
    for call, module in _calls(scope.project, function):
        value = argument(call, function, name, bound=bound) if accepts(function, shape_of(call), bound=bound) else None
        if value is not None and _runs(call, function, scope.project.scope_at(call, module)):
            yield value, scope.project.scope_at(call, module)


def _calls(project: Project, function: Function) -> Iterator[tuple[ast.Call, Module]]:
    """Yield the calls that may run a method by its name, or by the object that it is the call of."""
    if function.name != CALLED:
        yield from project.named.get(function.name, [])
        return
    for found in project.named.values():
        yield from found


def _runs(call: ast.Call, function: Function, scope: Scope) -> bool:
    target = scope.project.types.function(call, scope)
    if target is not None or scope.project.is_module(call.func, scope):
        return target is function
    held = call.func
    if function.name != CALLED:
        held = held.value if isinstance(held, ast.Attribute) else held
    if not isinstance(held, ast.Name | ast.Attribute):
        return False
    methods = (scope.project.method(owner, function.name) for owner in Origins(scope.project).classes(held, scope))
    return any(method is not None and method[0] is function for method in methods)
