"""What a constructor leaves in the object that it makes: what was passed to it, and the lists that hold that."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from gates.scan.paths.finding import parameters_of
from gates.scan.paths.hot import Hot
from gates.scan.paths.place import Place
from gates.scan.paths.values import Value
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import below
from gates.scan.program.project import Project
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


def switches(made: Value, owner: ClassInfo, project: Project, hot: Hot) -> Iterator[tuple[str, Value]]:
    """Yield the attributes that a constructor sets to a truth value or `None`, and that later code sets otherwise.

    Only those are known of which each place that sets them is walked.
    """
    found = project.method(owner, "__init__")
    known = project.once(setters)[0]
    for name, value in _set_once(found[0], owner, project) if found is not None else ():
        others = [around for around in known.get(name, ()) if found is not None and around is not found[0]]
        if others and all(around in hot for around in others):
            yield f"{made.key}.{name}", Value(repr(value), constant=value)


def _set_once(function: Function, owner: ClassInfo, project: Project) -> Iterator[tuple[str, bool | None]]:
    """Yield what a constructor sets to a truth value or `None` in any case, and nothing else there sets."""
    stored = Counter(n.attr for n in below(function) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
    called = [tail_of(c.func) for c in below(function) if isinstance(c, ast.Call) and tail_of(c.func) in owner.methods]
    elsewhere = {name for verb in called for name in project.attributes_set(owner.methods[verb], owner)}
    for node in function.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        value = node.value.value if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) else ...
        if not isinstance(target, ast.Attribute) or tail_of(target.value) != "self" or target.attr in elsewhere:
            continue
        if stored[target.attr] == 1 and (value is None or isinstance(value, bool)):
            yield target.attr, value


def setters(project: Project) -> Iterator[dict[str, list[ast.AST]]]:
    """Yield the functions, or files, that set attributes, by the names of these."""
    found: dict[str, list[ast.AST]] = defaultdict(list)
    for module in project.modules.values():
        for node in module.live.get(ast.Attribute, []):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found[node.attr].append(_around(node, module))
    yield found


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


def _around(node: ast.AST, module: Module) -> ast.AST:
    """Return the function that code stands in, or its file."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return next((each for each in module.ancestors(node) if isinstance(each, functions)), module.tree)
