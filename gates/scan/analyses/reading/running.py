"""The function of the program that a call runs, the one that is known or the only one that fits, or a loop draws on."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from gates.scan.analyses.reading.code import callee, keyword
from gates.scan.program.known import LOADER, MODULE
from gates.scan.program.module import Function, Module
from gates.scan.program.parameters import GENERIC
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

ORDINARY = GENERIC | {"forward", "run", "compute", "evaluate", "predict", "call", "result", "results", "state", "load"}


class Origin(NamedTuple):
    """What a dictionary comes from: the function, which element of what it returns, and whether that is certain.

    Where the function itself puts the dictionary together, `keys` are those that it then has.
    """

    function: Function
    place: int | None
    sure: bool
    yields: bool = False
    keys: frozenset[str] | None = None


def run_by(project: Project, module: Module, call: ast.Call) -> tuple[Function, bool] | None:
    """Return the function that a call runs, and whether that is certain.

    Where the object is not known, it is the only method of that name which takes what is passed.
    """
    target = callee(project, module, call)
    if target is not None:
        return target, True
    scope = project.scope_at(call, module)
    named = project.types.of(call.func, scope) if isinstance(call.func, ast.Name | ast.Attribute) else None
    info = project.classes.get(named or "")
    if info is not None:
        found = project.method(info, "forward" if project.types.is_a(named, MODULE) else "__call__")
        return (found[0], True) if found is not None else None
    if not isinstance(call.func, ast.Attribute) or project.is_module(call.func.value, scope):
        return None
    if call.func.attr in ORDINARY or project.types.of(call.func.value, scope) is not None:
        return None
    if project.method_names[call.func.attr] != 1:
        return None
    function = project.once(_methods)[0][call.func.attr]
    return (function, False) if _takes(function, call) else None


def _methods(project: Project) -> Iterator[dict[str, Function]]:
    """Yield a method of each name."""
    yield {name: method for info in project.classes.values() for name, method in info.methods.items()}


def _takes(function: Function, call: ast.Call) -> bool:
    """Return whether a method may be called so."""
    named = {a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    most = len(function.args.posonlyargs) + len(function.args.args) - 1
    if function.args.kwarg is None and any(k.arg is not None and k.arg not in named for k in call.keywords):
        return False
    return function.args.vararg is not None or len(call.args) <= most


def iterated_over(project: Project, module: Module, iterated: ast.expr) -> Origin | None:
    """Return where the elements come from that a loop goes over: a generator, or a loader of a data set."""
    if isinstance(iterated, ast.Call):
        target = callee(project, module, iterated)
        if target is not None:
            return Origin(target, None, sure=True, yields=True)
    behind = project.scope_at(iterated, module).through(iterated)
    made = behind[0] if behind is not None else iterated
    if not isinstance(made, ast.Call) or behind is None or project.types.of(made, behind[1]) != LOADER or not made.args:
        return None
    if any(k.arg is None for k in made.keywords):
        return None
    if (collate := keyword(made, "collate_fn")) is not None:
        return _of_function(project, collate, behind[1])
    info = project.classes.get(project.types.of(made.args[0], behind[1]) or "")
    found = project.method(info, "__getitem__") if info is not None else None
    return Origin(found[0], None, sure=True) if found is not None else None


def _of_function(project: Project, node: ast.expr, scope: Scope) -> Origin | None:
    """Return where a function that is handed on has its dictionaries from, or an object that is called."""
    named = scope.dotted(node) if isinstance(node, ast.Name | ast.Attribute) else None
    if named in project.functions:
        return Origin(project.functions[named or ""][0], None, sure=True)
    info = project.classes.get(project.types.of(node, scope) or "")
    found = project.method(info, "__call__") if info is not None else None
    return Origin(found[0], None, sure=True) if found is not None else None
