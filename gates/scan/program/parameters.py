"""What the parameters of functions are: by what callers pass, or by what the code does with them."""

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gates.scan.program.module import Function, tail_of
from gates.scan.program.nodes import inner, is_none
from gates.scan.program.scope import Scope

if TYPE_CHECKING:
    from gates.scan.program.classes import ClassInfo
    from gates.scan.program.project import Project

MAX_HOPS = 6
MAX_CALLERS = 20
SCALING = {"scale", "step"}
GENERIC = frozenset(
    {"step", "update", "backward", "zero_grad", "state_dict", "load_state_dict", "train", "eval", "to", "parameters"}
    | {"append", "add", "get", "items", "keys", "values", "close", "write", "read", "join", "split", "copy", "pop"}
)


class Parameters:
    """The part of what is known of types that asks callers and uses."""

    _project: "Project"

    def of(self, node: ast.expr, scope: Scope) -> str | None:
        """Return the full name of an expression's class."""
        raise NotImplementedError

    def passed(self, parameter: str, scope: Scope) -> str | None:
        """Return the class of what every caller passes for a parameter, where they all agree."""
        function = scope.function
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        name = scope.owner.node.name if scope.owner and function.name == "__init__" else function.name
        found: set[str | None] = set()
        for call, module in self._project.named.get(name, [])[:MAX_CALLERS]:
            where = self._project.scope_at(call, module)
            if function.name != "__init__" and not self._may_run(call, scope, where):
                continue
            value = argument(call, function, parameter, bound=scope.owner is not None)
            if value is not None and not is_none(value):
                found.add(self.of(value, where))
        if scope.owner is not None and function.name == "__init__":
            found |= set(self._passed_on(parameter, function, scope.owner))
        return one(found)

    def _passed_on(self, parameter: str, function: Function, owner: "ClassInfo") -> Iterator[str | None]:
        """Yield the classes of what the constructors of classes that extend one pass on to its own."""
        for heir in self._project.extending.get(owner.name, ()):
            own = heir.methods.get("__init__")
            for call in inner(own, ast.Call) if own is not None else ():
                if isinstance(call, ast.Call) and _is_super(call.func):
                    value = argument(call, function, parameter, bound=True)
                    if value is not None and not is_none(value):
                        yield self.of(value, self._project.scope_of(own, heir.scope.module))  # type: ignore[arg-type]  # it has a call

    def handed(self, node: ast.expr, scope: Scope) -> str | None:
        """Return the class of what all callers hand over for a parameter, whatever it is annotated as."""
        behind = scope.through(node) if isinstance(node, ast.Attribute) else None
        made, where = behind or (node, scope)
        found = where.lookup(made.id) if isinstance(made, ast.Name) else None
        if found is None or not isinstance(made, ast.Name) or [b.kind for b in found[1]] != ["parameter"]:
            return None
        return self.passed(made.id, found[0])

    def _may_run(self, call: ast.Call, own: Scope, scope: Scope) -> bool:
        """Return whether a call by a function's name may run it: not where the name, or its object, is another."""
        named = scope.dotted(call.func)
        if named is not None and (named in self._project.functions or named.startswith("torch.")):
            return self._project.functions.get(named, (None,))[0] is own.function
        if isinstance(call.func, ast.Attribute):
            owner = scope.class_of(call.func.value)
            return owner is None or self._project.method(owner, call.func.attr) is not None
        found = scope.lookup(tail_of(call.func))
        around = own.outer.function if own.outer is not None else None
        if around is not None:  # a function inside of another is called by its name there alone
            return found is not None and found[0].function is around
        return found is None or any(binding.kind in {"import", "value"} for binding in found[1])


def one(found: set[str | None]) -> str | None:
    """Return the one class that several answers agree on."""
    return next(iter(found)) if len(found) == 1 else None


def argument(call: ast.Call, function: Function, parameter: str, *, bound: bool) -> ast.expr | None:
    """Return what a call passes for a parameter of a function, where it can be told."""
    for keyword in call.keywords:
        if keyword.arg == parameter:
            return keyword.value
    names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
    names = names[1:] if bound else names
    if parameter in names and not any(isinstance(arg, ast.Starred) for arg in call.args):
        index = names.index(parameter)
        return call.args[index] if index < len(call.args) else None
    return None


def _is_super(func: ast.expr) -> bool:
    """Return whether a call is one of the constructor of the next base: `super().__init__(...)`."""
    made = func.value if isinstance(func, ast.Attribute) and func.attr == "__init__" else None
    return isinstance(made, ast.Call) and tail_of(made.func) == "super"
