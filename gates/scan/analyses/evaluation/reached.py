"""What an evaluation comes to by what it runs: a model behind several helpers, a training on what it returns."""

import ast
from collections.abc import Iterable

from gates.scan.analyses.evaluation.switches import turns_off
from gates.scan.analyses.reading.code import MODEL, callee, function_of, is_backward
from gates.scan.analyses.reading.flow import sources
from gates.scan.analyses.training.forwards import NO_GRAD, is_call_of_model, trains
from gates.scan.program.classes import ClassInfo
from gates.scan.program.known import MODULE
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of
from gates.scan.program.project import Project

DEPTH = 3
MOST = 16


def reaches_model(project: Project, module: Module, call: ast.Call, depth: int = DEPTH) -> bool:
    """Return whether a call runs a model through helpers that neither train nor see to gradients or modes.

    What steps an environment, or an optimizer, is left out.
    """
    target = callee(project, module, call) if depth else None
    if target is None or len(target.body) > MOST or not target.args.args or trains(target):
        return False
    scope = project.scope_of(target, module)
    if "torch" not in {name.partition(".")[0] for name in scope.module.aliases.values()}:
        return False
    made = [c for c in inner(target, ast.Call) if isinstance(c, ast.Call)]
    if (
        any(turns_off(c) or tail_of(c.func) == "step" for c in made)
        or NO_GRAD.search(text_of(target))
        or not _is_plain(project, target, module)
    ):
        return False
    return any(is_call_of_model(c) or reaches_model(project, scope.module, c, depth - 1) for c in made)


def _is_plain(project: Project, function: Function, module: Module) -> bool:
    """Return whether a function gives something back, and is no part of a model, of a framework or of a mixin."""
    owner = project.scope_of(function, module).owner
    gives = any(isinstance(n, ast.Return) and n.value is not None for n in inner(function, ast.Return))
    if owner is None or not gives:
        return gives
    if _switches(owner):
        return project.types.is_a(owner.name, MODULE) is not True
    is_whole = "__init__" in owner.methods or any("dataclass" in text_of(d) for d in owner.node.decorator_list)
    kin = (owner, *project.below(owner)) if is_whole else ()
    known = all(base in project.classes for each in kin for base in each.bases)
    return is_whole and known and all(project.types.is_a(each.name, MODULE) is False for each in kin)


def _switches(owner: ClassInfo) -> bool:
    """Return whether a class puts a model of its own into a mode, and so is a trainer, whatever it extends."""
    made = (c for method in owner.methods.values() for c in inner(method, ast.Call))
    held = (c.func.value for c in made if isinstance(c, ast.Call) and isinstance(c.func, ast.Attribute)
            and c.func.attr in {"train", "eval"})  # fmt: skip
    return any(isinstance(each, ast.Attribute) and MODEL.search(each.attr) for each in held)


def is_learned_from(project: Project, sites: Iterable[tuple[ast.Call, Module]]) -> bool:
    """Return whether some caller goes backward through what its call gives."""
    for call, there in sites:
        around = function_of(call, there)
        ran = inner(around, ast.Call) if around is not None and trains(around) else ()
        for back in (c for c in ran if isinstance(c, ast.Call) and is_backward(c)):
            behind = (back.func.value, *back.args) if isinstance(back.func, ast.Attribute) else back.args
            scope = project.scope_at(back, there)
            if any(call in ast.walk(s.node) for e in behind for s in sources(project, e, scope, back.lineno)):
                return True
    return False
