"""The lineage of a program's classes: which extend which, and what they inherit."""

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Binding, Function, Module
from gates.scan.program.scope import MAX_HOPS, Scope

if TYPE_CHECKING:
    from gates.scan.program.project import Project


class Lineage:
    """Answers what the classes of a program extend and inherit."""

    def __init__(self, project: "Project") -> None:
        self._project = project
        self._ancestors: dict[ClassInfo, tuple[ClassInfo, ...]] = {}
        self._line: dict[ClassInfo, tuple[frozenset[ClassInfo] | None, frozenset[str | None]]] = {}

    def method(self, owner: ClassInfo, name: str, hops: int = MAX_HOPS) -> tuple[Function, Module, ClassInfo] | None:
        """Return a method, bases followed."""
        if owner.twice:
            return None
        if name in owner.methods:
            return owner.methods[name], owner.scope.module, owner
        for base in owner.bases if hops else ():
            found = self._project.classes.get(base or "")
            inherited = self.method(found, name, hops - 1) if found else None
            if inherited:
                return inherited
        return None

    @cached_property
    def by_method(self) -> dict[str, list[ClassInfo]]:
        """Return the classes that define a method, by its name, and those that inherit it."""
        found: dict[str, list[ClassInfo]] = defaultdict(list)
        for info in self._project.classes.values():
            for name in {n for each in (info, *self.ancestors_of(info)) for n in each.methods}:
                found[name].append(info)
        return dict(found)

    def ancestors_of(self, info: ClassInfo) -> tuple[ClassInfo, ...]:
        """Return the program's classes that a class extends."""
        if info not in self._ancestors:
            self._ancestors[info] = tuple(self._above(info, MAX_HOPS))
        return self._ancestors[info]

    def _above(self, info: ClassInfo, hops: int) -> list[ClassInfo]:
        bases = [self._project.classes[base] for base in info.bases if base in self._project.classes] if hops else []
        return [*bases, *(further for base in bases for further in self._above(base, hops - 1))]

    def order_of(self, info: ClassInfo) -> list[ClassInfo]:
        """Return a class and the program's classes that it extends, in the order in which methods are looked up."""
        found = [info, *self.ancestors_of(info)]
        return [each for at, each in enumerate(found) if each not in found[at + 1 :]]

    def above(self, owner: ClassInfo, around: ClassInfo, name: str) -> ClassInfo | None:
        """Return the class whose method `super()` means in a method of one class, where the object is of another."""
        order = self.order_of(owner)
        after = order[order.index(around) + 1 :] if around in order else []
        return next((info for info in after if name in info.methods), None)

    def attribute(self, owner: ClassInfo, name: str, hops: int = MAX_HOPS) -> list[tuple[Binding, Scope]]:
        """Return what an attribute is bound to, bases followed; nothing where that is not known."""
        if owner.twice:
            return []
        if name in owner.attributes:
            return owner.attributes[name]
        for base in owner.bases if hops else ():
            found = self._project.classes.get(base or "")
            inherited = self.attribute(found, name, hops - 1) if found else []
            if inherited:
                return inherited
        return []

    @cached_property
    def extended(self) -> frozenset[str]:
        """Return the full names of the classes that others extend."""
        return frozenset(base for info in self._project.classes.values() for base in info.bases if base)

    @cached_property
    def extending(self) -> dict[str, list[ClassInfo]]:
        """Return the classes that extend a class, by its full name."""
        found: dict[str, list[ClassInfo]] = defaultdict(list)
        for info in self._project.classes.values():
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
