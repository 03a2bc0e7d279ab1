"""Calls that turn a model into a type of numbers, or load it so."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.precision.precision import BRAIN, HALF, type_named
from gates.scan.analyses.settings.defaults import callers_pass
from gates.scan.analyses.settings.tables import table_of
from gates.scan.program.module import Module
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

CASTS = ("half", "bfloat16", "to", "type", "from_pretrained", "from_config")
MAX_HOPS = 3
METHODS = {"half": HALF, "bfloat16": BRAIN}


def casts(project: Project, module: Module, kind: str) -> Iterator[ast.Call]:
    """Yield the calls that turn a model into a type, or load it so."""
    for call in (c for name in CASTS for c in module.calls.get(name, [])):
        if is_cast(project, module, call, kind):
            yield call


def is_cast(project: Project, module: Module, call: ast.Call, kind: str) -> bool:
    """Return whether a call turns a model into a type."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in CASTS:
        return False
    if call.func.attr in METHODS:
        return not call.args and METHODS[call.func.attr] == kind
    given = [k.value for k in call.keywords if k.arg in {"dtype", "torch_dtype"}]
    given += call.args if call.func.attr in {"to", "type"} else []
    scope = project.scope_at(call, module)
    return any(type_named(arg, scope) == kind or (kind == HALF and is_short(arg, scope)) for arg in given)


def is_short(node: ast.expr, scope: Scope, hops: int = MAX_HOPS) -> bool:
    """Return whether a type is one of a table of short ones, float16 among them, and never float32."""
    table = table_of(node, scope)
    if table is not None:
        kinds = {type_named(value, table[1]) for value in table[0].values}
        return HALF in kinds and kinds <= {HALF, BRAIN}
    if not isinstance(node, ast.Name) or not hops:
        return False
    made = scope.through(node)
    if made is not None:
        return is_short(*made, hops - 1)
    given = list(callers_pass(node.id, scope))
    return bool(given) and all(is_short(*each, hops - 1) for each in given)
