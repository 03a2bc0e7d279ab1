"""The classes of a program: their methods, what sets their attributes, and which extend which."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from gates.code.syntax import blocks
from gates.scan.program.module import Binding, Function, Module, assigned
from gates.scan.program.nodes import kept, walk
from gates.scan.program.scope import MAX_HOPS, Scope

if TYPE_CHECKING:
    from gates.scan.program.project import Project

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
    for node in blocks(method):
        for target, binding in assigned(node):
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == instance:
                yield target.attr, binding


def stored(node: ast.AST) -> frozenset[str]:
    """Return the attributes that code sets."""
    return frozenset(n.attr for n in walk(node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))


class Lineage:
    """Answers what the classes of a program extend and inherit, and who sets an attribute of their instances."""

    def __init__(self, project: "Project") -> None:
        self._project = project
        self._orders: dict[ClassInfo, list[ClassInfo]] = {}
        self._settings: dict[tuple[ast.AST, str], frozenset[str]] = {}

    def order_of(self, info: ClassInfo) -> list[ClassInfo]:
        """Return a class and the program's classes that it extends, in the order in which members are looked up."""
        if info not in self._orders:
            found = [info, *self._above(info, MAX_HOPS)]
            self._orders[info] = [each for at, each in enumerate(found) if each not in found[at + 1 :]]
        return [] if info.twice else [each for each in self._orders[info] if not each.twice]

    def _above(self, info: ClassInfo, hops: int) -> list[ClassInfo]:
        bases = [self._project.classes[base] for base in info.bases if base in self._project.classes] if hops else []
        return [*bases, *(further for base in bases for further in self._above(base, hops - 1))]

    def method(self, owner: ClassInfo, name: str) -> tuple[Function, Module, ClassInfo] | None:
        """Return a method, bases followed."""
        found = next((info for info in self.order_of(owner) if name in info.methods), None)
        return (found.methods[name], found.scope.module, found) if found is not None else None

    def above(self, owner: ClassInfo, around: ClassInfo, name: str) -> ClassInfo | None:
        """Return the class whose method `super()` means in a method of one class, where the object is of another."""
        order = self.order_of(owner)
        after = order[order.index(around) + 1 :] if around in order else []
        return next((info for info in after if name in info.methods), None)

    def attribute(self, owner: ClassInfo, name: str) -> list[tuple[Binding, Scope]]:
        """Return what an attribute is bound to, bases followed; nothing where that is not known."""
        return next((info.attributes[name] for info in self.order_of(owner) if name in info.attributes), [])

    @cached_property
    def extending(self) -> dict[str, list[ClassInfo]]:
        """Return the classes that extend a class, by its full name."""
        found: dict[str, list[ClassInfo]] = defaultdict(list)
        for info in list(self._project.classes.values()):
            for base in dict.fromkeys(info.bases):
                if base and base != info.name:
                    found[base].append(info)
        return dict(found)

    def below(self, owner: ClassInfo) -> Iterator[ClassInfo]:
        """Yield the classes that extend a class, themselves or through others, each once."""
        todo, seen = [owner.name], {owner.name}
        while todo:
            for info in self.extending.get(todo.pop(), ()):
                if info.name not in seen:
                    seen.add(info.name)
                    todo.append(info.name)
                    yield info

    @cached_property
    def reset(self) -> frozenset[str]:
        """Return the attributes that code other than a constructor sets."""
        methods = [m for info in list(self._project.classes.values()) for m in info.methods.items()]
        own = (kept(method, stored) for name, method in methods if name not in CONSTRUCTORS)
        return frozenset().union(*own, *(module.stores for module in self._project.modules.values()))

    def attributes_set(self, function: ast.AST, owner: ClassInfo, depth: int = 3) -> frozenset[str]:
        """Return the attributes that a method sets on its instance, itself or in the methods that it calls."""
        key = (function, owner.name)
        if key not in self._settings:
            self._settings[key] = frozenset()  # a circle sets nothing more
            found = kept(function, stored)
            for call in walk(function) if depth else ():
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                    own = isinstance(call.func.value, ast.Name) and call.func.value.id == "self"
                    method = self.method(owner, call.func.attr) if own else None
                    found |= self.attributes_set(method[0], owner, depth - 1) if method else frozenset()
            self._settings[key] = frozenset(found)
        return self._settings[key]
