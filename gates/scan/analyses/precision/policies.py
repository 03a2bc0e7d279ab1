"""Objects that say of what type numbers are: those whose method makes a scaler, and that all mean one type by it."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.precision.left_out import is_left_out
from gates.scan.analyses.precision.precision import WHOLE, autocasts, dtype_of, holds, option, scalers, type_named
from gates.scan.analyses.reading.called import Called, Made
from gates.scan.analyses.reading.code import calls, constant
from gates.scan.analyses.settings.settings import MAX_HOPS, made_of
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Module, tail_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

MAX_ASKED = 20
Found = tuple[ast.Call, Module]


def scaled_in(project: Project, kind: str) -> Iterator[Found]:
    """Yield the scalers of a class that are on for each object asked for one, where these all cast to a type."""
    for module in project.modules.values():
        for call, scope in scalers(project, module):
            objects = _asked(scope) if scope.owner is not None else []
            contexts = [each for each in autocasts(project, module) if each[1].owner is scope.owner]
            if objects and contexts and all(_is_on(call, _of(scope, made)) for made in objects):
                kinds = {dtype_of(c, _of(where, made)) for c, where in contexts for made in objects}
                if kinds == {kind}:
                    yield call, module
            elif contexts and scope.owner is not None and _is_of_device(option(call, "enabled", scope)):
                types = [_types(*made) for made in _makers(scope.owner)]
                told = set().union(*types)
                if kind in told and told <= {kind, WHOLE} and all(types) and not is_left_out(call, module, scope):
                    yield call, module


def _is_of_device(enabled: ast.expr | None) -> bool:
    """Return whether a scaler is on whatever type its object is made with: always, or on an accelerator."""
    return enabled is None or (isinstance(enabled, ast.Compare) and constant(enabled.comparators[0]) == "cuda")


def _makers(owner: ClassInfo) -> Iterator[Made]:
    """Yield the calls that make the objects of a class, those in its own class methods too."""
    project, module = owner.scope.project, owner.scope.module
    for call, there in project.named.get(owner.node.name, [])[:MAX_ASKED]:
        where = project.scope_at(call, there)
        if where.dotted(call.func) == owner.name:
            yield call, where
    for method in owner.methods.values():
        own = method.args.args[0].arg if method.args.args else ""
        is_maker = any(tail_of(d) == "classmethod" for d in method.decorator_list)
        for call in calls(method) if is_maker else ():
            if isinstance(call.func, ast.Name) and call.func.id == own:
                yield call, project.scope_at(call, module)


def _types(made: ast.expr, scope: Scope) -> set[str]:
    """Return the types of numbers that a constructor is passed."""
    given = (*made.args, *(k.value for k in made.keywords)) if isinstance(made, ast.Call) else ()
    found = (type_named(value, scope) for value in given)
    return {each for each in found if each is not None}


def _asked(scope: Scope) -> list[Made]:
    """Return what made the objects that a method is called of; nothing where that is not known of each."""
    name = getattr(scope.function, "name", "")
    found: list[Made] = []
    for call, module in scope.project.named.get(name, [])[:MAX_ASKED]:
        where = scope.project.scope_at(call, module)
        told = made_of(call.func.value, where, MAX_HOPS) if isinstance(call.func, ast.Attribute) else None
        if told is None or told[0] is None or told[1] is not scope.owner:
            return []
        found.append(told[0])
    return found


def _of(scope: Scope, made: Made) -> Called:
    """Return the scope of a method for one object."""
    return Called(scope.project, scope.module, scope.function, scope.outer, scope.owner, made=made)


def _is_on(call: ast.Call, scope: Called) -> bool:
    enabled = option(call, "enabled", scope)
    is_on = enabled is None or holds(enabled, scope) is True
    return is_on and not is_left_out(call, scope.module, scope)
