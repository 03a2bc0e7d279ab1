"""Calls that turn a model into a type of numbers, or load it so."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.precision.precision import BRAIN, HALF, scalers, type_named
from gates.scan.analyses.reading.code import keyword
from gates.scan.analyses.settings.defaults import callers_pass
from gates.scan.analyses.settings.tables import table_of
from gates.scan.program.module import Module
from gates.scan.program.nodes import text_of
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
    if _is_short_where_scaled(node, scope) or _is_what_scales(node, scope):
        return True
    made = scope.through(node)
    if made is not None:
        return is_short(*made, hops - 1)
    given = list(callers_pass(node.id, scope))
    return bool(given) and all(is_short(*each, hops - 1) for each in given)


def _is_short_where_scaled(node: ast.Name, scope: Scope) -> bool:
    """Return whether a type is float16 on the very branch on which a scaler of the file is switched on."""
    found = scope.lookup(node.id)
    if found is None or len(found[1]) < 2:
        return False
    values = [b.node for b in found[1] if isinstance(b.node, ast.expr)]
    halves = [value for value in values if found[0].dotted(value) in {HALF, "torch.half"}]
    switches = [keyword(call, "enabled") for call, _ in scalers(scope.project, scope.module)]
    on = {pair for switch in switches if (pair := _asked(switch)) is not None}
    return bool(on) and any(on & set(_branch(value, found[0].module)) for value in halves)


def _is_what_scales(node: ast.Name, scope: Scope) -> bool:
    """Return whether a scaler beside it is switched on exactly where a type is float16: `enabled=kind is float16`."""
    made = ((keyword(call, "enabled"), where) for call, where in scalers(scope.project, scope.module))
    return any(
        isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is)
        and text_of(test.left) == node.id and where.function is scope.function
        and where.dotted(test.comparators[0]) in {HALF, "torch.half"}
        for test, where in made
    )  # fmt: skip


def _asked(test: ast.expr | None) -> tuple[str, str] | None:
    """Return what is compared with what: `kind == "fp16"`."""
    is_one = isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)
    return (text_of(test.left), text_of(test.comparators[0])) if is_one and isinstance(test, ast.Compare) else None


def _branch(node: ast.AST, module: Module) -> Iterator[tuple[str, str]]:
    """Yield what holds where a node stands, by `if` and by `case`: which thing is of which value."""
    below: ast.AST = node
    for around in module.ancestors(node):
        if isinstance(around, ast.If) and below in around.body and (pair := _asked(around.test)) is not None:
            yield pair
        case = below.pattern if isinstance(below, ast.match_case) else None
        if isinstance(around, ast.Match) and isinstance(case, ast.MatchValue):
            yield text_of(around.subject), text_of(case.value)
        below = around
