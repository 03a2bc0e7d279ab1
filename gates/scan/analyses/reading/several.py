"""Which one of several that are made, or handed over, at once a model is: `g, d = build()`, `nets[0]`, `Own(*nets)`."""

import ast
from collections.abc import Iterator
from dataclasses import replace

from gates.scan.analyses.reading.code import constant
from gates.scan.analyses.reading.flow import Source, spine
from gates.scan.analyses.reading.keyed import values_of
from gates.scan.analyses.reading.origins import Origins
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

MAX_CALLERS = 20


def parts_of(project: Project, source: Source, line: int) -> Iterator[Source]:
    """Yield what a model is of several that are made at once: `g, d = build()`, `nets[0]`, `Trainer(*build())`."""
    node, scope = source.node, source.scope
    if isinstance(node, ast.Subscript):
        yield from _part(project, node.value, constant(node.slice), scope, line)
        yield from _option(project, node, scope)
    if not isinstance(node, ast.Name | ast.Attribute):
        return
    body = scope.function or scope.module.tree
    if isinstance(node, ast.Attribute) and scope.owner is not None and "__init__" in scope.owner.methods:
        body = scope.owner.methods["__init__"]
    for assigned in inner(body, ast.Assign):
        target = assigned.targets[0] if isinstance(assigned, ast.Assign) else None
        names = [text_of(each) for each in target.elts] if isinstance(target, ast.Tuple | ast.List) else []
        if text_of(node) in names and isinstance(assigned, ast.Assign):
            where = project.scope_at(assigned.value, scope.module)
            yield from _part(project, assigned.value, names.index(text_of(node)), where, assigned.lineno)
    for loop in inner(body, ast.For):
        over = loop.iter if isinstance(loop, ast.For) else None
        if isinstance(over, ast.Tuple | ast.List) and text_of(node) in map(text_of, over.elts):
            yield replace(source, node=loop.target)  # type: ignore[attr-defined]  # a loop
    found = scope.lookup(node.id) if isinstance(node, ast.Name) else None
    if found is not None and all(binding.kind == "parameter" for binding in found[1]):
        for value, at, call, module in _spread(project, found[0], text_of(node)):
            yield from _part(project, value, at, project.scope_at(call, module), call.lineno)


def fields_of(project: Project, source: Source) -> Iterator[Source]:
    """Yield what a record was made with for a field, where a function of the program made it: `build(net).model`."""
    node, scope = source.node, source.scope
    behind = scope.through(node.value) if isinstance(node, ast.Attribute) else None
    is_own = behind is not None and isinstance(behind[0], ast.Call)
    if is_own and behind is not None and project.types.function(behind[0], behind[1]) is not None:  # type: ignore[arg-type]
        for each in values_of(project, Origins(project), node, scope) or ():
            yield Source(each.node, each.scope)


def _option(project: Project, node: ast.Subscript, scope: Scope) -> Iterator[Source]:
    """Yield what callers hand for an option that a function takes by `**options`: `options["net"]`."""
    function, name = scope.function, constant(node.slice)
    rest = function.args.kwarg if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) else None
    if rest is None or rest.arg != text_of(node.value):
        return
    is_made = scope.owner is not None and getattr(function, "name", "") == "__init__"
    called = scope.owner.node.name if is_made and scope.owner is not None else getattr(function, "name", "")
    for call, module in project.named.get(called, [])[:MAX_CALLERS]:
        where = project.scope_at(call, module)
        yield from (Source(option.value, where) for option in call.keywords if option.arg == name)


def _spread(project: Project, scope: Scope, name: str) -> Iterator[tuple[ast.expr, int, ast.Call, Module]]:
    """Yield what callers hand by a star for a parameter, and which part of that it is."""
    function = scope.function
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)][scope.self_name is not None :]
    made = scope.owner.node.name if scope.owner is not None and function.name == "__init__" else function.name
    for call, module in project.named.get(made, [])[:MAX_CALLERS] if name in names else ():
        stars = [at for at, arg in enumerate(call.args) if isinstance(arg, ast.Starred)]
        at = names.index(name) - stars[0] if stars else -1
        value = call.args[stars[0]] if at >= 0 else None
        if isinstance(value, ast.Starred) and at < len(names) - len(call.args) + 1:
            yield value.value, at, call, module


def _part(project: Project, node: ast.expr, key: object, scope: Scope, line: int) -> Iterator[Source]:
    """Yield what stands under an index or a key of several that are written out, or made alike: `[f(x) for x in y]`."""
    for each in spine(project, node, scope, line):
        inside = each.node
        if isinstance(inside, ast.Call) and tail_of(inside.func) in {"tuple", "list"} and inside.args:
            inside = inside.args[0]
        if isinstance(inside, ast.Name):
            yield from _gathered(each, inside.id)
        elif isinstance(inside, ast.GeneratorExp | ast.ListComp):
            yield replace(each, node=inside.elt)
        elif isinstance(inside, ast.DictComp):
            yield replace(each, node=inside.value)
        elif isinstance(inside, ast.Call) and tail_of(inside.func) == "map" and isinstance(inside.args[0], ast.Lambda):
            yield replace(each, node=inside.args[0].body)
        elif isinstance(inside, ast.Dict):
            keyed = zip(inside.keys, inside.values, strict=True)
            yield from (replace(each, node=value) for k, value in keyed if k is not None and constant(k) == key)
        elif isinstance(inside, ast.Tuple | ast.List) and isinstance(key, int):
            is_sure = key < len(inside.elts) and not any(isinstance(part, ast.Starred) for part in inside.elts)
            yield from (replace(each, node=part) for part in inside.elts[key : key + 1] if is_sure)


def _gathered(source: Source, name: str) -> Iterator[Source]:
    """Yield what each of several is called in the loops over them, and what is added to them."""
    for node in inner(source.body, ast.For, ast.Call):
        if isinstance(node, ast.For) and text_of(node.iter) == name:
            yield replace(source, node=node.target)
        elif isinstance(node, ast.Call) and text_of(node.func) == f"{name}.append" and node.args:
            yield replace(source, node=node.args[0])
