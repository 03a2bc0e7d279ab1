"""Hosts: the objects that a function asks for their parts, as a callback asks the trainer that it is handed."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.precision.keepers import deals, keeps, names_scaler
from gates.scan.analyses.precision.parts import host_of
from gates.scan.analyses.precision.precision import scalers
from gates.scan.analyses.reading.origins import Origins, Sites
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function
from gates.scan.program.nodes import walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.ways.hooks import hooks_of

MIN_SHAPE = 2  # members by which a class is told that nothing else tells
BARE = frozenset({"object", "abc.ABC", "typing.Protocol"})


def has_idle_keeper(project: Project, held: ast.expr, scope: Scope, parts: frozenset[str] = frozenset()) -> bool:
    """Return whether a part is of a host that keeps a scaler, in a program that nowhere saves the state of one."""
    host = host_of(held)
    if host is None or (isinstance(host, ast.Name) and host.id == scope.self_name):
        return False
    if not project.once(scales_unsaved)[0]:
        return False
    read = (_read_of(scope.function, host) if scope.function is not None else set()) | parts
    handed = _handed(project, host, scope)
    if handed:
        return all(_fits(project, info, read) and keeps(project, info, extended=True) for info in handed)
    found = [info for info in project.classes.values() if _fits(project, info, read)] if _is_open(host, scope) else []
    return len(read) >= MIN_SHAPE and bool(found) and all(keeps(project, info, extended=False) for info in found)


def is_mixed_with_keeper(project: Project, owner: ClassInfo) -> bool:
    """Return whether what extends a class has a scaler by another base, in a program that saves the state of none."""
    mixed = (info for info in project.below(owner) if keeps(project, info, extended=False))
    return project.once(scales_unsaved)[0] and any(True for _ in mixed)


def host_by_shape(project: Project, node: ast.Name, scope: Scope) -> ClassInfo | None:
    """Return the only class that has all that a function reads of a parameter which nothing tells of."""
    read = _read_of(scope.function, node) if scope.function is not None and _is_open(node, scope) else set()
    fitting = [info for info in project.classes.values() if read <= {*info.attributes, *info.methods}]
    return fitting[0] if len(fitting) == 1 and len(read) >= MIN_SHAPE else None


def scales_unsaved(project: Project) -> Iterator[bool]:
    """Yield whether a program makes a scaler, and nothing in it asks one for its state or names one by a text."""
    modules = project.modules.values()
    texts = (n.value for m in modules for n in m.live.get(ast.Constant, []) if isinstance(n, ast.Constant))
    named = any(names_scaler(project, text) for text in texts)
    made = any(True for m in modules for _ in scalers(project, m))
    yield made and not named and not any(deals(project, m, m.tree, "state_dict") for m in modules)


def _handed(project: Project, host: ast.expr, scope: Scope) -> list[ClassInfo]:
    """Return the classes that a host may be of: those that callers hand over, and those that fire an event."""
    fired = project.once(hooks_of)[0].firing

    def sites(function: ast.AST) -> Sites:
        return [*Origins(project).called(function), *(each.inside for each in fired.get(function, ()))]

    return Origins(project, sites).classes(host, scope)


def _fits(project: Project, info: ClassInfo, read: set[str]) -> bool:
    """Return whether a class, or what it extends, has all that is read of an object."""
    return read <= {name for each in project.order_of(info) for name in (*each.attributes, *each.methods)}


def _is_open(host: ast.expr, scope: Scope) -> bool:
    """Return whether a host is a parameter that nothing tells of, and not what a framework hands over."""
    bound = scope.lookup(host.id) if isinstance(host, ast.Name) else None
    if bound is None or [b.kind for b in bound[1]] != ["parameter"] or _annotation(bound[0].function, host) is not None:
        return False
    family = scope.project.order_of(scope.owner) if scope.owner is not None else []
    return all(base in BARE or base in scope.project.classes for each in family for base in each.bases)


def _annotation(function: Function | ast.Lambda | None, host: ast.expr) -> ast.expr | None:
    """Return what a parameter is said to be."""
    args = function.args if function is not None else None
    known = (*args.posonlyargs, *args.args, *args.kwonlyargs) if args is not None else ()
    return next((arg.annotation for arg in known if isinstance(host, ast.Name) and arg.arg == host.id), None)


def _read_of(function: ast.AST, host: ast.expr) -> set[str]:
    """Return the attributes that a function reads of an object, or sets on it."""
    if not isinstance(host, ast.Name):
        return set()
    found = (n for n in walk(function) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name))
    return {n.attr for n in found if isinstance(n.value, ast.Name) and n.value.id == host.id}
