"""Where code stands and what its names are called in full; and the classes of a program, with what they inherit."""

import ast
import builtins
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from gates.code.syntax import Definition, blocks
from gates.scan.program.module import Binding, Function, Module, assigned, tail_of
from gates.scan.program.nodes import chain_of, text_of, walk

if TYPE_CHECKING:
    from gates.scan.program.project import Project

CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__"})
BUILTINS = frozenset(dir(builtins))
MAX_HOPS = 6
SAME = {"to", "cuda", "cpu", "train", "eval", "half", "float", "double", "bfloat16", "requires_grad_", "compile"}
UNKNOWN = "builtins.object"  # the class of what a framework in the program itself makes of an optimizer
PREPARES = frozenset({"prepare", "setup", "setup_dataloaders", "setup_module", "setup_optimizers", "initialize"})


@dataclass(eq=False)
class Scope:
    """A module or a function; `owner` is the class whose method it is."""

    project: "Project"
    module: Module
    function: Function | ast.Lambda | None = None
    outer: "Scope | None" = None
    owner: "ClassInfo | None" = None
    _named: dict[ast.AST, str | None] = field(default_factory=dict, repr=False)

    @cached_property
    def bindings(self) -> dict[str, list[Binding]]:
        """Return what the names of this scope alone are bound to, its parameters included."""
        return self.module.bindings if self.function is None else self.module.bound_in(self.function)

    @property
    def self_name(self) -> str | None:
        """Return what a method calls its instance."""
        if self.owner is None or not isinstance(self.function, ast.FunctionDef | ast.AsyncFunctionDef):
            return self.outer.self_name if self.outer and self.outer.function else None
        first = [*self.function.args.posonlyargs, *self.function.args.args][:1]
        static = any(tail_of(d) == "staticmethod" for d in self.function.decorator_list if isinstance(d, ast.expr))
        return first[0].arg if first and not static else None

    @property
    def self_class(self) -> "ClassInfo | None":
        """Return the class of the instance that `self` is here."""
        return self.owner or (self.outer.self_class if self.outer else None)

    def lookup(self, name: str) -> "list[tuple[Binding, Scope]]":
        """Return what a name is bound to in the innermost scope that binds it, and that scope."""
        if name in self.bindings:
            return [(binding, self) for binding in self.bindings[name]]
        return self.outer.lookup(name) if self.outer else []

    def dotted(self, node: ast.expr) -> str | None:
        """Return the full name of what an expression names; `None` for what is no name of a module's."""
        return self._dotted(node, MAX_HOPS)

    def _dotted(self, node: ast.expr, hops: int) -> str | None:
        if node not in self._named:
            self._named[node] = None  # a circle names nothing
            self._named[node] = self._resolved(node, hops) if hops > 0 else None
        return self._named[node]

    def _resolved(self, node: ast.expr, hops: int) -> str | None:
        if isinstance(node, ast.Attribute):
            if (base := self._dotted(node.value, hops)) is not None:
                return self.project.canonical(f"{base}.{node.attr}", self.module)
            return self._aliased(self.attribute(node), hops)
        if isinstance(node, ast.Name):
            return self._name(node.id, hops)
        if isinstance(node, ast.Call) and self._dotted(node.func, hops - 1) == "functools.partial" and node.args:
            return self._dotted(node.args[0], hops - 1)
        if isinstance(node, ast.IfExp):
            return self._dotted(node.body, hops - 1) or self._dotted(node.orelse, hops - 1)
        return None

    def _name(self, name: str, hops: int) -> str | None:
        if found := self.lookup(name):
            return self._aliased(found, hops)
        return self.project.starred(name, self.module) or name

    def _aliased(self, bindings: "list[tuple[Binding, Scope]]", hops: int) -> str | None:
        """Return the name that bindings agree to stand for; of a fallback the first counts."""
        if any(b.kind in {"parameter", "opaque", "item", "enter"} for b, _ in bindings):
            return None
        for binding, scope in bindings:
            if binding.kind == "import":
                return self.project.canonical(binding.dotted, scope.module)
            if binding.kind == "define" and isinstance(binding.node, Definition):
                return self.project.qualified(binding.node, scope)
            if binding.kind == "value" and isinstance(binding.node, ast.Name | ast.Attribute | ast.Call | ast.IfExp):
                named = scope._dotted(binding.node, hops - 1)  # noqa: SLF001
                if named is not None:
                    return named
        return None

    def attribute(self, node: ast.Attribute) -> "list[tuple[Binding, Scope]]":
        """Return what an attribute of a known class's instance is bound to, and where."""
        owner = self.class_of(node.value)
        return self.project.attribute(owner, node.attr) if owner else []

    def class_of(self, node: ast.expr) -> "ClassInfo | None":
        """Return the project's class that an object is of."""
        if isinstance(node, ast.Name) and node.id == self.self_name:
            return self.self_class
        return self.project.classes.get(self.type_of(node) or "")

    def through(self, node: ast.expr) -> "tuple[ast.expr, Scope] | None":
        """Return the expression that a variable or attribute was made by, where there is exactly one."""
        bindings = self.attribute(node) if isinstance(node, ast.Attribute) else []
        match self.lookup(node.id) if isinstance(node, ast.Name) else bindings:
            case [(Binding(kind="value", node=ast.expr() as value), scope)]:
                return value, scope
        return None

    def key(self, node: ast.AST) -> str:
        """Return the text of an expression."""
        return text_of(node)

    def type_of(self, node: ast.expr) -> str | None:
        """Return the full name of an object's class."""
        return self.project.types.of(node, self)


@dataclass(eq=False)
class ClassInfo:
    """A class of the program; one that is defined twice has unknown members."""

    name: str
    node: ast.ClassDef
    scope: Scope
    twice: bool = False
    methods: dict[str, Function] = field(default_factory=dict)

    @cached_property
    def bases(self) -> list[str | None]:
        """Return the full names of what it extends."""
        return [self.scope.dotted(base) for base in self.node.bases]

    @cached_property
    def attributes(self) -> dict[str, list[tuple[Binding, Scope]]]:
        """Return what its class body and its methods bind attributes to."""
        found: dict[str, list[tuple[Binding, Scope]]] = defaultdict(list)
        body = Scope(self.scope.project, self.scope.module, None, self.scope)
        for statement in self.node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                found[statement.target.id].append((Binding("parameter", statement.annotation), body))
            elif isinstance(statement, ast.Assign):
                for name in (target for target in statement.targets if isinstance(target, ast.Name)):
                    found[name.id].append((Binding("value", statement.value), body))
        for method in self.methods.values():
            scope = self.scope.project.scope_of(method, self.scope.module)
            for target, binding in (each for node in blocks(method) for each in assigned(node)):
                if isinstance(target, ast.Attribute) and chain_of(target.value) == (scope.self_name or ""):
                    found[target.attr].append((binding, scope))
        return dict(found)


def stored(node: ast.AST) -> frozenset[str]:
    """Return the attributes that code sets."""
    return frozenset(n.attr for n in walk(node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
