"""Rows of a list that is filled piece by piece: tuples or records that hold a function beside what orders them."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from gates.scan.paths.place import Place
from gates.scan.paths.values import Value
from gates.scan.program.module import Module, tail_of
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

ADDS = frozenset({"append", "add"})
COPIES = frozenset({"list", "tuple", "sorted"})
MAX_CALLERS = 20


def rows(node: ast.expr, place: Place) -> list[Value]:
    """Return the rows of the list that an attribute is, one for each call of what adds them; none of other lists."""
    while isinstance(node, ast.Call) and tail_of(node.func) in COPIES and node.args:
        node = node.args[0]
    known = place.project.once(additions)[0].get(tail_of(node), ()) if isinstance(node, ast.Attribute) else ()
    if not known or not all(_is_row(call.args[0], place.project.scope_at(call, m)) for call, m in known):
        return []
    found = [row for call, m in known for row in _added(call.args[0], place.project.scope_at(call, m))]
    return found if all(map(_holds_function, found)) else []


def _is_row(node: ast.expr, scope: Scope) -> bool:
    """Return whether what is added is a tuple, or a record that its class says no more of than its fields."""
    if isinstance(node, ast.Tuple):
        return True
    owner = scope.project.classes.get(scope.dotted(node.func) or "") if isinstance(node, ast.Call) else None
    return owner is not None and not owner.methods and bool(owner.node.decorator_list or owner.bases)


def _holds_function(row: Value) -> bool:
    """Return whether a part of a row is a function of the program: rows of numbers are many, whatever adds them."""
    made = row.node
    parts = made.elts if isinstance(made, ast.Tuple) else []
    parts = [*made.args, *(k.value for k in made.keywords)] if isinstance(made, ast.Call) else parts
    return row.place is not None and any(_is_function(row.place.value(part)) for part in parts)


def _is_function(value: Value) -> bool:
    node, place = value.node, value.place
    if value.closure is not None or node is None or place is None:
        return value.closure is not None
    owner = place.owner_of(node.value) if isinstance(node, ast.Attribute) else None
    is_method = owner is not None and place.project.method(owner, tail_of(node)) is not None
    return is_method or (isinstance(node, ast.Name | ast.Attribute) and place.dotted(node) in place.project.functions)


def _added(row: ast.expr, scope: Scope) -> Iterator[Value]:
    """Yield a row, or one for each call of the function that adds it with its parameters in it."""
    project, function = scope.project, scope.function
    made = Place(project, scope, {}, {}).value(row)
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) or not _takes_part(row, function):
        yield made
        return
    for call, module in project.named.get(function.name, [])[:MAX_CALLERS]:
        where = project.scope_at(call, module)
        if project.types.function(call, where) not in (function, None):
            continue
        there = Place(project, where, {}, {})
        given = {arg.arg: argument(call, function, arg.arg, bound=scope.owner is not None) for arg in _all(function)}
        names = {name: there.value(value) for name, value in given.items() if value is not None}
        key = f"{made.key}@{module.path}:{call.lineno}:{call.col_offset}"
        yield replace(made, key=key, place=Place(project, scope, names, {}))


def _all(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    arguments = function.args
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def _takes_part(row: ast.expr, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a row is made of parameters of a function."""
    names = {arg.arg for arg in _all(function)} - {"self"}
    return any(isinstance(node, ast.Name) and node.id in names for node in ast.walk(row))


def additions(project: Project) -> Iterator[dict[str, list[tuple[ast.Call, Module]]]]:
    """Yield the calls that add one object to a list, by the attribute that the list is."""
    found: dict[str, list[tuple[ast.Call, Module]]] = defaultdict(list)
    for verb in sorted(ADDS):
        for call, module in project.named.get(verb, []):
            held = call.func.value if isinstance(call.func, ast.Attribute) else None
            if isinstance(held, ast.Attribute) and len(call.args) == 1:
                found[held.attr].append((call, module))
    yield found
