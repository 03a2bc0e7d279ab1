"""The functions of the program that calls run, and what their parameters are there."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace

from gates.scan.paths.place import REST, Place, passed_on
from gates.scan.paths.state import Closure, Value
from gates.scan.program.classes import ClassInfo, sets
from gates.scan.program.module import Function, tail_of
from gates.scan.program.project import Project


def closure(node: ast.expr, place: Place) -> Closure | None:
    """Return the function of the program that an expression is, with what it is bound to."""
    found = place.find(node)
    if found is not None and found.closure is not None:
        return found.closure
    if found is not None and found.node is not None and found.node is not node and found.place is not None:
        return _behind(found.node, found.place)
    return _behind(node, place)


def _behind(node: ast.expr, place: Place) -> Closure | None:
    """Return the function of the program that an expression at a place is."""
    project = place.project
    if isinstance(node, ast.Lambda):
        return place.lambda_(node)
    if isinstance(node, ast.Call):
        owner = project.classes.get(place.dotted(node.func) or "")
        return _called(owner, node, place)
    method = _method(node, place) if isinstance(node, ast.Attribute) else None
    if method is not None or not isinstance(node, ast.Name | ast.Attribute):
        return method
    named = place.dotted(node)
    if named in project.functions:
        function, module = project.functions[named]
        return Closure(function, project.scope_of(function, module), {})
    return None if named in project.classes else _called(place.owner_of(node), node, place)


def _called(owner: ClassInfo | None, node: ast.expr, place: Place) -> Closure | None:
    """Return the method that runs where an object is called."""
    names = (name for name in ("__call__", "forward") if owner is not None and place.project.method(owner, name))
    name = next(names, None)
    return _bound(place.project, owner, name, place.value(node)) if owner and name else None


def _method(node: ast.Attribute, place: Place) -> Closure | None:
    receiver, classes = node.value, place.project.classes
    if isinstance(receiver, ast.Call) and tail_of(receiver.func) == "super":
        around, instance = place.scope.self_class, place.names.get(place.scope.self_name or "")
        bases = (classes[base] for base in (around.bases if around else ()) if base in classes)
        found = (_bound(place.project, base, node.attr, instance) for base in bases)
        return next((each for each in found if each is not None), None)
    owner = place.owner_of(receiver)
    return _bound(place.project, owner, node.attr, place.value(receiver)) if owner else None


def _bound(project: Project, owner: ClassInfo, name: str, instance: Value | None) -> Closure | None:
    """Return a method with the instance that it is of."""
    found = project.method(owner, name)
    if found is None:
        return None
    function, module, _ = found
    scope = project.scope_of(function, module)
    if any(tail_of(d) == "staticmethod" for d in function.decorator_list):
        return Closure(function, scope, {})
    value = instance or Value("self")
    return Closure(function, scope, {}, (value if value.owner else replace(value, owner=owner),))


def parameters_of(
    node: Function | ast.Lambda,
    values: tuple[Value, ...],
    named: Mapping[str, Value],
    called: Place,
) -> dict[str, Value]:
    """Return what the parameters of a function are where it is called so."""
    arguments = node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    found = dict(zip(names, values, strict=False))
    found |= {name: value for name, value in named.items() if name in {*names, *(a.arg for a in arguments.kwonlyargs)}}
    place = Place(called.project, called.scope, {}, called.heap)
    for name, default in parameters(node).items():
        if name not in found and default is not None and REST not in named:
            found[name] = place.value(default)
        elif name not in found:
            found[name] = Value(f"{getattr(node, 'name', 'lambda')}.{name}", ast.Name(name, ast.Load()), place)
    return found


def parameters(function: Function | ast.Lambda) -> dict[str, ast.expr | None]:
    """Return the parameters of a function with their defaults, those that have a place first."""
    names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
    found: dict[str, ast.expr | None] = dict.fromkeys(names)
    found |= dict(zip(reversed(names), reversed(function.args.defaults), strict=False))
    return found | {a.arg: d for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)}


def given(call: ast.Call, made: Value, owner: ClassInfo, place: Place) -> Iterator[tuple[str, Value]]:
    """Yield the attributes of a new object that are objects which its constructor was passed.

    What is passed as a constant is left open: another caller may pass something else.
    """
    found = place.project.method(owner, "__init__")
    if found is None:
        return
    function, _, base = found
    arguments, named = passed_on(call, place)
    names = parameters_of(function, (made, *arguments), named, place)
    passed = (*arguments, *named.values())
    for name, bindings in base.attributes.items():
        node = bindings[0][0].node if len(bindings) == 1 else None
        value = names.get(node.id) if isinstance(node, ast.Name) else None
        if value in passed and not value.is_known and not sets(base, name):
            yield f"{made.key}.{name}", value
