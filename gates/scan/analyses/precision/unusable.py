"""Scalers that are used where they are `None`, or off."""

import ast

from gates.scan.analyses.precision.precision import is_scaler, scalers
from gates.scan.analyses.reading.code import calls, constant, keyword
from gates.scan.program.module import tail_of
from gates.scan.program.nodes import text_of, walk
from gates.scan.program.scope import Scope

USED = {"scale", "unscale_", "step", "update"}
MEMBERS = {*USED, "load_state_dict", "state_dict", "get_scale"}


def absent(test: ast.expr, yes: list[ast.stmt], no: list[ast.stmt], scope: Scope) -> tuple[str, list[ast.stmt]] | None:
    """Return a name that a test holds against `None`, and the branch in which it is `None`."""
    if (
        isinstance(test, ast.Compare)
        and len(test.ops) == 1
        and constant(test.comparators[0]) is None
        and isinstance(test.comparators[0], ast.Constant)
        and is_scaler(test.left, scope)
    ):
        if isinstance(test.ops[0], ast.Is | ast.Eq):
            return text_of(test.left), yes
        if isinstance(test.ops[0], ast.IsNot | ast.NotEq):
            return text_of(test.left), no
    if isinstance(test, ast.Name | ast.Attribute) and is_scaler(test, scope):
        return text_of(test), no
    return None


def of_disabled(test: ast.expr, no: list[ast.stmt], scope: Scope) -> ast.Call | None:
    """Return what is called of a scaler, its state loaded included, only where `is_enabled()` says that it is off."""
    if not isinstance(test, ast.Call) or not isinstance(test.func, ast.Attribute) or test.func.attr != "is_enabled":
        return None
    if not no or not is_scaler(test.func.value, scope):
        return None
    name = text_of(test.func.value)
    used = (c for s in no for c in calls(s) if isinstance(c.func, ast.Attribute) and text_of(c.func.value) == name)
    return next((c for c in used if tail_of(c.func) in {*USED, "load_state_dict"}), None)


def loaded_off(test: ast.expr, yes: list[ast.stmt], scope: Scope) -> ast.Call | None:
    """Return what loads a scaler's state only where the setting is off that switches the scalers of the file on."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    off = {text_of(part.operand) for part in parts if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not)}
    switches = [keyword(call, "enabled") for call, _ in scalers(scope.project, scope.module)] if off else []
    if not switches or not all(switch is not None and text_of(switch) in off for switch in switches):
        return None
    made = (c for s in yes for c in calls(s) if tail_of(c.func) == "load_state_dict")
    return next((c for c in made if isinstance(c.func, ast.Attribute) and is_scaler(c.func.value, scope)), None)


def use(branch: list[ast.stmt], name: str) -> ast.Call | None:
    """Return a call of a scaler's method in a branch that does not give the name a value first."""
    for statement in branch:
        for node in walk(statement):
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store) and text_of(node) == name:
                return None
        for call in calls(statement):
            if isinstance(call.func, ast.Attribute) and call.func.attr in MEMBERS and text_of(call.func.value) == name:
                return call
    return None
