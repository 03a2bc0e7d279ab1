"""Scalers that are made and scale nothing."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.precision.contexts import entered_by
from gates.scan.analyses.precision.idle import (
    chosen,
    is_idle_argument,
    is_idle_attribute,
    is_idle_field,
    is_idle_name,
    is_idle_read,
    mentions,
    returned_to,
)
from gates.scan.analyses.precision.precision import HALF, dtype_of, scalers
from gates.scan.analyses.reading.code import broken, class_of, constant, is_backward
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import text_of, walk
from gates.scan.program.project import Project
from gates.scan.site import Site

WORDS = ("caler*",)
Place = tuple[Module, ast.AST]


def look(project: Project) -> Iterator[Site]:
    """Yield each scaler of a program's own whose `scale` nobody calls and that nobody is handed."""
    for module in project.modules.values():
        for call in (*(call for call, _ in scalers(project, module)), *_wrappers(project, module)):
            for target in _targets(call, module):
                yield from _idle_sites(project, module, call, target)
            for there, target in returned_to(project, module, chosen(module, call)):
                yield from _idle_sites(project, there, target, target)
            name = _field(call, module)
            if name is not None and is_idle_field(project, name):
                yield broken(module, call, f"{name} is made and scales nothing")
            elif is_idle_argument(project, module, chosen(module, call)):
                yield broken(module, call, "the scaler that is handed on here scales nothing")


def _field(call: ast.Call, module: Module) -> str | None:
    """Return the field that a scaler is passed for to an object which holds several: `Namespace(scaler=...)`."""
    parent = module.parents.get(call)
    while isinstance(parent, ast.IfExp):
        parent = module.parents.get(parent)
    around = module.parents.get(parent) if isinstance(parent, ast.keyword) else None
    holds = isinstance(around, ast.Call) and (tail_of(around.func)[:1].isupper() or tail_of(around.func) == "dict")
    return parent.arg if holds and isinstance(parent, ast.keyword) and not _is_field(around) else None


def _idle_sites(project: Project, module: Module, call: ast.expr, target: ast.expr) -> Iterator[Site]:
    """Yield where what a scaler is bound to scales nothing: where it is made, or the backward pass that passes by."""
    about = f"{text_of(target)} is made and scales nothing"
    statement = module.parents.get(target, target)
    if isinstance(target, ast.Name) and isinstance(module.parents.get(statement), ast.ClassDef):
        if is_idle_attribute(project, module, target, target.id):
            yield broken(module, call, about)
    elif isinstance(target, ast.Name):
        if is_idle_name(project, module, target, call):
            yield broken(module, call, about)
    elif isinstance(target, ast.Attribute) and is_idle_attribute(project, module, target, target.attr):
        there, place = _left_out(project, module, target) or (module, call)
        yield broken(there, place, about)
    elif isinstance(target, ast.Attribute):
        for info in _extending(project, module, target):
            if (found := _passes_by(project, info, target.attr)) is not None:
                yield broken(*found, f"{text_of(target)} is made and does not scale the loss here")


def _left_out(project: Project, module: Module, target: ast.Attribute) -> Place | None:
    """Return the backward pass that leaves a scaler out, where that is a class's which extends the scaler's own."""
    owner = class_of(target, module)
    if owner is None or any(is_backward(call) for call in _calls(owner)):
        return None
    return next((found for info in _extending(project, module, target) if (found := _plain(info)) is not None), None)


def _extending(project: Project, module: Module, target: ast.Attribute) -> Iterator[ClassInfo]:
    """Yield the classes that extend the one which makes a scaler."""
    owner = project.scope_at(target, module).self_class
    todo, seen = [owner] if owner is not None else [], set()
    while todo:
        for info in project.extending.get(todo.pop().name, ()):
            if info not in seen and not info.twice:
                seen.add(info)
                todo.append(info)
                yield info


def _plain(info: ClassInfo) -> Place | None:
    """Return the plain backward pass of a loss in a class that steps an optimizer itself."""
    found = list(_calls(info.node))
    stepped = any(isinstance(c.func, ast.Attribute) and c.func.attr == "step" and not c.args for c in found)
    passes = [c for c in found if is_backward(c) and isinstance(c.func, ast.Attribute) and not c.args]
    plain = [c for c in passes if isinstance(c.func, ast.Attribute) and isinstance(c.func.value, ast.Name)]
    return (info.scope.module, plain[0]) if stepped and plain and len(plain) == len(passes) else None


def _passes_by(project: Project, info: ClassInfo, name: str) -> Place | None:
    """Return the backward pass of a class that does not use the scaler which its base makes, under float16."""
    place = _plain(info)
    if place is None or any(mentions(n, name) or _says_off(n) for n in walk(info.node)):
        return None
    names = {name for each in (info, *project.ancestors_of(info)) for name in each.methods}
    methods = [found for each in sorted(names) if (found := project.method(info, each)) is not None]
    if any(mentions(node, name) and isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
           and not is_idle_read(node, module)
           for function, module, _ in methods for node in walk(function)):  # fmt: skip
        return None
    kinds = [dtype_of(*made) for function, module, _ in methods for made in entered_by(project, function, module)]
    return place if kinds and set(kinds) == {HALF} and not _used_outside(project, name) else None


def _calls(owner: ast.ClassDef) -> Iterator[ast.Call]:
    """Yield the calls in the methods of a class."""
    yield from (node for node in walk(owner) if isinstance(node, ast.Call))


def _says_off(node: ast.AST) -> bool:
    """Return whether a call switches something off, as `super().__init__(fp16=False)` does."""
    return isinstance(node, ast.Call) and any(k.arg and constant(k.value) is False for k in node.keywords)


def _used_outside(project: Project, name: str) -> bool:
    """Return whether code uses the scaler of an object other than its own."""
    return any(
        mentions(node, name) and isinstance(node, ast.Attribute) and tail_of(node.value) != "self"
        and not is_idle_read(node, module)
        for module in project.modules.values() for node in module.live.get(ast.Attribute, [])
    )  # fmt: skip


def _wrappers(project: Project, module: Module) -> Iterator[ast.Call]:
    """Yield the calls that make an object of the program's own whose constructor makes a scaler."""
    for name, found in module.calls.items():
        for call in found if "caler" in name else ():
            info = project.classes.get(project.types.of(call, project.scope_at(call, module)) or "")
            if info is not None and "__call__" in info.methods and "__init__" in info.methods:
                there = info.scope.module
                inside = {id(n) for n in walk(info.methods["__init__"])}
                if any(id(made) in inside for made, _ in scalers(project, there)):
                    yield call


def _targets(call: ast.Call, module: Module) -> list[ast.expr]:
    """Return what a scaler is bound to, that of a field's default too."""
    parent = module.parents.get(call)
    while isinstance(parent, ast.IfExp | ast.Lambda | ast.keyword) or _is_field(parent):
        parent = module.parents.get(parent) if parent is not None else None
    if isinstance(parent, ast.Assign):
        return parent.targets
    return [parent.target] if isinstance(parent, ast.AnnAssign) else []


def _is_field(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and tail_of(node.func) == "field"
