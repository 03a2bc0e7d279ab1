"""Evaluations of a model that stays in training mode."""

import ast
from collections.abc import Iterator

from gates.scan.analyses._code import MODEL, broken, callee, function_of
from gates.scan.analyses._evaluating import NAMED, WORDS, Evaluation, callers, evaluations, places_of
from gates.scan.analyses._modes import forgets, in_eval_mode
from gates.scan.module import tail_of
from gates.scan.nodes import inner
from gates.scan.project import Project
from gates.scan.site import Site

__all__ = ["WORDS", "look"]
MESSAGE = "the model is evaluated without eval(): dropout and batch statistics go on"
FEW = 2


def look(project: Project) -> Iterator[Site]:
    """Yield each evaluation without `eval()`."""
    for found in project.once(evaluations):
        if not in_eval_mode(project, found):
            yield from places_of(project, found, MESSAGE)
            yield from _made(project, found)
            yield from _forgotten(project, found)


def _forgotten(project: Project, found: Evaluation) -> Iterator[Site]:
    """Yield the contexts around an evaluation that put its model back into training mode, but never off."""
    for around in found.module.ancestors(found.loop):
        for item in around.items if isinstance(around, ast.With | ast.AsyncWith) else ():
            call = item.context_expr
            place = forgets(project, found.module, call) if isinstance(call, ast.Call) else None
            if place is not None:
                yield broken(*place, MESSAGE)


def _made(project: Project, found: Evaluation) -> Iterator[Site]:
    """Yield the calls that hand a model, as it was made, to a helper which is not called an evaluation."""
    function = found.function
    if function is None or NAMED.search(function.name):
        return
    for call, there in callers(project, function)[:FEW]:
        outer = function_of(call, there)
        if callee(project, there, call) is not function or outer is None:
            continue
        given = {arg.id for arg in (*call.args, *(k.value for k in call.keywords)) if isinstance(arg, ast.Name)}
        made = [n for n in inner(outer, ast.Assign) if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call)]
        if any(tail_of(n.targets[0]) in given and MODEL.search(tail_of(n.targets[0])) for n in made):
            yield broken(there, call, MESSAGE)
