"""What methods give of an object that the settings choose: of a member of an enumeration, of a policy."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.reading.called import Called, called
from gates.scan.analyses.settings.defaults import under
from gates.scan.analyses.settings.settings import made_of, setting
from gates.scan.program.module import is_property
from gates.scan.program.nodes import inner
from gates.scan.program.scope import Scope

MAX_HOPS = 5


def given_by(node: ast.expr, scope: Scope) -> Iterator[tuple[Called, ast.expr]]:
    """Yield what a method returns, in the scope of its call for the object that it is called of."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    if scope.project.types.function(node, scope) is not None:
        return  # it is followed as any other call
    thing = made_of(node.func.value, scope, MAX_HOPS)
    found = scope.project.method(thing[1], node.func.attr) if thing is not None and thing[0] is not None else None
    if found is None or thing is None or is_property(found[0]):
        return
    where = called(scope.project.scope_of(found[0], found[1]), node, scope, thing[0])
    for result in inner(found[0], ast.Return):
        if isinstance(result, ast.Return) and result.value is not None:
            yield where, result.value


def method_of(call: ast.Call, scope: Scope) -> str | None:
    """Return the method that a call takes out of a table: `half` of `{"short": net.half}[kind]()`."""
    func = call.func
    if not isinstance(func, ast.Subscript) or call.args or call.keywords:
        return None
    found = under(func.value, setting(func.slice, scope), scope, MAX_HOPS)
    return found[0].attr if found is not None and isinstance(found[0], ast.Attribute) else None
