"""Whether a scaler is at hand where states are saved or loaded."""

import ast

from gates.scan.analyses.precision.hosts import is_mixed_with_keeper
from gates.scan.analyses.precision.keepers import NAMED, is_passing, keeps, passes, passing
from gates.scan.analyses.precision.precision import scalers
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function
from gates.scan.program.nodes import inner
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

Body = Function | ast.Module


def has_scaler(project: Project, body: Body, scope: Scope) -> bool:
    """Return whether a scaler is made in a body, handed to it, or kept by the object that it is a method of."""
    known = {call for call, _ in scalers(project, scope.module)}
    if any(call in known for call in inner(body, ast.Call)):
        return True
    if isinstance(body, ast.FunctionDef | ast.AsyncFunctionDef):
        outer = scope.outer.function if scope.outer is not None else None
        if outer is not None and any(call in known for call in inner(outer, ast.Call)):
            return True
        if any(NAMED.search(arg.arg) for arg in (*body.args.args, *body.args.kwonlyargs)):
            return True
        if project.once(passing) and any(
            _is_passed(project, arg, scope) for arg in (*body.args.args, *body.args.kwonlyargs)
        ):
            return True
        owner = scope.owner
        if owner is not None and any(passes(project, kind) for kind in _kept(project, owner)):
            return True
        return owner is not None and (keeps(project, owner, extended=True) or is_mixed_with_keeper(project, owner))
    return False


def makes_keeper(project: Project, scope: Scope) -> bool:
    """Return whether a function makes an object that keeps a scaler."""
    made = (b.node for bound in scope.bindings.values() for b in bound if b.kind == "value")
    infos = (project.classes.get(scope.dotted(node.func) or "") for node in made if isinstance(node, ast.Call))
    return any(info is not None and keeps(project, info, extended=False) for info in infos)


def _is_passed(project: Project, arg: ast.arg, scope: Scope) -> bool:
    """Return whether a function is handed what passes on the state of a scaler."""
    name = ast.copy_location(ast.Name(arg.arg, ast.Load()), arg)
    return arg.annotation is not None and arg.arg != scope.self_name and is_passing(project, name, scope)


def _kept(project: Project, owner: ClassInfo) -> list[str]:
    """Return the classes of what an object keeps, in a program where some class passes on the state of a scaler."""
    if not project.once(passing):
        return []
    kinds = (project.types.attribute(owner, name) for name in owner.attributes)
    return [kind for kind in kinds if kind is not None]
