"""Objects that say of what type numbers are: those whose method makes a scaler, and that all mean one type by it."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.precision.left_out import is_left_out
from gates.scan.analyses.precision.precision import autocasts, dtype_of, holds, option, scalers
from gates.scan.analyses.reading.called import Called, Made
from gates.scan.analyses.settings.settings import MAX_HOPS, made_of
from gates.scan.program.module import Module
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
