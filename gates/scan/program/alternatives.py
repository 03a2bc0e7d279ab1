"""The classes of the program that an object may be of, where it is one of several by what the program is told."""

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gates.scan.program.module import is_property
from gates.scan.program.nodes import below
from gates.scan.program.scope import Scope

if TYPE_CHECKING:
    from gates.scan.program.classes import ClassInfo
    from gates.scan.program.project import Project

MAX_HOPS = 5
MAX_CLASSES = 4


class Alternatives:
    """Answers which classes an object may be of; nothing where that is one alone, or not known."""

    def __init__(self, project: "Project") -> None:
        self._project = project
        self._known: dict[tuple[ast.expr, Scope], tuple[ClassInfo, ...]] = {}

    def of(self, node: ast.expr, scope: Scope) -> "tuple[ClassInfo, ...]":
        """Return the classes that an object may be of, two at least."""
        key = (node, scope)
        if key not in self._known:
            self._known[key] = ()  # a circle
            found = {info.name: info for info in self._objects(node, scope, MAX_HOPS)}
            kinds = tuple(found.values()) if 1 < len(found) <= MAX_CLASSES else ()
            self._known[key] = () if any(info.twice for info in kinds) else kinds
        return self._known[key]

    def _objects(self, node: ast.expr, scope: Scope, hops: int) -> "Iterator[ClassInfo]":
        """Yield the classes of what an expression may be."""
        if not hops:
            return
        if isinstance(node, ast.IfExp):
            for part in (node.body, node.orelse):
                yield from self._objects(part, scope, hops)
        elif isinstance(node, ast.BoolOp):
            for part in node.values:
                yield from self._objects(part, scope, hops)
        elif isinstance(node, ast.Call):
            yield from self._made(node, scope, hops)
        elif isinstance(node, ast.Name | ast.Attribute):
            for value, where in self._values(node, scope):
                yield from self._objects(value, where, hops - 1)
            found = scope.lookup(node.id) if isinstance(node, ast.Name) else None
            if found is not None and [b.kind for b in found[1]] == ["parameter"] and found[1][0].node is None:
                yield from self._project.types.kept_as(node.id, found[0])  # type: ignore[union-attr]  # it is a name

    def _made(self, call: ast.Call, scope: Scope, hops: int) -> "Iterator[ClassInfo]":
        """Yield the classes of what a call returns: of a constructor, or of a function's returns."""
        target = self._project.types.function(call, scope)
        if target is None:
            yield from self._classes(call.func, scope, hops)
            return
        inner = self._project.scope_of(target, scope.module)
        for node in below(target):
            if isinstance(node, ast.Return) and node.value is not None:
                yield from self._objects(node.value, inner, hops - 1)

    def _classes(self, node: ast.expr, scope: Scope, hops: int) -> "Iterator[ClassInfo]":
        """Yield the classes that an expression may name."""
        parts = _parts(node) if hops else []
        for part in parts:
            yield from self._classes(part, scope, hops - 1)
        if parts or not isinstance(node, ast.Name | ast.Attribute) or not hops:
            return
        values = list(self._values(node, scope))
        for value, where in values:
            yield from self._classes(value, where, hops - 1)
        info = self._project.classes.get(scope.dotted(node) or "") if not values else None
        if info is not None:
            yield info

    def _values(self, node: ast.Name | ast.Attribute, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
        """Yield what a variable or an attribute may be set to, or what a property returns."""
        if isinstance(node, ast.Name):
            found = scope.lookup(node.id)
            bindings = [(b, found[0]) for b in found[1]] if found else []
        else:
            bindings = scope.attribute(node)
            owner = scope.class_of(node.value) if not bindings else None
            method = self._project.method(owner, node.attr) if owner else None
            if method is not None and is_property(method[0]):
                where = self._project.scope_of(method[0], method[1])
                for inner in below(method[0]):
                    if isinstance(inner, ast.Return) and inner.value is not None:
                        yield inner.value, where
        for binding, where in bindings:
            if binding.kind == "value" and isinstance(binding.node, ast.expr):
                yield binding.node, where


def _parts(node: ast.expr) -> list[ast.expr]:
    """Return what a class is chosen of: the sides of a choice, what a dictionary holds, what a key is looked up in."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.Dict):
        return node.values
    if isinstance(node, ast.Subscript):
        return [node.value]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        return [node.func.value]
    return []
