"""Which function of the program a call runs: by name, by its object's class, through variables and partials."""

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from gates.scan.paths.contexts import Contexts
from gates.scan.paths.place import Place
from gates.scan.paths.state import State
from gates.scan.paths.values import Closure, Value
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Named, tail_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

REST = "**"  # options of which it is not known which they are

if TYPE_CHECKING:
    from gates.scan.paths.hot import Hot


class Finding(Contexts):
    """The part of a walk that finds the functions which calls run."""

    project: Project
    hot: "Hot"

    def closure(self, node: ast.expr, path: State, scope: Scope) -> Closure | None:
        """Return the function of the program that an expression is, with what it is bound to."""
        place = self.place(path, scope)
        found = place.find(node)
        if found is not None and found.closure is not None:
            return found.closure
        if isinstance(node, ast.Lambda):
            return place.lambda_(node)
        if found is not None and found.node is not None and found.node is not node and found.place is not None:
            return self.behind(found.node, found.place, path)
        return self.behind(node, place, path)

    def behind(self, node: ast.expr, place: Place, path: State) -> Closure | None:  # a case for each
        """Return the function of the program that an expression at a place is."""
        if isinstance(node, ast.Lambda):
            return place.lambda_(node)
        if isinstance(node, Named) and place.scope.owner is None:
            return Closure(node.function, self.project.scope_of(node.function, place.scope.module), {})
        if isinstance(node, ast.Call) and place.dotted(node.func) == "functools.partial" and node.args:
            return self._partial(node, place, path)
        if isinstance(node, ast.Call):
            owner = self.project.classes.get(place.dotted(node.func) or "")
            return self._bound(owner, ("__call__", "forward"), place.value(node)) if owner else None
        if isinstance(node, ast.Attribute):
            method = self._method(node, place)
            if method is not None:
                return method
        if isinstance(node, ast.Name | ast.Attribute):
            named = place.dotted(node)
            if named in self.project.functions:
                function, module = self.project.functions[named]
                return Closure(function, self.project.scope_of(function, module), {})
            owner = self.project.classes.get(named or "")
            if owner is None and isinstance(node, ast.Name | ast.Attribute):
                owner = place.owner_of(node)
                return self._bound(owner, ("__call__", "forward"), place.value(node)) if owner else None
        return None

    def _partial(self, node: ast.Call, place: Place, path: State) -> Closure | None:
        inner = self.behind(node.args[0], place, path)
        if inner is None:
            return None
        given = tuple(place.value(a) for a in node.args[1:])
        named = {k.arg: place.value(k.value) for k in node.keywords if k.arg}
        return replace(inner, bound=(*inner.bound, *given), named={**inner.named, **named})

    def _method(self, node: ast.Attribute, place: Place) -> Closure | None:
        receiver = node.value
        if isinstance(receiver, ast.Call) and tail_of(receiver.func) == "super":
            around = place.scope.self_class
            self_value = place.names.get(place.scope.self_name or "")
            owner = self_value.owner if self_value is not None else None
            above = self.project.above(owner, around, node.attr) if owner and around and owner is not around else None
            if above is not None:
                return self._bound(above, (node.attr,), self_value)
            for base in around.bases if around else ():
                info = self.project.classes.get(base or "")
                found = self._bound(info, (node.attr,), self_value) if info else None
                if found:
                    return found
            return None
        owner = place.owner_of(receiver)
        return self._bound(owner, (node.attr,), place.value(receiver)) if owner else None

    def _bound(self, owner: ClassInfo, names: tuple[str, ...], instance: Value | None) -> Closure | None:
        for name in names:
            found = self.project.method(owner, name)
            if found is None:
                continue
            function, module, _ = found
            scope = self.project.scope_of(function, module)
            if any(tail_of(d) == "staticmethod" for d in function.decorator_list):
                return Closure(function, scope, {})
            value = instance or Value("self")
            value = value if value.owner else replace(value, owner=owner)
            return Closure(function, scope, {}, (value,))
        return None


def passed_on(call: ast.Call, place: Place) -> tuple[tuple[Value, ...], dict[str, Value]]:
    """Return what a call passes, `*args` and `**options` that are handed on among it; nothing where that is unknown."""
    values: list[Value] = []
    for argument in call.args:
        rest = place.value(argument.value).rest if isinstance(argument, ast.Starred) else (place.value(argument),)
        if not isinstance(rest, tuple):
            values = []
            break
        values += rest
    named: dict[str, Value] = {}
    for keyword in call.keywords:
        more = place.value(keyword.value)
        if keyword.arg:
            named[keyword.arg] = more
        elif isinstance(more.rest, Mapping):
            named |= more.rest
        else:
            named[REST] = more
    return tuple(values), named


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
    if arguments.vararg and len(values) > len(names):
        rest = values[len(names) :]
        found[arguments.vararg.arg] = Value(f"({', '.join(v.key for v in rest)})", rest=rest)
    more = {name: value for name, value in named.items() if name not in found and name != REST}
    if arguments.kwarg and more and REST not in named:
        texts = (f"{name}={value.key}" for name, value in more.items())
        found[arguments.kwarg.arg] = Value(f"{{{', '.join(texts)}}}", rest=more)
    return found


def parameters(function: Function | ast.Lambda) -> dict[str, ast.expr | None]:
    """Return the parameters of a function with their defaults, those that have a place first."""
    names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
    found: dict[str, ast.expr | None] = dict.fromkeys(names)
    found |= dict(zip(reversed(names), reversed(function.args.defaults), strict=False))
    return found | {a.arg: d for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)}
