"""Scalers that are updated where the optimizer steps by itself, in functions that the backward pass is no part of."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.precision.precision import is_scaler
from gates.scan.analyses.reading.branches import leaves
from gates.scan.analyses.reading.code import broken, callee, calls, functions
from gates.scan.program.known import OPTIMIZER
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.site import Site

WORDS = ("caler*",)
STEPPED = re.compile(r"(?i)(^|_)optim(izer)?s?\d*(_|$)|^opt$")
CHECKS = re.compile(r"(?i)finite|isnan|isinf|found_inf|overflow|skip")


def look(project: Project) -> Iterator[Site]:
    """Yield each plain step of an optimizer that a scaler's update follows, where that scaler steps nothing."""
    for module in project.modules.values():
        for function in functions(module) if {"update", "step"} <= module.calls.keys() else ():
            scope = project.scope_of(function, module)
            made = list(calls(function))
            updates = [c for c in made if _is_of_scaler(c, "update", scope)]
            if not updates or _steps(project, module, function, scope) or _is_checked(function):
                continue
            plain = [c for c in made if _is_plain(project, c, scope)]
            for call in plain:
                if any(_follows(call, update, module) for update in updates):
                    yield broken(module, call, "the optimizer steps by itself, and the scaler is updated")


def _is_of_scaler(call: ast.Call, method: str, scope: Scope) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == method and is_scaler(call.func.value, scope)


def _steps(project: Project, module: Module, function: Function, scope: Scope) -> bool:
    """Return whether a function steps with its scaler or hands it on, itself or by what it calls, or scales itself.

    Of one that scales the loss itself the order of its events tells.
    """
    for call in calls(function):
        given = (*call.args, *(each.value for each in call.keywords))
        if any(is_scaler(each, scope) for each in given if isinstance(each, ast.Name | ast.Attribute)):
            return True
        target = callee(project, module, call)
        inside = calls(target) if target is not None else ()
        where = project.scope_of(target, module) if target is not None else scope
        if _is_of_scaler(call, "scale", scope) or any(_is_of_scaler(c, "step", where) for c in (call, *inside)):
            return True
    return False


def _is_checked(function: Function) -> bool:
    """Return whether a function asks by itself whether the gradients can be used."""
    return any(isinstance(n, ast.If) and CHECKS.search(text_of(n.test)) for n in inner(function, ast.If))


def _is_plain(project: Project, call: ast.Call, scope: Scope) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
        return False
    held = call.func.value
    return bool(STEPPED.search(tail_of(held))) or project.types.is_a(project.types.of(held, scope), OPTIMIZER) is True


def _follows(step: ast.Call, update: ast.Call, module: Module) -> bool:
    """Return whether an update comes after a step: on no other side of a choice, and not past one that leaves."""
    if update.lineno < step.lineno:
        return False
    inside: ast.AST = step
    after = [update, *module.ancestors(update)]
    for around in module.ancestors(step):
        if isinstance(around, ast.If):
            side = next((block for block in (around.body, around.orelse) if inside in block), [])
            if not any(each in side for each in after) and (around in after or leaves(side)):
                return False
        inside = around
    return True
