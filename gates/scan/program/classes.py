"""A class of a program: its methods, and what its code binds attributes to."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from gates.scan.program.module import Binding, Function
from gates.scan.program.nodes import below, kept, walk
from gates.scan.program.scope import Scope

CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__"})


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
                for target in statement.targets:
                    if isinstance(target, ast.Name):
                        found[target.id].append((Binding("value", statement.value), body))
        for method in self.methods.values():
            scope = self.scope.project.scope_of(method, self.scope.module)
            for name, binding in _set_on(scope.self_name, method):
                found[name].append((binding, scope))
        return dict(found)


def _set_on(instance: str | None, method: Function) -> Iterator[tuple[str, Binding]]:
    for node in below(method):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _attributes(instance, target, node.value)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                yield from _attributes(instance, node.target, node.value)
        elif isinstance(node, ast.AugAssign | ast.For | ast.AsyncFor):
            yield from _attributes(instance, node.target, None)


def _attributes(instance: str | None, target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, Binding]]:
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == instance:
        yield target.attr, Binding("value", value) if value is not None else Binding("opaque")
    elif isinstance(target, ast.Tuple | ast.List):
        apart = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
        for index, inner in enumerate(target.elts):
            if isinstance(value, ast.Tuple | ast.List) and apart:
                yield from _attributes(instance, inner, value.elts[index])
            elif isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name) and inner.value.id == instance:
                yield inner.attr, Binding("item", value, index=index) if value is not None else Binding("opaque")


def sets(info: ClassInfo, name: str) -> bool:
    """Return whether a method other than the constructor sets an attribute of its instance."""
    return any(name in stored_in(method) for key, method in info.methods.items() if key not in CONSTRUCTORS)


def stored_in(function: ast.AST) -> frozenset[str]:
    """Return the attributes that code sets."""
    return kept(function, _stored)


def _stored(node: ast.AST) -> frozenset[str]:
    return frozenset(n.attr for n in walk(node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
