"""Methods that a class leaves to those that extend it, and what these have for them."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.evaluation.switches import turns_off
from gates.scan.analyses.training.forwards import NO_GRAD, is_call_of_model, trains
from gates.scan.program.module import Function, Module
from gates.scan.program.nodes import inner, text_of
from gates.scan.program.project import Project


def forwards_of(project: Project, module: Module, call: ast.Call) -> Iterator[tuple[ast.Call, Module]]:
    """Yield the forward passes in what a call runs of the classes that extend its own, which has no such method.

    What trains, or sees to gradients and modes itself, is left out.
    """
    for function, there in dict(_filled(project, module, call)).items():
        made = [c for c in inner(function, ast.Call) if isinstance(c, ast.Call)]
        found = [c for c in made if is_call_of_model(c)]
        if found and not (trains(function) or NO_GRAD.search(text_of(function)) or any(map(turns_off, made))):
            yield min(found, key=lambda c: c.lineno), there


def _filled(project: Project, module: Module, call: ast.Call) -> Iterator[tuple[Function, Module]]:
    """Yield the methods that a call may run where the class of its object has an empty one, or none."""
    if not isinstance(call.func, ast.Attribute):
        return
    owner = project.scope_at(call, module).class_of(call.func.value)
    own = project.method(owner, call.func.attr) if owner is not None else None
    if owner is None or (own is not None and not _is_empty(own[0])):
        return
    for info in project.below(owner):
        found = project.method(info, call.func.attr)
        if found is not None and not _is_empty(found[0]):
            yield found[0], found[1]


def _is_empty(function: Function) -> bool:
    """Return whether a function does nothing, or says that it is not there: `...`, `raise NotImplementedError`."""
    return all(
        isinstance(one, ast.Pass | ast.Raise) or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        for one in function.body
    )
