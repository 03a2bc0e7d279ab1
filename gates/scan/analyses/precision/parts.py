"""Objects whose states are saved in one loop: those that a dictionary, a list or a list of names holds."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.precision.keepers import keeps
from gates.scan.analyses.reading.called import Called, Made
from gates.scan.analyses.reading.code import callee, calls, constant, module_of
from gates.scan.analyses.reading.flow import set_before
from gates.scan.analyses.reading.heirs import objects
from gates.scan.analyses.settings.defaults import callers_pass, defaults
from gates.scan.analyses.settings.settings import holds
from gates.scan.program.module import Function, Module, is_property, tail_of
from gates.scan.program.nodes import inner, is_none, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

VIEWS = frozenset({"items", "values", "keys", "enumerate", "list", "sorted", "zip", "tuple", "set", "frozenset"})
MAX_HOPS = 5
Part = tuple[str, ast.expr, Scope]


def host_of(held: ast.expr) -> ast.expr | None:
    """Return what a part is asked of: `run` of `run.optimizer`, `getattr(run, name)` and `vars(run)[name]`."""
    named = by_name(held)
    return named[0] if named is not None else held.value if isinstance(held, ast.Attribute) else None


def by_name(held: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """Return an object and the name by which a part of it is taken: of `getattr(run, name)`, `run`, `name`."""
    if isinstance(held, ast.Call) and tail_of(held.func) == "getattr" and len(held.args) > 1:
        return held.args[0], held.args[1]
    if not isinstance(held, ast.Subscript):
        return None
    if isinstance(held.value, ast.Call) and tail_of(held.value.func) == "vars" and held.value.args:
        return held.value.args[0], held.slice
    is_own = isinstance(held.value, ast.Attribute) and held.value.attr == "__dict__"
    return (held.value.value, held.slice) if is_own else None  # type: ignore[attr-defined]  # an attribute


def saved_together(project: Project, module: Module, body: Function, verb: str) -> Iterator[list[Part]]:
    """Yield for each loop that asks its objects for their states what those are called, and where they are listed.

    What is listed in several ways, as callers or the classes that inherit a list have it, is yielded once for each.
    """
    for call in calls(body):
        if tail_of(call.func) != verb or not isinstance(call.func, ast.Attribute):
            continue
        asked = taken(body, call.func.value)
        named = by_name(asked)
        name = named[1] if named is not None else asked
        source = _looped(module, call, name.id) if isinstance(name, ast.Name) else None
        if source is not None:
            listed = _listed(source, project.scope_at(call, module), MAX_HOPS, named=named is not None)
            yield from (found for found in listed if found)


def taken(body: ast.AST, node: ast.expr) -> ast.expr:
    """Return what a variable was set to that is a part taken by its name, else the node itself."""
    before = set_before(body, node.id, node.lineno) if isinstance(node, ast.Name) else []
    return before[0][0] if len(before) == 1 and by_name(before[0][0]) is not None else node


def _looped(module: Module, node: ast.AST, name: str) -> ast.expr | None:
    """Return what the loop or the comprehension around a node goes through, of which a name is the variable."""
    for around in module.ancestors(node):
        loops = around.generators if isinstance(around, ast.DictComp | ast.ListComp | ast.GeneratorExp) else []
        for target, source in [(g.target, g.iter) for g in loops] or (
            [(around.target, around.iter)] if isinstance(around, ast.For) else []
        ):
            if any(isinstance(n, ast.Name) and n.id == name for n in walk(target)):
                return source
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
    return None


def _listed(node: ast.expr, scope: Scope, hops: int, *, named: bool) -> Iterator[list[Part]]:
    """Yield what a container holds, followed to where it is written out; nothing where some of it is not known."""
    if isinstance(node, ast.Dict | ast.List | ast.Tuple | ast.Set):
        found = _written(node, scope, hops, named=named)
        yield from (found,) if found is not None else ()
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.BitOr) and hops:
        sides = [list(_listed(side, scope, hops - 1, named=named)) for side in (node.left, node.right)]
        yield from ([*sides[0][0], *sides[1][0]],) if all(len(side) == 1 for side in sides) else ()
    elif hops:
        target = callee(scope.project, scope.module, node) if isinstance(node, ast.Call) else None
        if target is not None:
            yield _returned(target, module_of(scope.project, target, scope.module), scope, hops, named=named)
            return
        for inside, where in _behind(node, scope):
            yield from _listed(inside, where, hops - 1, named=named)


def _returned(function: Function, module: Module, scope: Scope, hops: int, *, named: bool) -> list[Part]:
    """Return all that a function of the program may return in a container."""
    there = scope.project.scope_of(function, module)
    values = [n.value for n in inner(function, ast.Return) if isinstance(n, ast.Return) and n.value is not None]
    return [part for value in values for found in _listed(value, there, hops - 1, named=named) for part in found]


def _written(node: ast.expr, scope: Scope, hops: int, *, named: bool) -> list[Part] | None:
    """Return what a container that is written out holds, `*others` and `**others` too; `None` if these are unknown."""
    keys: list[ast.expr | None] = node.keys if isinstance(node, ast.Dict) else [*node.elts]  # type: ignore[attr-defined]
    values: list[ast.expr] = node.values if isinstance(node, ast.Dict) else node.elts  # type: ignore[attr-defined]
    parts: list[Part] = []
    for key, value in zip(keys, values, strict=True):
        if key is None or isinstance(value, ast.Starred):
            held = value.value if isinstance(value, ast.Starred) else value
            others = list(_listed(held, scope, hops - 1, named=named)) if hops else []
            if len(others) != 1:
                return None
            parts += others[0]
            continue
        last = value.elts[-1] if isinstance(value, ast.Tuple) and value.elts else value
        text = key if isinstance(node, ast.Dict) else last
        parts.append((str(constant(text)) if named else tail_of(last), last, scope))
    return parts


def _behind(node: ast.expr, scope: Scope) -> Iterator[Made]:
    """Yield what a variable is made by, what a view or a copy is of, each thing that a parameter or a field may be."""
    if isinstance(node, ast.Call) and tail_of(node.func) in VIEWS:
        held = node.args[0] if node.args else node.func.value if isinstance(node.func, ast.Attribute) else None
        yield from ((held, scope),) if held is not None else ()
    elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        yield from ((side, scope) for side in node.values if not _is_nothing(side, scope))
    elif isinstance(node, ast.IfExp):
        side = holds(node.test, scope)
        yield from ((node.body if side else node.orelse, scope),) if side is not None else ()
    elif isinstance(node, ast.Attribute):
        yield from _kept(node, scope)
    elif (made := scope.through(node)) is not None:
        yield made
    elif isinstance(node, ast.Name) and not isinstance(scope, Called):
        yield from list(callers_pass(node.id, scope)) or defaults(node, scope)


def _is_nothing(node: ast.expr, scope: Scope) -> bool:
    made = scope.through(node)
    return is_none(made[0] if made is not None else node)


def _kept(node: ast.Attribute, scope: Scope) -> Iterator[Made]:
    """Yield what an attribute is in each object that may be asked: in those that keep a scaler, if any do."""
    is_own = isinstance(node.value, ast.Name) and node.value.id == scope.self_name and not isinstance(scope, Called)
    made: list[Scope] = list(objects(scope)) if is_own else []
    keeping = [each for each in made if each.owner and keeps(scope.project, each.owner, extended=False)]
    found: dict[ast.expr, Made] = {}
    for where in keeping or made or [scope]:
        value = where.through(node) or next(_of_class(node, where), None)
        if value is not None:
            found.setdefault(value[0], value)
    yield from found.values()


def _of_class(node: ast.Attribute, scope: Scope) -> Iterator[Made]:
    """Yield what a field of a known class is by default, what its property returns, what a class itself has."""
    owner = scope.class_of(node.value)
    method = scope.project.method(owner, node.attr) if owner is not None else None
    if owner is not None and (method is None or is_property(method[0])):
        yield from defaults(node, scope)
    named = scope.project.classes.get(scope.dotted(node.value) or "") if owner is None else None
    bound = scope.project.attribute(named, node.attr) if named is not None else []
    if len(bound) == 1 and bound[0][0].kind == "value" and isinstance(bound[0][0].node, ast.expr):
        yield bound[0][0].node, bound[0][1]
