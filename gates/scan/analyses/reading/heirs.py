"""Methods as they run for the classes that inherit them: what their objects keep, and what these were made with."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gates.scan.analyses.reading.called import Called, Made, called
from gates.scan.analyses.reading.code import calls
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Binding, tail_of
from gates.scan.program.scope import Scope
from gates.scan.program.signatures import parameters

MAX_MAKERS = 20
MAX_HOPS = 4
Bound = list[tuple[Binding, Scope]]


@dataclass(eq=False)
class Inherited(Called):
    """A method's scope in an object of a class that has it, and the call that makes the object, if one is known."""

    maker: Made | None = None

    def attribute(self, node: ast.Attribute) -> Bound:
        """Return what an attribute is bound to: of the instance as its own class has it."""
        if self.owner is None or not isinstance(node.value, ast.Name) or node.value.id != self.self_name:
            return super().attribute(node)
        bound = ((b, _constructing(self, where)) for b, where in _kept(self.owner, node.attr))
        found = [(b, where) for b, where in bound if where is not None]
        return found if len(found) == len(_kept(self.owner, node.attr)) else []

    def within(self, scope: Scope) -> Scope | None:
        """Return the scope of a method in the same object; `None` where the object's class has another one."""
        if isinstance(scope, Called) or scope.owner is None or self.owner is None:
            return scope
        if scope.owner not in self.project.order_of(self.owner):
            return scope
        found = self.project.method(self.owner, getattr(scope.function, "name", ""))
        is_same = found is not None and found[0] is scope.function
        return _of(self.owner, scope, self.maker) if is_same else None


@dataclass(eq=False)
class Constructed(Called):
    """A constructor's scope in one call of it; a parameter is not known that the call may pass unseen."""

    def lookup(self, name: str) -> tuple[Scope, list[Binding]] | None:
        """Return the scope that binds a name, and how."""
        function = self.function
        named = parameters(function) if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) else {}
        is_hidden = name in named and name not in self.given and name != self.self_name
        return (self, [Binding("opaque")]) if is_hidden else super().lookup(name)


def objects(scope: Scope) -> Iterator[Inherited]:
    """Yield a method's scope in each object that the program makes of its class, or of one that inherits it."""
    if scope.owner is not None:
        yield from _objects_of(scope.owner, scope)
        yield from heirs(scope)


def heirs(scope: Scope) -> Iterator[Inherited]:
    """Yield a method's scope in each object of a class that inherits it."""
    name = getattr(scope.function, "name", "")
    for info in scope.project.below(scope.owner) if scope.owner is not None else ():
        found = scope.project.method(info, name)
        if found is not None and found[0] is scope.function:
            yield from _objects_of(info, scope)


def _objects_of(info: ClassInfo, scope: Scope) -> Iterator[Inherited]:
    """Yield a method's scope once for each call that makes an object; of a class that others extend for no other."""
    project = scope.project
    named = ((c, project.scope_at(c, m)) for c, m in project.named.get(info.node.name, [])[:MAX_MAKERS])
    made = [(call, where) for call, where in named if where.class_of(call) is info]
    yield from (_of(info, scope, each) for each in made)
    if not made and info.name not in project.extending:
        yield _of(info, scope, None)


def _of(info: ClassInfo, scope: Scope, maker: Made | None) -> Inherited:
    return Inherited(scope.project, scope.module, scope.function, scope.outer, info, maker=maker)


def _kept(owner: ClassInfo, name: str) -> Bound:
    """Return what an attribute of an instance is bound to: by its methods before what the classes have."""
    order = owner.scope.project.order_of(owner)
    bound = [info.attributes[name] for info in order if name in info.attributes]
    own = ([(b, where) for b, where in each if where.function is not None] for each in bound)
    found = next((each for each in own if each), None)
    if found is not None or any(info.twice for info in order):
        return found or []
    first = next((info for info in order if name in info.attributes or name in info.methods), None)
    return first.attributes[name] if first is not None and name not in first.methods else []


def _constructing(scope: Inherited, where: Scope) -> Scope | None:
    """Return the scope of a constructor as the call that makes an object comes to it, through `super().__init__()`."""
    if getattr(where.function, "name", "") != "__init__" or scope.owner is None:
        return where
    project = scope.project
    found = project.method(scope.owner, "__init__")
    call, caller = scope.maker if scope.maker is not None else (None, scope)
    for _ in range(MAX_HOPS if found is not None else 0):
        here = project.scope_of(found[0], found[1])  # type: ignore[index]  # it was found
        run = _run(here, call, caller)
        if here.function is where.function or here.owner is None:
            return run if here.function is where.function else None
        over = next((c for c in calls(found[0]) if _is_above(c)), None)  # type: ignore[index]  # it was found
        above = project.above(scope.owner, here.owner, "__init__")
        if over is None or above is None:
            return None
        found, call, caller = (above.methods["__init__"], above.scope.module, above), over, run
    return None


def _run(scope: Scope, call: ast.expr | None, caller: Scope) -> Scope:
    """Return the scope of a constructor in a call of it; where none is known, one that knows no parameter."""
    given = called(scope, call, caller).given if isinstance(call, ast.Call) else {}
    return Constructed(scope.project, scope.module, scope.function, scope.outer, scope.owner, given=given)


def _is_above(call: ast.Call) -> bool:
    func = call.func
    is_init = isinstance(func, ast.Attribute) and func.attr == "__init__" and isinstance(func.value, ast.Call)
    return is_init and tail_of(func.value.func) == "super"  # type: ignore[attr-defined]  # a call of an attribute
