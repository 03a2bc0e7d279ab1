"""Which functions a call may run: methods of all that its object may be, callbacks, what is handed on."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.reading.origins import Origins
from gates.scan.program.classes import ClassInfo
from gates.scan.program.dispatching import dispatch_of
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

CALLED = ("__call__", "forward")
COMMON = frozenset(
    {
        "add",
        "append",
        "backward",
        "call",
        "clear",
        "close",
        "copy",
        "count",
        "eval",
        "extend",
        "format",
        "forward",
        "get",
        "index",
        "info",
        "insert",
        "items",
        "join",
        "keys",
        "load",
        "log",
        "next",
        "open",
        "pop",
        "print",
        "put",
        "read",
        "record",
        "register",
        "remove",
        "report",
        "reset",
        "run",
        "sample",
        "save",
        "send",
        "set",
        "setup",
        "sort",
        "split",
        "start",
        "state_dict",
        "load_state_dict",
        "step",
        "stop",
        "sum",
        "to",
        "train",
        "update",
        "values",
        "write",
        "zero_grad",
        "parameters",
    }
)


def only_method(project: Project, func: ast.Attribute, scope: Scope) -> Iterator[Function]:
    """Yield the one method of a name that there is, of an object called as its class is, or of a rare name."""
    if not isinstance(func.value, ast.Name | ast.Attribute) or project.method_names.get(func.attr, 0) != 1:
        return
    if project.types.of(func.value, scope) is not None or project.is_module(func.value, scope):
        return
    owner = next((i for i in project.by_method.get(func.attr, ()) if func.attr in i.methods), None)
    if owner is None or owner.twice:
        return
    word = re.sub(r"[\W_\d]", "", tail_of(func.value)).lower()
    if func.attr not in COMMON or (len(word) > 3 and word in owner.node.name.lower()):
        yield owner.methods[func.attr]


class Targets:
    """Answers what a call may run."""

    def __init__(self, project: Project, origins: Origins) -> None:
        self._project = project
        self._origins = origins

    def of(self, call: ast.Call, module: Module) -> list[Function]:
        """Return the functions of the program that a call may run."""
        scope = self._project.scope_at(call, module)
        known = self._project.types.function(call, scope)
        found = [known] if known is not None else list(self._unknown(call, scope))
        found += [other for one in found for other in self._overriding(one, call, scope)]
        handlers = self._project.once(dispatch_of)[0].handlers
        return list(dict.fromkeys([*found, *(each.function for one in found for each in handlers.get(one, ()))]))

    def entered(self, item: ast.expr, module: Module) -> list[Function]:
        """Return what runs where a block begins and ends with a context manager of the program."""
        owners = self._origins.classes(item, self._project.scope_at(item, module))
        return [m for owner in owners for name in ("__enter__", "__exit__") for m in self._method(owner, name)]

    def behind(self, node: ast.expr, scope: Scope) -> Iterator[Function | ast.Lambda]:
        """Yield the functions that a value may be."""
        todo, seen = [(node, scope)], {node}
        while todo:
            for origin in self._origins.of(*todo.pop()):
                made = origin.node
                if isinstance(made, ast.Lambda):
                    yield made
                elif isinstance(made, ast.Name | ast.Attribute):
                    yield from self._called(made, origin.scope)
                elif isinstance(made, ast.Call) and tail_of(made.func) == "partial" and made.args:
                    todo += [(made.args[0], origin.scope)] if made not in seen else []
                    seen.add(made)  # one of itself, as `step = partial(step, 1)` makes, is followed once

    def _called(self, node: ast.Name | ast.Attribute, scope: Scope) -> Iterator[Function]:
        """Yield the function or the method that a name means."""
        named = scope.dotted(node)
        if named in self._project.functions:
            yield self._project.functions[named or ""][0]
        elif isinstance(node, ast.Attribute) and (owner := scope.class_of(node.value)):
            yield from self._method(owner, node.attr)

    def _unknown(self, call: ast.Call, scope: Scope) -> Iterator[Function]:
        func = call.func
        if isinstance(func, ast.Attribute):
            if isinstance(func.value, ast.Call) and tail_of(func.value.func) == "super":
                yield from self._above(scope.self_class, func.attr)
                return
            owners = self._origins.classes(func.value, scope)
            found = [method for owner in owners for method in self._method(owner, func.attr)]
            yield from found or only_method(self._project, func, scope)
            if found:
                return
        if isinstance(func, ast.Name | ast.Attribute) and scope.dotted(func) is None:
            yield from (one for one in self.behind(func, scope) if not isinstance(one, ast.Lambda))
            for held in self._origins.classes(func, scope):
                yield from [m for name in CALLED for m in self._method(held, name)][:1]
        elif isinstance(func, ast.Name) and (owner := self._project.classes.get(scope.dotted(func) or "")):
            yield from self._method(owner, "__init__")

    def _method(self, owner: ClassInfo, name: str) -> list[Function]:
        found = self._project.method(owner, name)
        return [found[0]] if found else []

    def _above(self, owner: ClassInfo | None, name: str) -> Iterator[Function]:
        for base in owner.bases if owner else ():
            info = self._project.classes.get(base or "")
            found = self._method(info, name) if info else []
            if found:
                yield found[0]
                return

    def _overriding(self, function: Function, call: ast.Call, scope: Scope) -> Iterator[Function]:
        """Yield what overrides a method that is called on the own instance, or on one of a class that is named only."""
        owner = self._project.scope_of(function, scope.module).owner
        if owner is None or not isinstance(call.func, ast.Attribute) or owner.twice:
            return
        made = [o.node for o in self._origins.of(call.func.value, scope) if isinstance(o.node, ast.Call)]
        if made or isinstance(call.func.value, ast.Call):
            return  # its class is known, not only a base of it
        below = self._project.below(owner)
        yield from (info.methods[function.name] for info in below if function.name in info.methods)
