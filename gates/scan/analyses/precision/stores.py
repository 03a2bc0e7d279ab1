"""What is saved of objects that others hand over: a store's parts, and what an object keeps beside its optimizer."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.precision.filling import filled_from
from gates.scan.analyses.precision.hosts import host_by_shape
from gates.scan.analyses.precision.precision import is_scaler
from gates.scan.analyses.reading.code import calls, constant
from gates.scan.analyses.reading.flow import passed, set_before
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

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
        elif (made := filled_from(node, scope) or scope.through(node)) is not None:
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
    host = held.value if isinstance(held, ast.Attribute) else None
    owner = scope.class_of(host) if host is not None else None
    if owner is None and isinstance(host, ast.Name):
        owner = host_by_shape(project, host, scope)
    if owner is None:
        return
    found = (c.func.value for c, _ in project.named.get(verb, ()) if isinstance(c.func, ast.Attribute))
    asked = {tail_of(node) for node in found}
    for name in owner.attributes:
        if name not in asked:
            yield from _classes(project, owner, name)


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


def is_given_later(project: Project, call: ast.Call, scope: Scope) -> bool:
    """Return whether what saves is given a scaler afterwards: `store.add(scaler)`, `store.parts["scaler"] = scaler`."""
    store = scope.class_of(call)
    adding = {"update", "setdefault", "append", *(store.methods if store is not None else ())} - {"__init__"}
    added = [(c, m, [*c.args, *(k.value for k in c.keywords)]) for n in adding for c, m in project.named.get(n, ())]
    given = [(m, v) for c, m, values in added if isinstance(c.func, ast.Attribute) and c is not call for v in values]
    sets = [(m, n) for m in project.modules.values() for n in m.live.get(ast.Assign, [])]
    given += [(m, n.value) for m, n in sets if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Subscript)]
    return any(isinstance(v, ast.Name | ast.Attribute) and is_scaler(v, project.scope_at(v, m)) for m, v in given)


def with_scaler(project: Project, call: ast.Call, scope: Scope) -> Iterator[Module]:
    """Yield the files where what holds the object that is asked for its state is given a scaler too."""
    asked = call.func.value if isinstance(call.func, ast.Attribute) else call
    before = (
        set_before(scope.function, asked.id, asked.lineno) if isinstance(asked, ast.Name) and scope.function else []
    )
    for node in (asked, *(value for value, _ in before)):
        for part, where in _beside(project, node, scope):
            if isinstance(part, ast.Name | ast.Attribute | ast.Call) and is_scaler(part, where):
                yield where.module


def _beside(project: Project, node: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    """Yield all that the container of an object holds: that of `state.optimizer`, `state["optimizer"]`.

    A container is one that is made with its parts, as by `SimpleNamespace(model=model)`, or given them one by one.
    """
    held = node.value if isinstance(node, ast.Attribute | ast.Subscript) else None
    if isinstance(node, ast.Call) and tail_of(node.func) == "getattr" and node.args:
        held = node.args[0]
    for made, where in _makers(project, held, scope, MAX_HOPS) if held is not None else ():
        if isinstance(made, ast.Name):
            yield from _given_to(made, where)
        elif isinstance(made, ast.Dict):
            yield from ((value, where) for value in made.values)
        elif isinstance(made, ast.Call):
            yield from ((value, where) for value in (*made.args, *(k.value for k in made.keywords)))


def _makers(project: Project, node: ast.expr, scope: Scope, hops: int) -> Iterator[tuple[ast.expr, Scope]]:
    """Yield the variables that an object goes through, those of callers too, and what makes it."""
    yield node, scope
    if not hops:
        return
    made = scope.through(node)
    if made is not None:
        yield from _makers(project, *made, hops - 1)
        return
    target = project.types.function(node, scope) if isinstance(node, ast.Call) else None
    for given in inner(target, ast.Return) if target is not None and target.name != "__init__" else ():
        if isinstance(given, ast.Return) and given.value is not None and target is not None:
            yield from _makers(project, given.value, project.scope_of(target, scope.module), hops - 1)
    found = scope.lookup(node.id) if isinstance(node, ast.Name) else None
    owned = scope.attribute(node) if isinstance(node, ast.Attribute) else []
    bound = [(b, found[0]) for b in found[1]] if found is not None else owned
    if len(bound) != 1 or bound[0][0].kind != "parameter":
        return
    name = node.id if isinstance(node, ast.Name) else tail_of(node)
    for value, where, _ in passed(project, name, bound[0][1]):
        yield from _makers(project, value, where, hops - 1)


def _given_to(name: ast.Name, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    """Yield what a variable is given after it was made: `state.scaler = scaler`, `state["scaler"] = scaler`."""
    body = scope.function or scope.module.tree
    for node in inner(body, ast.Assign):
        targets = node.targets if isinstance(node, ast.Assign) else []
        held = [t.value for t in targets if isinstance(t, ast.Attribute | ast.Subscript)]
        if isinstance(node, ast.Assign) and any(isinstance(h, ast.Name) and h.id == name.id for h in held):
            yield node.value, scope
    for call in calls(body):
        on = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "update" else None
        if isinstance(on, ast.Name) and on.id == name.id:
            yield from ((k.value, scope) for k in call.keywords)
        elif tail_of(call.func) == "setattr" and len(call.args) > 2 and tail_of(call.args[0]) == name.id:
            yield call.args[2], scope
