"""The states that a walk begins in: what a function is handed, and what the constructor of its object leaves."""

import ast

from gates.scan.paths.counting import TooMany
from gates.scan.paths.place import Place
from gates.scan.paths.state import State
from gates.scan.paths.values import Value
from gates.scan.paths.walking import Walker
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

MAX_BEGINNINGS = 8


def beginnings(walker: Walker, node: Function | ast.Module, scope: Scope, owner: ClassInfo | None) -> list[State]:
    """Return the states that a function may begin in: a method in those that the constructor leaves."""
    if isinstance(node, ast.Module):
        return [State()]
    arguments = node.args
    place = Place(walker.project, scope, {}, {})
    names = {
        arg.arg: Value(arg.arg, ast.Name(arg.arg, ast.Load()), place)
        for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    }
    if owner is None or scope.self_name is None:
        return [State(names=names)]
    instance = Value("self", owner=owner)
    states = _constructed(walker, owner, instance) if node.name != "__init__" else [State()]
    return [state.but(names={**names, scope.self_name: instance}) for state in states]


def _constructed(walker: Walker, owner: ClassInfo, instance: Value) -> list[State]:
    """Return what the constructor may leave in the instance's attributes, its own events left out."""
    if owner.name in walker.constructed:
        return walker.constructed[owner.name]
    if walker.limit <= walker.unfinished.get(owner.name, 0):
        walker.give_up()
    found = _after_init(walker, owner, instance)
    if walker.is_short:
        walker.unfinished[owner.name] = walker.limit
    else:
        walker.constructed[owner.name] = found
    return found


def _after_init(walker: Walker, owner: ClassInfo, instance: Value) -> list[State]:
    found = walker.project.method(owner, "__init__")
    if found is None:
        return [State()]
    function, module, _ = found
    scope = walker.project.scope_of(function, module)
    arguments = function.args
    place = Place(walker.project, scope, {}, {})
    names = {
        arg.arg: Value(f"__init__.{arg.arg}", ast.Name(arg.arg, ast.Load()), place)
        for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    }
    names[scope.self_name or "self"] = instance
    try:
        ended = walker.block(function.body, [State(names=names)], scope)
    except TooMany:
        walker.cut = False
        return [State()]
    done = [path for path in ended if path.ended != "raise"]
    passing = _passing(walker.project, owner, done)
    states = [
        State(
            heap=_own(path, passing),
            assumed=path.assumed,
        )
        for path in done
    ]
    unique = walker.joined(states)
    return unique if 0 < len(unique) <= MAX_BEGINNINGS else [State()]


def _own(path: State, passing: set[str]) -> dict[str, Value]:
    """Return what a path tells of the attributes of the own instance, and of those of the objects that these are."""
    own = {k: v for k, v in path.heap.items() if k.startswith("self.") and k not in passing and _tells(v)}
    objects = tuple(f"{value.key}." for value in own.values())
    return {**own, **{k: v for k, v in path.heap.items() if k.startswith(objects) and _tells(v)}} if objects else own


def _passing(project: Project, owner: ClassInfo, paths: list[State]) -> set[str]:
    """Return the attributes whose first value is the same constant on each path, and which other code sets, too."""
    found: dict[str, set[str]] = {}
    for path in paths:
        for key, value in path.heap.items():
            if value.is_known and project.is_reset(owner, key.removeprefix("self.")):
                found.setdefault(key, set()).add(value.key)
    return {key for key, values in found.items() if len(values) == 1}


def _tells(value: Value) -> bool:
    """Return whether more is known of an attribute than its name."""
    return value.is_known or value.closure is not None or value.node is not None
