"""Losses that helpers are handed to keep: as they are, or in a field of a mapping, a record or an object."""

import ast

from gates.scan.analyses.reading.code import Loop, loop_of
from gates.scan.analyses.reading.containers import Way
from gates.scan.analyses.reading.flow import set_before
from gates.scan.analyses.reading.keyed import field_of, values_of
from gates.scan.analyses.reading.origins import Origins
from gates.scan.analyses.settings.registered import made_of_kept
from gates.scan.analyses.training.graphs import CUT, carried
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

MAPPED = frozenset({"items", "values"})
PLAIN = (ast.Dict, ast.DictComp, ast.List, ast.ListComp, ast.Set, ast.SetComp, ast.Constant)


def handed_in(value: ast.expr, function: Function) -> ast.expr:
    """Return what a value is by which a function knows what it is handed.

    Of `loss` that is `out["loss"]` where it is that, and `val` where it is `val * n`.
    """
    if not isinstance(value, ast.Name):
        return value
    made = set_before(function, value.id, value.lineno)
    if len(made) == 1 and field_of(made[0][0]) is not None:
        return made[0][0]
    return next((n for n in carried(made[0][0]) if isinstance(n, ast.Name)), value) if len(made) == 1 else value


def is_picked(value: ast.expr, function: Function) -> bool:
    """Return whether a value is what a loop over a mapping calls its parts, and the loop picks some of them."""
    for loop in inner(function, ast.For) if isinstance(value, ast.Name) else ():
        if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and tail_of(loop.iter.func) in MAPPED:
            names = {n.id for n in walk(loop.target) if isinstance(n, ast.Name)}
            if text_of(value) in names and any(n is value for n in walk(loop)) and _picks(loop, names):
                return True
    return False


def _picks(loop: ast.For, names: set[str]) -> bool:
    """Return whether a loop asks what a part is, or what it is called."""
    for test in (node.test for node in inner(loop, ast.If, ast.IfExp)):  # type: ignore[attr-defined]  # both have one
        is_held = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In | ast.NotIn)
        held = test.comparators[0] if is_held and isinstance(test, ast.Compare) else None
        if isinstance(held, ast.Name | ast.Attribute) and text_of(test.left) in names:
            continue  # whether there is a sum for it yet
        if any(isinstance(n, ast.Name) and n.id in names for n in walk(test)):
            return True
    return False


def named_in(value: ast.expr, scope: Scope) -> ast.Name | None:
    """Return the parameter that a value is, or is a field of; none for a field of the function's own instance."""
    field = field_of(value)
    node = field[0] if field is not None else value
    is_far = isinstance(node, ast.Attribute)
    while isinstance(node, ast.Attribute):
        node = node.value
    is_own = field is not None and not is_far and isinstance(node, ast.Name) and node.id == scope.self_name
    return node if isinstance(node, ast.Name) and not is_own else None


def ways_of(project: Project, origins: Origins, value: ast.expr, scope: Scope) -> list[Way]:
    """Return what a value that is handed over may be, through the field that it is taken out of."""
    if field_of(value) is None:
        return origins.ways(value, scope)
    found = values_of(project, origins, value, scope) or []
    if any(isinstance(each.node, ast.Call) and tail_of(each.node.func) in CUT for each in found):
        return []
    return [way for each in found for way in origins.ways(each.node, each.scope)]


def may_run(project: Project, origins: Origins, call: ast.Call, module: Module, function: Function) -> bool:
    """Return whether a call that has the name of a function may run it, by its arguments and by its object."""
    there = project.scope_of(function, module)
    arguments = function.args
    names = [arg.arg for arg in (*arguments.posonlyargs, *arguments.args)][there.owner is not None :]
    needed = names[: len(names) - len(arguments.defaults)]
    is_spread = any(isinstance(arg, ast.Starred) for arg in call.args) or any(k.arg is None for k in call.keywords)
    if not is_spread and any(argument(call, function, n, bound=there.owner is not None) is None for n in needed):
        return False
    if there.owner is None or not isinstance(call.func, ast.Attribute) or function.name == "__init__":
        return True
    scope, held = project.scope_at(call, module), call.func.value
    owners = origins.classes(held, scope) or list(made_of_kept(project, held, scope))
    if owners:
        methods = (project.method(owner, name) for owner in owners for name in (function.name, "__getattr__"))
        return any(m is not None and (m[0] is function or m[0].name == "__getattr__") for m in methods)
    is_known = project.types.of(held, scope) is not None
    return not is_known and not any(isinstance(o.node, PLAIN) for o in origins.of(held, scope))


def gone_over(holder: ast.expr, node: ast.AST, module: Module) -> ast.expr:
    """Return what a loop around a node goes over, where an object is the loop's variable."""
    loop: Loop | None = loop_of(node, module)
    while loop is not None and isinstance(holder, ast.Name):
        names = {n.id for n in walk(loop.target) if isinstance(n, ast.Name)} if not isinstance(loop, ast.While) else ()
        if holder.id in names and not isinstance(loop, ast.While):
            over: ast.expr = loop.iter
            while isinstance(over, ast.Call) and (over.args or isinstance(over.func, ast.Attribute)):
                over = over.args[0] if over.args else over.func.value  # type: ignore[attr-defined]  # a method
            return over
        loop = loop_of(loop, module)
    return holder
