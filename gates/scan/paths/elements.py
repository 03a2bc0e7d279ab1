"""What is in a list that code goes through: written out, handed to a constructor, or added piece by piece."""

import ast
from collections.abc import Iterator

from gates.scan.paths.configured import configured
from gates.scan.paths.place import Place
from gates.scan.paths.rows import additions, rows
from gates.scan.paths.sorting import in_order, sort_in_place
from gates.scan.paths.values import Value
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Named, tail_of
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.ways.hooks import Hook, hooks_of
from gates.scan.ways.registries import keyed

COPIES = frozenset({"list", "tuple", "sorted", "reversed", "iter", "set"})
MAX_ELEMENTS, MAX_OBJECTS, MAX_HOPS, MAX_CALLERS = 4, 8, 6, 20


def elements(node: ast.expr, place: Place) -> list[Value] | None:
    """Return the values that a loop goes through, or `None` where these are not known."""
    found = _unsorted(node, place)
    ordered = in_order(found, sort_in_place(_copied(node)[0], place)) if found is not None else []
    return (ordered[::-1] if _is_turned_round(node) else ordered) or None


def _is_turned_round(node: ast.expr) -> bool:
    """Return whether a list is gone through from its end: `reversed(hooks)`."""
    turned = False
    while isinstance(node, ast.Call) and tail_of(node.func) in COPIES - {"sorted"} and node.args:
        turned = turned is not (tail_of(node.func) == "reversed")
        node = node.args[0]
    return turned


def _unsorted(node: ast.expr, place: Place) -> list[Value] | None:
    """Return the values of a list as it was when it was made."""
    found = _written(node, place, MAX_HOPS)
    if found:
        is_told = all(is_object(each) or isinstance(each.constant, str) for each in found)
        return found if 0 < len(found) <= (MAX_OBJECTS if is_told else MAX_ELEMENTS) else None
    kept = rows(node, place) or hooks(node, place)
    if kept:
        return kept if len(kept) <= MAX_OBJECTS else None
    held, sort = _copied(node)
    objects = list(_handed(held, place, MAX_HOPS)) if isinstance(held, ast.Name | ast.Attribute) else []
    objects = in_order(objects, sort)
    unique = list({value.key: value for value in objects}.values())
    return unique if 0 < len(unique) <= MAX_OBJECTS else None


def hooks(node: ast.expr, place: Place) -> list[Value]:
    """Return the functions that the program keeps under an event, in the order in which it adds them."""
    holder, asked = keyed(node)
    behind = place.through(holder) if asked is None and isinstance(holder, ast.Name) else None
    if behind is not None and keyed(behind[0])[1] is not None:
        return hooks(*behind)
    event = "" if asked is None else place.value(asked).constant
    event = place.dotted(asked) if asked is not None and not isinstance(event, str) else event
    known = place.project.once(hooks_of)[0]
    return (
        [_of_hook(hook, event, place) for hook in known.under(tail_of(holder), event)] if isinstance(event, str) else []
    )


def _of_hook(hook: Hook, event: str, place: Place) -> Value:
    """Return the function that a hook is; a method of the own instance is one of the instance that runs it."""
    own, instance = hook.scope.self_class, place.names.get(place.scope.self_name or "")
    known = instance.owner if instance is not None else None
    is_same = own is not None and known is not None and own in place.project.order_of(known)
    names = {hook.scope.self_name: instance} if is_same and hook.scope.self_name and instance is not None else {}
    return Place(place.project, hook.scope, names, place.heap).value(hook.named(event))


def is_object(value: Value) -> bool:
    """Return whether a value is an object of a class of the program, or a function of it."""
    if value.place is None or value.node is None:
        return False
    if isinstance(value.node, Named):
        return True
    project = value.place.project
    return value.type in project.classes or value.place.dotted(value.node) in project.functions


def _copied(node: ast.expr) -> tuple[ast.expr, ast.Call | None]:
    """Return what `list(x)`, `x or []` and the like go through, and the sort on the way there."""
    sort: ast.Call | None = None
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in COPIES and node.args:
            sort = node if node.func.id == "sorted" and sort is None else sort
            node = node.args[0]
        elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
            node = node.values[0]
        else:
            return node, sort


def _written(node: ast.expr, place: Place, hops: int) -> list[Value] | None:
    """Return the values of a list that is written out, through variables, copies and sorts."""
    node, sort = _copied(node)
    if sort is not None:
        known = _written(node, place, hops)
        return in_order(known, sort) or None if known is not None else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "values":
        node = node.func.value
    if isinstance(node, ast.Tuple | ast.List):
        if any(isinstance(element, ast.Starred) for element in node.elts):
            return None
        return [place.value(element) for element in node.elts]
    if isinstance(node, ast.Dict):
        return [place.value(element) for element in node.values] if None not in node.keys else None
    if isinstance(node, ast.ListComp):
        return configured(node, place)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and hops:
        left, right = (_written(part, place, hops - 1) for part in (node.left, node.right))
        return [*left, *right] if left is not None and right is not None else None
    held = place.find(node) if isinstance(node, ast.Name | ast.Attribute) else None
    if held is not None and isinstance(held.rest, tuple) and held.node is None:
        return list(held.rest)
    behind = place.through(node) if isinstance(node, ast.Name | ast.Attribute) and hops else None
    return _written(behind[0], behind[1], hops - 1) if behind is not None else None


def _handed(node: ast.expr, place: Place, hops: int) -> Iterator[Value]:
    """Yield the objects of the program in a list that callers hand over, or that others add to."""
    scope = place.scope
    if isinstance(node, ast.Attribute) and hops:
        owner = place.owner_of(node.value)
        if owner is not None:
            yield from _attributed(node.attr, owner, place, hops - 1)
    elif isinstance(node, ast.Name):
        yield from _objects(node, scope, hops)


def _attributed(name: str, owner: ClassInfo, place: Place, hops: int) -> Iterator[Value]:
    """Yield the objects in the list that is an attribute: set as a whole, or added to."""
    for binding, where in place.project.attribute(owner, name):
        if binding.kind == "value" and isinstance(binding.node, ast.expr):
            yield from _objects(binding.node, where, hops)
    yield from _added(name, place, hops)


def _objects(node: ast.expr, scope: Scope, hops: int) -> Iterator[Value]:
    """Yield the objects of the program in a list: written out, or handed over by some caller."""
    known = scope.project.once(_known)[0]
    key = (node, scope)
    if key not in known:
        known[key] = ()  # a circle holds nothing more
        held, sort = _copied(node)
        known[key] = tuple(in_order(list(_gathered(held, scope, hops)), sort))
    yield from known[key]


def _known(_project: Project) -> Iterator[dict[tuple[ast.expr, Scope], tuple[Value, ...]]]:
    """Yield the table of the objects that lists hold, which is filled as they are asked for."""
    yield {}


def _gathered(node: ast.expr, scope: Scope, hops: int) -> Iterator[Value]:
    found = _written(node, Place(scope.project, scope, {}, {}), MAX_HOPS)
    if found:
        yield from (value for value in found if is_object(value))
    elif isinstance(node, ast.Name) and hops:
        behind = scope.through(node)
        if behind is not None:
            yield from _objects(behind[0], behind[1], hops - 1)
        for value, where in _passed(node.id, scope):
            yield from _objects(value, where, hops - 1)


def _passed(name: str, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    """Yield what callers pass for a parameter."""
    found = scope.lookup(name)
    function = found[0].function if found else None
    if found is None or not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    if not any(binding.kind in {"parameter", "opaque"} for binding in found[1]):
        return
    owner = found[0].owner
    called = owner.node.name if owner is not None and function.name == "__init__" else function.name
    for call, module in scope.project.named.get(called, [])[:MAX_CALLERS]:
        value = argument(call, function, name, bound=owner is not None) or _starred(call, function, name, owner)
        if value is not None:
            yield value, scope.project.scope_at(call, module)


def _starred(call: ast.Call, function: Function, name: str, owner: ClassInfo | None) -> ast.expr | None:
    """Return what a call passes for `*name`, as a tuple."""
    if function.args.vararg is None or function.args.vararg.arg != name:
        return None
    before = len(function.args.posonlyargs) + len(function.args.args) - (owner is not None)
    return ast.copy_location(ast.Tuple(call.args[before:], ast.Load()), call)


def _added(name: str, place: Place, hops: int) -> Iterator[Value]:
    """Yield the objects of the program that some code adds to the list that an attribute is."""
    for call, module in place.project.once(additions)[0].get(name, ()):
        where = place.project.scope_at(call, module)
        given = [(call.args[0], where)]
        if isinstance(call.args[0], ast.Name):
            given += list(_passed(tail_of(call.args[0]), where)) if hops else []
        for node, there in given:
            value = Place(place.project, there, {}, {}).value(node)
            if is_object(value):
                yield value
