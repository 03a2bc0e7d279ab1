"""Names that a body hands to what starts a backward pass of them elsewhere: `self.optimize(loss)`."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.reading.code import callee, calls, functions
from gates.scan.analyses.training.graphs import named, starts
from gates.scan.analyses.training.updates import leading
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project


def handed_to_start(project: Project, module: Module, body: ast.AST) -> Iterator[str]:
    """Yield the names that a body hands to functions and objects of the program which start a backward pass there."""
    starting = project.once(_starting)[0]
    for call in calls(body):
        target = callee(project, module, call) if starting and tail_of(call.func) in leading(project) else None
        if target is None or target not in starting:
            continue
        bound = project.scope_of(target, module).owner is not None
        for parameter in starting[target]:
            name, _, field = parameter.partition(".")
            given = argument(call, target, name, bound=bound)
            if given is not None and field:
                yield from _read_as(body, f"{text_of(given)}.{field}")
            elif given is not None:
                yield from named(given)


def _read_as(body: ast.AST, field: str) -> Iterator[str]:
    """Yield a field of an object, as it is written, and the names that a body gives it."""
    yield field
    for node in inner(body, ast.Assign):
        if isinstance(node, ast.Assign) and text_of(node.value) == field:
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _starting(project: Project) -> Iterator[dict[Function, frozenset[str]]]:
    """Yield the parameters of each function, or the fields of these, from which it starts a backward pass."""
    found: dict[Function, frozenset[str]] = {}
    for module in project.modules.values():
        for function in functions(module) if "backward" in module.calls else ():
            arguments = function.args
            given = {arg.arg for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
            begun = starts(function)
            read = {
                text_of(n.value) for n in inner(function, ast.Assign)
                if isinstance(n, ast.Assign) and isinstance(n.value, ast.Attribute) and tail_of(n.targets[0]) in begun
                and isinstance(n.value.value, ast.Name) and n.value.value.id in given - {"self"}
            }  # fmt: skip
            if begun := (begun & given - {"self"}) | read:
                found[function] = frozenset(begun)
    yield found
