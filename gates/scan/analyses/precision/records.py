"""Records of precision that are made with a type and a scaler beside it, where autocast takes the type from there."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.precision.precision import autocasts, holds, option, scalers, type_named
from gates.scan.analyses.reading.constructors import declared
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Module
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.program.signatures import parameters


def scaled_in_record(project: Project, kind: str) -> Iterator[tuple[ast.Call, Module]]:
    """Yield the scalers that are on in a record made with a type: `Precision(torch.bfloat16, GradScaler("cuda"))`."""
    for module in project.modules.values():
        for call, scope in scalers(project, module):
            parent = module.parents.get(call)
            made = module.parents.get(parent) if isinstance(parent, ast.keyword) else parent
            info = project.classes.get(scope.dotted(made.func) or "") if isinstance(made, ast.Call) else None
            enabled = option(call, "enabled", scope)
            if info is None or not isinstance(made, ast.Call) or (enabled and holds(enabled, scope) is not True):
                continue
            kinds = {name for name, value in _given(made, info) if type_named(value, scope) == kind}
            if kinds & set(_cast_by(project, info)):
                yield call, module


def _given(made: ast.Call, info: ClassInfo) -> Iterator[tuple[str, ast.expr]]:
    """Yield what a constructor is passed, with the name of its field."""
    fields = list(parameters(info.methods["__init__"]))[1:] if "__init__" in info.methods else declared(info)
    yield from zip(fields, made.args, strict=False)
    yield from ((option.arg, option.value) for option in made.keywords if option.arg is not None)


def _cast_by(project: Project, info: ClassInfo) -> Iterator[str]:
    """Yield the fields of a class's objects that autocast takes its type from."""
    for module in project.modules.values():
        for call, scope in autocasts(project, module):
            told = option(call, "dtype", scope)
            if isinstance(told, ast.Attribute) and _is_of(told.value, scope, info):
                yield told.attr


def _is_of(node: ast.expr, scope: Scope, info: ClassInfo) -> bool:
    """Return whether an object may be one of a class, which is unknown or its own."""
    owner = scope.class_of(node)
    return owner is info or (owner is None and scope.owner is None)
