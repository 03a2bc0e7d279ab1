"""Functions that run one of several by the class of what they are handed: `functools.singledispatch`."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DISPATCHES = frozenset({"singledispatch", "singledispatchmethod"})


class Handler(NamedTuple):
    """A function that is registered for a class, known by its full name; `None` where reading does not tell which."""

    kind: str | None
    function: Function
    module: Module


class Dispatch:
    """Answers which functions are registered with one that dispatches, and with which."""

    def __init__(self, project: Project) -> None:
        self.handlers: dict[ast.AST, list[Handler]] = defaultdict(list)
        self.generic: dict[ast.AST, tuple[Function, Module]] = {}
        for call, module in _registering(project):
            function = module.parents.get(call)
            asked = call.func if isinstance(call, ast.Call) else call
            if not isinstance(function, FUNCTIONS) or not isinstance(asked, ast.Attribute):
                continue
            found = _named(project, asked.value, function, module)
            if found is not None and any(tail_of(d) in DISPATCHES for d in found[0].decorator_list):
                self.handlers[found[0]].append(Handler(_kind(project, call, function, module), function, module))
                self.generic[function] = found


def dispatch_of(project: Project) -> Iterator[Dispatch]:
    """Yield the dispatching functions of a program, for `Project.once`."""
    yield Dispatch(project)


def handlers_of(project: Project, call: ast.Call, scope: Scope) -> list[Handler]:
    """Return the functions of which a call runs one, by the class of what it hands over."""
    known = project.once(dispatch_of)[0].handlers
    function = project.types.function(call, scope) if known else None
    return known.get(function, []) if function is not None else []


def _registering(project: Project) -> Iterator[tuple[ast.expr, Module]]:
    """Yield the decorators `@perform.register` and `@perform.register(Kind)`."""
    for module in project.modules.values():
        for node in (*module.live.get(ast.FunctionDef, ()), *module.live.get(ast.AsyncFunctionDef, ())):
            for decorator in node.decorator_list if isinstance(node, FUNCTIONS) else ():
                if tail_of(decorator.func if isinstance(decorator, ast.Call) else decorator) == "register":
                    yield decorator, module


def _named(project: Project, node: ast.expr, function: Function, module: Module) -> tuple[Function, Module] | None:
    """Return the function that something is registered with: one of the same class, of another, or of a file."""
    scope = project.scope_of(function, module)
    owner = scope.owner if isinstance(node, ast.Name) else None
    if owner is not None and tail_of(node) in owner.methods:
        return owner.methods[tail_of(node)], module
    outer = scope.outer or scope
    of = outer.class_of(node.value) if isinstance(node, ast.Attribute) else None
    of = of or (project.classes.get(outer.dotted(node.value) or "") if isinstance(node, ast.Attribute) else None)
    if of is not None and (found := project.method(of, tail_of(node))) is not None:
        return found[0], found[1]
    return project.functions.get(outer.dotted(node) or "") if isinstance(node, ast.Name | ast.Attribute) else None


def _kind(project: Project, decorator: ast.expr, function: Function, module: Module) -> str | None:
    """Return the class that a function is registered for: by its decorator, or as its first parameter tells."""
    scope = project.scope_of(function, module)
    given = decorator.args[0] if isinstance(decorator, ast.Call) and decorator.args else None
    arguments = [*function.args.posonlyargs, *function.args.args][int(scope.owner is not None) :]
    told = given if given is not None else arguments[0].annotation if arguments else None
    return (scope.outer or scope).dotted(told) if isinstance(told, ast.Name | ast.Attribute) else None
