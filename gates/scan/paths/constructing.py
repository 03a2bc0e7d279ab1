"""What a constructor leaves in the object that it makes: what was passed to it, and the lists that hold that."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace

from gates.scan.paths.finding import parameters_of
from gates.scan.paths.place import Place
from gates.scan.paths.values import Value
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import tail_of
from gates.scan.program.nodes import below
from gates.scan.program.scope import SAME

COPIES = frozenset({"list", "tuple"})
MAX_BASES = 4


def given(call: ast.Call, made: Value, owner: ClassInfo, place: Place) -> Iterator[tuple[str, Value]]:
    """Yield the attributes of a new object that are objects which its constructor was passed, and where they are kept.

    What is passed as a constant is left open: another caller may pass something else.
    """
    if any(isinstance(arg, ast.Starred) for arg in call.args) or any(k.arg is None for k in call.keywords):
        return
    arguments = tuple(place.value(arg) for arg in call.args)
    named = {k.arg: place.value(k.value) for k in call.keywords if k.arg}
    yield from _kept(made, owner, owner, arguments, named, place, MAX_BASES)


def _kept(
    made: Value,
    kind: ClassInfo,
    owner: ClassInfo,
    arguments: tuple[Value, ...],
    named: Mapping[str, Value],
    place: Place,
    hops: int,
) -> Iterator[tuple[str, Value]]:
    """Yield what the constructor of a class, or the one that it calls of a base, keeps of what it was passed."""
    project = place.project
    found = project.method(owner, "__init__")
    if found is None:
        yield from _fields(made, kind, owner, arguments, named)
        return
    function, module, base = found
    scope = project.scope_of(function, module)
    names = parameters_of(function, (made, *arguments), named, place)
    inside = Place(project, scope, {n: v for n, v in names.items() if n in named or v in (made, *arguments)}, {})
    for name, bindings in base.attributes.items():
        if len(bindings) != 1 or bindings[0][0].kind != "value" or bindings[0][1].function is not function:
            continue
        value = _passed(bindings[0][0].node, inside)
        if value is not None and not project.is_reset(kind, name):
            yield f"{made.key}.{name}", replace(value, given=True)
    for inner in below(function) if hops else ():
        if isinstance(inner, ast.Call) and tail_of(inner.func) == "__init__" and _is_super(inner.func):
            further = tuple(inside.value(arg) for arg in inner.args if not isinstance(arg, ast.Starred))
            more = {k.arg: inside.value(k.value) for k in inner.keywords if k.arg}
            for info in (project.classes[name] for name in base.bases if name in project.classes):
                yield from _kept(made, kind, info, further, more, inside, hops - 1)


def _fields(
    made: Value, kind: ClassInfo, owner: ClassInfo, arguments: tuple[Value, ...], named: Mapping[str, Value]
) -> Iterator[tuple[str, Value]]:
    """Yield the fields of a dataclass, or of a named tuple."""
    kinds = [tail_of(d.func if isinstance(d, ast.Call) else d) for d in owner.node.decorator_list]
    if "dataclass" not in kinds and "NamedTuple" not in map(tail_of, owner.node.bases):
        return
    names = [s.target.id for s in owner.node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
    for name, value in {**dict(zip(names, arguments, strict=False)), **named}.items():
        if not value.is_known and not owner.scope.project.is_reset(kind, name):
            yield f"{made.key}.{name}", replace(value, given=True)


def _passed(node: object, inside: Place) -> Value | None:
    """Return the object that an attribute is set to, where it is one that was passed, or a copy of a list."""
    if isinstance(node, ast.Call) and tail_of(node.func) in COPIES and len(node.args) == 1:
        return _passed(node.args[0], inside)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SAME:
        return _passed(node.func.value, inside)
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        return _passed(node.values[0], inside)
    if not isinstance(node, ast.Name) or node.id not in inside.names:
        return None
    value = inside.names[node.id]
    return None if value.is_known else value


def _is_super(func: ast.expr) -> bool:
    value = func.value if isinstance(func, ast.Attribute) else None
    return isinstance(value, ast.Call) and tail_of(value.func) == "super"
