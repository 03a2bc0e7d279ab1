"""The scope of a function in one call of it, where its parameters are what that call passes."""

import ast
from dataclasses import dataclass, field, replace

from gates.scan.program.module import Binding
from gates.scan.program.parameters import argument
from gates.scan.program.scope import Scope
from gates.scan.program.signatures import parameters

Made = tuple[ast.expr, Scope]


@dataclass(eq=False)
class Called(Scope):
    """A function's scope with what it is `given`, and what `made` the instance whose method it is."""

    given: dict[str, Made] = field(default_factory=dict)
    made: Made | None = None

    def lookup(self, name: str) -> tuple[Scope, list[Binding]] | None:
        """Return the scope that binds a name, and how: of a parameter that of the call."""
        if name in self.given:
            value, where = self.given[name]
            return where, [Binding("value", value)]
        return super().lookup(name)

    def attribute(self, node: ast.Attribute) -> list[tuple[Binding, Scope]]:
        """Return what an attribute is bound to: of the instance by the call that made it."""
        found = super().attribute(node)
        made = self.made[0] if self.made is not None else None
        if not isinstance(made, ast.Call) or not isinstance(node.value, ast.Name) or node.value.id != self.self_name:
            return found
        return [(b, called(s, made, self.made[1]) if _constructs(s) else s) for b, s in found]  # type: ignore[index]

    def knowing(self, name: str, value: ast.expr) -> "Called":
        """Return the scope after an assignment; what is assigned is read in the one before."""
        return replace(self, given={**self.given, name: (value, self)}, _named={})


def called(scope: Scope, call: ast.Call, caller: Scope, made: Made | None = None) -> Called:
    """Return the scope of a function in a call of it."""
    function = scope.function
    given: dict[str, Made] = {}
    if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        for name, default in parameters(function).items():
            value = argument(call, function, name, bound=scope.owner is not None and scope.self_name is not None)
            if value is not None:
                given[name] = (value, caller)
            elif default is not None and not _is_spread(call):
                given[name] = (default, scope.outer or scope)
    return Called(scope.project, scope.module, function, scope.outer, scope.owner, given=given, made=made)


def _is_spread(call: ast.Call) -> bool:
    return any(k.arg is None for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args)


def _constructs(scope: Scope) -> bool:
    return getattr(scope.function, "name", "") == "__init__"
