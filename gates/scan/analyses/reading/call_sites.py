"""Which calls of a program run a function: by its name, by the class that it constructs, by the objects called."""

import ast
from collections.abc import Iterator

from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

MAX_SITES = 20


def calls_of(function: ast.AST, project: Project) -> Iterator[tuple[ast.Call, Module]]:
    """Yield the calls that run a function, as far as their names and objects tell."""
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    owner = project.scope_of(function, next(iter(project.modules.values()))).owner
    named = owner.node.name if owner is not None and function.name == "__init__" else function.name
    more = _also_called(project, function, owner) if owner is not None else ()
    chosen = set(_chosen(project, owner)) if owner is not None and function.name == "__call__" else set()
    for name in dict.fromkeys((named, *more, *sorted(chosen))):
        for call, module in project.named.get(name, [])[:MAX_SITES]:
            scope = project.scope_at(call, module)
            target = project.types.function(call, scope)
            is_one_of = name in chosen and scope.dotted(call.func) is None
            if target is function or (
                target is None and (name == named or is_one_of or _makes(call, scope, function, owner))
            ):
                yield call, module


def _also_called(project: Project, function: Function, owner: ClassInfo) -> Iterator[str]:
    """Yield other names by which calls may run a method: classes that have it from this one, objects called."""
    if function.name == "__init__":
        below = project.extending.get(owner.name, ())
        yield from (info.node.name for info in below)
        yield from ("__init__",) if any("__init__" in info.methods for info in below) else ()
    elif function.name == "__call__":
        for call, module in project.named.get(owner.node.name, [])[:MAX_SITES]:
            statement = next((node for node in module.ancestors(call) if isinstance(node, ast.stmt)), None)
            targets = statement.targets if isinstance(statement, ast.Assign) else ()
            yield from (tail_of(n) for t in targets for n in walk(t) if isinstance(n, ast.Name | ast.Attribute))


def _chosen(project: Project, owner: ClassInfo) -> Iterator[str]:
    """Yield the variables that may hold an object of a class or one of another, as a condition has it.

    So it is of `step = Scaled() if half else Plain()`, there or where a function returns it.
    """
    for call, module in project.named.get(owner.node.name, [])[:MAX_SITES]:
        around = module.parents.get(call)
        statement = module.parents.get(around) if isinstance(around, ast.IfExp) else None
        if isinstance(statement, ast.Assign):
            yield from (tail_of(n) for n in statement.targets if isinstance(n, ast.Name | ast.Attribute))
        elif isinstance(statement, ast.Return):
            maker = project.scope_at(statement, module).function
            for made, there in project.named.get(getattr(maker, "name", ""), [])[:MAX_SITES]:
                kept = there.parents.get(made)
                targets = kept.targets if isinstance(kept, ast.Assign) else ()
                yield from (tail_of(n) for n in targets if isinstance(n, ast.Name | ast.Attribute))


def _makes(call: ast.Call, scope: Scope, function: Function, owner: ClassInfo | None) -> bool:
    """Return whether a call runs a constructor that a class has of its base: `Sub(...)`, `super().__init__(...)`."""
    made = scope.project.classes.get(scope.dotted(call.func) or "")
    found = scope.project.method(made, "__init__") if made is not None else None
    if found is not None or not isinstance(call.func, ast.Attribute) or owner is None:
        return found is not None and found[0] is function
    is_super = isinstance(call.func.value, ast.Call) and tail_of(call.func.value.func) == "super"
    return is_super and scope.self_class is not None and owner.name in scope.self_class.bases
