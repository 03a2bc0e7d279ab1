"""Calls that turn a model into a type of numbers, or load it so."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.precision.precision import BRAIN, HALF, type_named
from gates.scan.program.module import Module
from gates.scan.program.project import Project

CASTS = ("half", "bfloat16", "to", "type", "from_pretrained", "from_config")
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
    return any(type_named(arg, project.scope_at(call, module)) == kind for arg in given)
