"""What the methods are handed that a program calls by the names of events: `getattr(hook, event)(self)`."""

import ast

from gates.scan.program.classes import ClassInfo
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.ways.hooks import hooks_of


def class_at_hook(project: Project, node: ast.expr, scope: Scope) -> ClassInfo | None:
    """Return the class of a hook's parameter, or of what that keeps: of `trainer.model`, where all calls agree."""
    if isinstance(node, ast.Attribute):
        owner = class_at_hook(project, node.value, scope)
        return _kept_in(project, owner, node.attr) if owner is not None else None
    bound = scope.lookup(node.id) if isinstance(node, ast.Name) and node.id != scope.self_name else None
    if bound is None or not isinstance(node, ast.Name) or bound[0].function is not scope.function:
        return None
    is_plain = [b.kind for b in bound[1]] == ["parameter"] and not isinstance(bound[1][0].node, ast.expr)
    found = {_class_passed(project, *each) for each in _passed(project, node.id, scope)} if is_plain else set()
    return found.pop() if len(found) == 1 else None


def _passed(project: Project, name: str, scope: Scope) -> list[tuple[ast.expr | None, Scope]]:
    """Return what each call that runs a hook passes for one of its parameters."""
    function = scope.function
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return []
    fired = [each.inside for each in project.once(hooks_of)[0].firing.get(function, ())]
    named = project.named.get(function.name, []) if fired else []
    sites = {id(call): (call, module) for call, module in (*fired, *named)}.values()
    bound = scope.owner is not None
    return [(argument(call, function, name, bound=bound), project.scope_at(call, module)) for call, module in sites]


def _class_passed(project: Project, value: ast.expr | None, scope: Scope) -> ClassInfo | None:
    if value is None or project.types.is_guess(value, scope):
        return None
    return project.classes.get(project.types.of(value, scope) or "")


def _kept_in(project: Project, owner: ClassInfo, name: str) -> ClassInfo | None:
    """Return the class that all is of which a class keeps under a name."""
    bound = project.attribute(owner, name)
    values = [(b.node, where) for b, where in bound if b.kind == "value" and isinstance(b.node, ast.expr)]
    found = {_class_passed(project, value, where) for value, where in values}
    return found.pop() if len(found) == 1 and len(values) == len(bound) else None
