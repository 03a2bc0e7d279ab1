"""Scores of an object on the very data that it was fitted to, where the data that is held back is asked for nowhere."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.evaluation.evaluating import HELD
from gates.scan.analyses.evaluation.folds import FITS, TRAINING
from gates.scan.analyses.evaluation.scores import reckons_score
from gates.scan.analyses.evaluation.splits import DATA
from gates.scan.analyses.reading.code import MODEL, broken, callee, calls, function_of
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import text_of
from gates.scan.program.project import Project
from gates.scan.site import Site

LEARNS = re.compile(r"(partial_)?fit$|train($|_on|_model)|learn$")


def scored_where_fitted(project: Project, module: Module) -> Iterator[Site]:
    """Find `model.score(loader)` after `model.fit(loader)`, where nothing calls what gives the data held back."""
    for fit in (c for name, found in module.calls.items() if LEARNS.match(name) for c in found):
        function = function_of(fit, module)
        is_data = isinstance(fit.func, ast.Attribute) and bool(fit.args) and not MODEL.search(text_of(fit.args[0]))
        held = list(project.once(_kept_back)) if function is not None and is_data else []
        for call in calls(function) if function is not None and held else ():
            target = callee(project, module, call) if _is_after(fit, call, module) else None
            if target is None or FITS.search(target.name) or not reckons_score(target):
                continue
            around = module.parents.get(call)
            named = tail_of(around.targets[0]) if isinstance(around, ast.Assign) else ""
            if not TRAINING.search(named) and len(project.named[tail_of(call.func)]) == 1:
                said = f"{tail_of(call.func)} is handed {text_of(call.args[0])}, which was fitted to"
                yield broken(module, call, f"{said}; nothing calls {held[0]}")


def _is_after(fit: ast.Call, call: ast.Call, module: Module) -> bool:
    """Return whether a call comes after a fit, whenever that runs, is of the same object and handed the same data."""
    if not isinstance(call.func, ast.Attribute) or not isinstance(fit.func, ast.Attribute) or call.lineno <= fit.lineno:
        return False
    same = bool(call.args) and text_of(call.args[0]) == text_of(fit.args[0])
    chosen = {a for a in module.ancestors(fit) if isinstance(a, ast.If | ast.IfExp)}
    return same and text_of(call.func.value) == text_of(fit.func.value) and chosen <= set(_first(call, module))


def _first(call: ast.Call, module: Module) -> Iterator[ast.AST]:
    """Yield the conditions on whose first side a call stands."""
    inside: ast.AST = call
    for around in module.ancestors(call):
        if isinstance(around, ast.If) and inside in around.body:
            yield around
        inside = around


def _kept_back(project: Project) -> Iterator[str]:
    """Yield the names of the program's functions that give data held back, where none of its files names them again."""
    defined = {name.rpartition(".")[2] for name in project.functions} | set(project.method_names)
    for name in sorted(each for each in defined if HELD.search(each) and DATA.search(each)):
        if not any(_names(module, name) for module in project.modules.values() if name in module.words):
            yield name


def _names(module: Module, name: str) -> bool:
    """Return whether live code of a file names a function, other than to define it."""
    nodes = (n for kind in (ast.Name, ast.Attribute) for n in module.live.get(kind, ()))
    return any(isinstance(n, ast.Name | ast.Attribute) and tail_of(n) == name for n in nodes)
