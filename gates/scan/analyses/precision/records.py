"""Records of precision that are made with a type and a scaler beside it, where autocast takes the type from there."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.precision.precision import autocasts, holds, option, scalers, type_named
from gates.scan.analyses.reading.constructors import declared
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Module
from gates.scan.program.nodes import text_of, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.program.signatures import parameters

DEVICE = re.compile(r"^True$|cuda")
SHORT = re.compile(r"(?i)16|half|dtype|precision")


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


def switched_in_record(project: Project, kind: str) -> Iterator[tuple[ast.expr, Module]]:
    """Yield what switches a scaler on in a record that may be of a type, by the device and whatever the type is.

    `Numerics(dtype, scaled=device.type == "cuda")`, where the scaler is made with `enabled=numerics.scaled`.
    """
    asked = [option(call, "enabled", scope) for m in project.modules.values() for call, scope in scalers(project, m)]
    cast = [option(call, "enabled", scope) for m in project.modules.values() for call, scope in autocasts(project, m)]
    shared = {each.attr for each in cast if isinstance(each, ast.Attribute)}  # it turns on the whole of the precision
    for switch in sorted({each.attr for each in asked if isinstance(each, ast.Attribute)} - shared):
        for info in project.classes.values():
            kinds = set(_cast_by(project, info)) if switch in declared(info) else set()
            for made, module in project.named.get(info.node.name, ()) if kinds else ():
                given, scope = dict(_given(made, info)), project.scope_at(made, module)
                on, types = given.get(switch), [given[name] for name in kinds if name in given]
                if on is None or not DEVICE.search(text_of(on)) or SHORT.search(text_of(on)):
                    continue
                if any(_may_be(each, kind, scope) and not _is_told(each, on, made, module) for each in types):
                    yield on, module


def _may_be(node: ast.expr, kind: str, scope: Scope) -> bool:
    """Return whether one of the values that a variable of a function is set to is a type."""
    if type_named(node, scope) == kind:
        return True
    found = scope.lookup(node.id) if isinstance(node, ast.Name) else None
    values = [b.node for b in found[1] if isinstance(b.node, ast.expr)] if found is not None else []
    return any(type_named(value, scope) == kind for value in values)


def _is_told(kind: ast.expr, on: ast.expr, made: ast.Call, module: Module) -> bool:
    """Return whether a switch goes by a type, or the record is made under a condition that asks for it."""
    tests = [on, *(a.test for a in module.ancestors(made) if isinstance(a, ast.If | ast.IfExp))]
    return any(text_of(n) == text_of(kind) for test in tests for n in walk(test) if isinstance(n, ast.expr))


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
