"""What runs a function, and whether it has put its model into evaluation mode before."""

import ast
import re

from gates.scan.analyses.evaluation.switches import turns_off
from gates.scan.analyses.reading.code import function_of
from gates.scan.analyses.reading.origins import Origins
from gates.scan.analyses.training.forwards import trains
from gates.scan.program.known import MODULE
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project

HOPS = 2
GRADIENTS = re.compile(r"requires_grad|set_grad_enabled")


def callers(project: Project, function: Function) -> list[tuple[ast.Call, Module]]:
    """Return the calls that run a function, or may: those by its name, or of the objects that it stands behind."""
    if function.name == "__call__":
        return list(Origins(project).called(function))[:20]
    found = project.named.get(function.name, [])[:20]
    return [each for each in found if not project.is_foreign(project.scope_at(*each).dotted(each[0].func) or "")]


def rests(project: Project, module: Module, function: Function) -> bool:
    """Return whether a method is one of objects that put their model into evaluation mode for good."""
    owner = project.scope_of(function, module).owner
    if owner is None or GRADIENTS.search(text_of(owner.node)) or project.types.is_a(owner.name, MODULE) is not False:
        return False
    methods = owner.methods.values()
    made = [(m, c) for m in methods for c in inner(m, ast.Call) if isinstance(c, ast.Call)]
    trained = any(tail_of(c.func) == "train" for _, c in made) or any(map(trains, methods))
    return any(turns_off(c) and m is not function for m, c in made) and not trained


def is_rested(project: Project, module: Module, function: Function, hops: int = HOPS) -> bool:
    """Return whether what runs a function, or runs that, has put its model off before, to evaluate it and no more."""
    sites = callers(project, function)
    around = [(call, function_of(call, there) or there.tree, there) for call, there in sites]
    if not sites or any(trains(outer) or GRADIENTS.search(text_of(outer)) for _, outer, _ in around):
        return False
    return rests(project, module, function) or all(
        _hands_rested(call, outer)
        or (hops > 1 and not isinstance(outer, ast.Module) and is_rested(project, there, outer, hops - 1))
        for call, outer, there in around
    )


def _hands_rested(call: ast.Call, around: ast.AST) -> bool:
    before = [c for c in inner(around, ast.Call) if isinstance(c, ast.Call) and c.lineno < call.lineno and turns_off(c)]
    found = {text_of(c.func.value) for c in before if isinstance(c.func, ast.Attribute)}
    made = [n for n in inner(around, ast.Assign) if isinstance(n, ast.Assign) and any(c in walk(n) for c in before)]
    found |= {text_of(target) for n in made for target in n.targets}
    return any(text_of(given) in found for given in (*call.args, *(k.value for k in call.keywords)))
