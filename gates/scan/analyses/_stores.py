"""What is saved of objects that others hand over: a store's parts, and what an object keeps beside its optimizer."""

import ast
from collections.abc import Iterator

from gates.scan.analyses._code import calls, constant
from gates.scan.module import Function, Module, tail_of
from gates.scan.nodes import walk
from gates.scan.project import ClassInfo, Project
from gates.scan.scope import Scope
from gates.scan.types import argument

VIEWS = frozenset({"items", "values", "dict", "list", "tuple"})
MAX_HOPS = 4
MAX_CALLERS = 20
MIN_SHAPE = 2  # members by which a class is told that nothing else tells
Part = tuple[str, ast.expr]
Handed = tuple[ast.Call, Scope, list[Part]]


def handed_over(project: Project, module: Module, body: Function, verb: str) -> Iterator[Handed]:
    """Yield the calls that hand over the objects whose states a loop asks for, and what each of these is called."""
    for call in calls(body):
        asked = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == verb else None
        source = _looped(module, call, asked.id) if isinstance(asked, ast.Name) else None
        found = _parameter(source, project.scope_at(call, module)) if source is not None else None
        if found is None:
            continue
        name, scope, function = found
        for made, there in project.named.get(_called(function, scope), [])[:MAX_CALLERS]:
            where = project.scope_at(made, there)
            parts = _parts(made, function, name, bound=scope.owner is not None)
            if parts and _runs(project, made, where, function, scope):
                yield made, where, parts


def _looped(module: Module, node: ast.AST, name: str) -> ast.expr | None:
    """Return what the loop or the comprehension around a node goes through, of which a name is the variable."""
    for around in module.ancestors(node):
        loops = [(around.target, around.iter)] if isinstance(around, ast.For) else []
        if isinstance(around, ast.DictComp | ast.ListComp | ast.GeneratorExp):
            loops = [(each.target, each.iter) for each in around.generators]
        for target, source in loops:
            if any(isinstance(n, ast.Name) and n.id == name for n in walk(target)):
                return source
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
    return None


def _parameter(node: ast.expr, scope: Scope) -> tuple[str, Scope, Function] | None:
    """Return the parameter that a container is, through views of it and attributes that keep it."""
    for _ in range(MAX_HOPS):
        if isinstance(node, ast.Call) and tail_of(node.func) in VIEWS:
            inside = node.args[0] if node.args else node.func.value if isinstance(node.func, ast.Attribute) else None
            if inside is None:
                return None
            node = inside
        elif (made := scope.through(node)) is not None:
            node, scope = made
    found = scope.lookup(node.id) if isinstance(node, ast.Name) else None
    function = found[0].function if found is not None else None
    if (
        found is None
        or not isinstance(node, ast.Name)
        or not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    ):
        return None
    stars = {star.arg for star in (function.args.vararg, function.args.kwarg) if star is not None}
    kinds = [binding.kind for binding in found[1]]
    return (node.id, found[0], function) if kinds == ["opaque" if node.id in stars else "parameter"] else None


def _called(function: Function, scope: Scope) -> str:
    return scope.owner.node.name if scope.owner is not None and function.name == "__init__" else function.name


def _runs(project: Project, call: ast.Call, where: Scope, function: Function, scope: Scope) -> bool:
    """Return whether a call runs a function, or makes an object by it."""
    if scope.owner is not None and function.name == "__init__":
        return where.class_of(call) is scope.owner
    return project.types.function(call, where) is function


def _parts(call: ast.Call, function: Function, name: str, *, bound: bool) -> list[Part]:
    """Return what a call hands over by a parameter, `**parts` and `*parts` too; nothing where it is not all known."""
    args = function.args
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return []
    if args.kwarg is not None and args.kwarg.arg == name:
        known = {arg.arg for arg in (*args.args, *args.kwonlyargs)}
        return [(str(k.arg), k.value) for k in call.keywords if k.arg not in known]
    if args.vararg is not None and args.vararg.arg == name:
        first = len(args.posonlyargs) + len(args.args) - bound
        return [(tail_of(value), value) for value in call.args[first:]]
    given = argument(call, function, name, bound=bound)
    return _written(given) if given is not None else []


def _written(node: ast.expr) -> list[Part]:
    """Return what a container holds that is written out."""
    if isinstance(node, ast.Dict) and None not in node.keys:
        return [(str(constant(k) or tail_of(v)), v) for k, v in zip(node.keys, node.values, strict=True)]
    if isinstance(node, ast.List | ast.Tuple) and not any(isinstance(each, ast.Starred) for each in node.elts):
        return [(tail_of(each), each) for each in node.elts]
    return []


def kept_beside(project: Project, held: ast.expr, scope: Scope, verb: str) -> Iterator[ClassInfo]:
    """Yield the classes of what an object keeps beside its optimizer, and whose state nobody asks for by its name."""
    owner = _owner(project, held.value, scope) if isinstance(held, ast.Attribute) else None
    if owner is None:
        return
    found = (c.func.value for c, _ in project.named.get(verb, ()) if isinstance(c.func, ast.Attribute))
    asked = {tail_of(node) for node in found}
    for name in owner.attributes:
        if name not in asked:
            yield from _classes(project, owner, name)


def _owner(project: Project, node: ast.expr, scope: Scope) -> ClassInfo | None:
    """Return the class of an object: of a parameter that nothing tells of, the only one with all that it is read of."""
    known = scope.class_of(node)
    if known is not None or not isinstance(node, ast.Name) or scope.function is None:
        return known
    bound = scope.lookup(node.id)
    if bound is None or [b.kind for b in bound[1]] != ["parameter"]:
        return None
    read = _read_of(scope.function, node)
    fitting = [info for info in project.classes.values() if read <= {*info.attributes, *info.methods}]
    return fitting[0] if len(fitting) == 1 and len(read) >= MIN_SHAPE else None


def _classes(project: Project, owner: ClassInfo, name: str) -> Iterator[ClassInfo]:
    """Yield the classes that an attribute may be of: its own, those that extend it, or those with all its methods."""
    kind = project.types.attribute(owner, name)
    if kind is not None:
        yield from (info for info in project.classes.values() if project.types.is_a(info.name, kind) is True)
        return
    used = {
        call.func.attr
        for method in owner.methods.values()
        for call in calls(method)
        if isinstance(call.func, ast.Attribute) and tail_of(call.func.value) == name
    }
    for info in project.classes.values() if len(used) >= MIN_SHAPE else ():
        if all(project.method(info, each) is not None for each in used):
            yield info


def _read_of(function: ast.AST, name: ast.Name) -> set[str]:
    """Return the attributes that a function reads of a variable."""
    found = (n for n in walk(function) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name))
    return {n.attr for n in found if isinstance(n.value, ast.Name) and n.value.id == name.id}
