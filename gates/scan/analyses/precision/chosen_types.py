"""Scalers that are on for each type that a program may choose for autocast, bfloat16 among them."""

import ast
from collections.abc import Callable, Iterator

from gates.scan.analyses.precision.precision import BRAIN, HALF, autocasts, option, scalers, type_named
from gates.scan.analyses.reading.code import class_of, constant, keyword
from gates.scan.program.module import Module
from gates.scan.program.nodes import inner, text_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

CHOICES = (ast.If, ast.IfExp, ast.BoolOp, ast.match_case, ast.Try)
Is = Callable[[ast.Call, Scope], bool]


def scaled_for_all(project: Project, is_on: Is) -> Iterator[tuple[ast.Call, Module]]:
    """Yield each scaler that nothing turns off, made where a context's type is chosen of bfloat16 and float16."""
    for module in project.modules.values():
        if any(_is_chosen(each, module) for each in module.calls.get("scale", ())):
            continue  # it may scale for one type alone
        made = [(call, scope) for call, scope in scalers(project, module) if is_on(call, scope)]
        contexts = list(autocasts(project, module)) if made else []
        for call, scope in made:
            if _is_chosen(call, module) or _is_set_in(call, scope):
                continue
            near = [pair for pair in contexts if _is_near(pair[0], pair[1], call, scope)]
            if any(_kinds(context, where) == {BRAIN, HALF} for context, where in near):
                yield call, module


def _is_chosen(call: ast.Call, module: Module) -> bool:
    """Return whether a call is made on one side of a choice."""
    return any(isinstance(node, CHOICES) for node in module.ancestors(call))


def _is_set_in(call: ast.Call, scope: Scope) -> bool:
    """Return whether options that a scaler is handed whole are told if it is on: `options["enabled"] = ...`."""
    rest = {text_of(k.value) for k in call.keywords if k.arg is None}
    body = scope.function or scope.module.tree
    stored = [t for n in inner(body, ast.Assign) if isinstance(n, ast.Assign) for t in n.targets]
    return any(
        isinstance(t, ast.Subscript) and text_of(t.value) in rest and constant(t.slice) == "enabled" for t in stored
    )


def _is_near(context: ast.Call, where: Scope, call: ast.Call, scope: Scope) -> bool:
    """Return whether a context and a scaler belong to one function, or to one class."""
    owner = class_of(call, scope.module)
    return where.function is scope.function or (owner is not None and class_of(context, where.module) is owner)


def _kinds(context: ast.Call, scope: Scope) -> set[str | None]:
    """Return the types that a context may have, where these are chosen; none where it may be off, or has but one."""
    given = option(context, "dtype", scope)
    enabled = keyword(context, "enabled")
    if given is None or (enabled is not None and constant(enabled) is not True):
        return set()
    values = list(_values(given, scope))
    return {type_named(value, where) for value, where in values} if len(values) > 1 else set()


def _values(node: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    """Yield what a variable of a function, or an attribute, is set to; both sides of a choice."""
    if isinstance(node, ast.IfExp):
        yield from _values(node.body, scope)
        yield from _values(node.orelse, scope)
    elif isinstance(node, ast.Name):
        body = scope.function or scope.module.tree
        stored = [n for n in inner(body, ast.Assign) if isinstance(n, ast.Assign)]
        for each in stored:
            if any(isinstance(t, ast.Name) and t.id == node.id for t in each.targets):
                yield from _sides(each.value, scope)
    elif isinstance(node, ast.Attribute) and (bound := scope.attribute(node)):
        for binding, where in bound:
            yield from _sides(binding.node, where) if isinstance(binding.node, ast.expr) else ()


def _sides(value: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    for side in (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,):
        yield side, scope
