"""Methods of the program that get a model ready, as those of frameworks do: `net = policy.prepare(net)`."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.precision.left_out import is_left_out, is_other_case
from gates.scan.analyses.precision.precision import holds, option, scalers
from gates.scan.analyses.reading.called import Called, Made, called
from gates.scan.analyses.reading.code import function_of
from gates.scan.analyses.reading.flow import Source
from gates.scan.analyses.reading.targets import only_method
from gates.scan.analyses.settings.settings import MAX_HOPS, made_of
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner
from gates.scan.program.project import Project
from gates.scan.program.scope import PREPARES, Scope

MAX_OBJECTS = 20


def prepared(project: Project, source: Source) -> Iterator[tuple[Called, ast.expr]]:
    """Yield what a method of the program returns that gets a model ready, in the scope of its call."""
    call, scope = source.node, source.scope
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or tail_of(call.func) not in PREPARES:
        return
    target = project.types.function(call, scope) or next(only_method(project, call.func, scope), None)
    if target is None:
        return
    thing = made_of(call.func.value, scope, MAX_HOPS)
    inside = called(project.scope_of(target, scope.module), call, scope, thing[0] if thing is not None else None)
    for result in inner(target, ast.Return):
        if isinstance(result, ast.Return) and result.value is not None:
            yield inside, result.value


def is_without_scaler(project: Project, made: ast.Call, module: Module, ways: list[Source]) -> bool:
    """Return whether such a method makes a call by choice, and for no object that may be beside a scaler."""
    function, scope = function_of(made, module), project.scope_at(made, module)
    if function is None or function.name not in PREPARES or scope.owner is None or not _choices(made, module):
        return False
    known = [w.scope.made for w in ways if isinstance(w.scope, Called) and w.scope.function is function]
    told = [each for each in known if each is not None]
    objects = told or list(_objects(project, scope.owner))
    return bool(objects) and all(
        _is_missed(made, _of(scope, each)) or _is_unscaled(project, scope, each) for each in objects
    )


def _choices(made: ast.Call, module: Module) -> list[tuple[ast.AST, ast.AST]]:
    """Return the choices around a call in its function, each with what of it holds the call."""
    found: list[tuple[ast.AST, ast.AST]] = []
    below: ast.AST = made
    for around in module.ancestors(made):
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            break
        if isinstance(around, ast.If | ast.IfExp | ast.match_case) and below is not getattr(around, "test", None):
            found.append((around, below))
        below = around
    return found


def _objects(project: Project, owner: ClassInfo) -> Iterator[Made]:
    """Yield the calls that make objects of a class."""
    for call, module in project.named.get(owner.node.name, [])[:MAX_OBJECTS]:
        where = project.scope_at(call, module)
        if where.dotted(call.func) == owner.name:
            yield call, where


def _of(scope: Scope, made: Made) -> Called:
    """Return the scope of a method for one object."""
    return Called(scope.project, scope.module, scope.function, scope.outer, scope.owner, made=made)


def _is_missed(made: ast.Call, scope: Called) -> bool:
    """Return whether a call is for sure not made for the object of a scope."""
    for choice, below in _choices(made, scope.module):
        if isinstance(choice, ast.match_case):
            if is_other_case(choice, scope.module, scope) is True:
                return True
        elif isinstance(choice, ast.If | ast.IfExp):
            body = choice.body if isinstance(choice.body, list) else [choice.body]
            held = holds(choice.test, scope)
            if held is not None and held is not (below in body):
                return True
    return is_left_out(made, scope.module, scope)


def _is_unscaled(project: Project, owner: Scope, made: Made) -> bool:
    """Return whether each scaler of a program is off for sure beside an object."""
    found = [each for module in project.modules.values() for each in scalers(project, module)]
    return all(_is_off(call, scope, owner, made) for call, scope in found)


def _is_off(call: ast.Call, scope: Scope, owner: Scope, made: Made) -> bool:
    where = _of(scope, made) if scope.owner is owner.owner else scope
    enabled = option(call, "enabled", where)
    is_off = enabled is not None and holds(enabled, where) is False
    return is_off or (isinstance(where, Called) and _is_missed(call, where))
