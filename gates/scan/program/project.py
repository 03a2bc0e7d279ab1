"""A program: its modules, classes and functions, found by their names across files."""

import ast
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TypeVar

from gates.scan.program.classes import Assignments, ClassInfo, Lineage
from gates.scan.program.flows import Flows
from gates.scan.program.imports import Imports
from gates.scan.program.module import Function, Module, definitions
from gates.scan.program.scope import Scope
from gates.scan.program.types import Types


class Definitions:
    """The tables of what modules define."""

    def __init__(self, project: "Project", modules: Iterable[Module]) -> None:
        self._project = project
        self._scopes: dict[ast.AST, Scope] = {}
        self._names: dict[ast.AST, str] = {}
        self.classes: dict[str, ClassInfo] = {}
        self.functions: dict[str, tuple[Function, Module]] = {}
        for module in modules:
            self._index(module)

    def _index(self, module: Module) -> None:
        top = Scope(self._project, module)
        self._scopes[module.tree] = top
        stack: list[tuple[ast.AST, Scope, str, ClassInfo | None]] = [(module.tree, top, module.name, None)]
        while stack:
            node, scope, prefix, owner = stack.pop()
            for child in definitions(node, lambdas=module.lambdas):
                name = f"{prefix}.{getattr(child, 'name', '<lambda>')}"
                self._names[child] = name
                if isinstance(child, ast.ClassDef):
                    info = ClassInfo(name, child, scope, twice=name in self.classes)
                    if info.twice:
                        self.classes[name].twice = True
                    self.classes.setdefault(name, info)
                    stack.append((child, scope, name, info))
                    continue
                inner = Scope(self._project, module, child, scope, owner)
                self._scopes[child] = inner
                if not isinstance(child, ast.Lambda):
                    self.functions.setdefault(name, (child, module))
                    if owner:
                        owner.methods.setdefault(child.name, child)
                stack.append((child, inner, name, None))

    def scope_of(self, node: ast.AST, module: Module) -> Scope:
        """Return the scope of a function's body, or of the module."""
        return self._scopes.get(node) or self._scopes[module.tree]

    def scope_at(self, node: ast.AST, module: Module) -> Scope:
        """Return the scope that a live node stands in."""
        inside: ast.AST = node
        for around in module.ancestors(node):
            if around in self._scopes and not _is_of_head(inside, around):
                return self._scopes[around]
            inside = around
        return self._scopes[module.tree]

    def qualified(self, node: ast.AST, scope: Scope) -> str:
        """Return the full name of a definition."""
        return self._names.get(node) or f"{scope.module.name}.{getattr(node, 'name', '')}"


def _is_of_head(node: ast.AST, function: ast.AST) -> bool:
    """Return whether a node is a decorator, a default or an annotation of a function, read where that is defined."""
    if isinstance(node, ast.arguments):
        return True
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return node is function.returns or node in function.decorator_list


T = TypeVar("T")
MAX_NAMES = 200


class Project:
    """All modules of a program, and where their names lead: one door to what its parts answer."""

    def __init__(self, modules: Iterable[Module], unparsed: Iterable[str] = ()) -> None:
        self.modules = {module.path: module for module in modules}
        self.unparsed = tuple(unparsed)
        self.by_name = {module.name: module for module in self.modules.values()}
        self._renamed: dict[str, frozenset[str] | None] = {}
        self._found: dict[object, tuple[object, ...]] = {}
        imports, assignments = Imports(self), Assignments(self)
        self.find_module, self.canonical, self.starred = imports.find_module, imports.canonical, imports.starred
        self.lineage = lineage = Lineage(self)
        self.method, self.attribute, self.above = lineage.method, lineage.attribute, lineage.above
        self.ancestors_of, self.order_of, self.below = lineage.ancestors_of, lineage.order_of, lineage.below
        self.is_reset, self.attributes_set = assignments.is_reset, assignments.attributes_set
        self.types = Types(self)
        self.flows = Flows(self)

    def close(self) -> None:
        """Let go of all trees: to search for what holds itself among them takes longer than to read them."""
        for info in self.classes.values():
            info.__dict__.clear()
        self.__dict__.clear()

    @cached_property
    def _definitions(self) -> Definitions:
        return Definitions(self, self.modules.values())  # in most files no name is looked up, and none is needed

    @cached_property
    def classes(self) -> dict[str, ClassInfo]:
        """Return the classes by their full names."""
        return self._definitions.classes

    @cached_property
    def functions(self) -> dict[str, tuple[Function, Module]]:
        """Return the functions by their full names, and where they are."""
        return self._definitions.functions

    def is_module(self, node: ast.expr, scope: Scope) -> bool:
        """Return whether an expression names a module rather than an object."""
        if isinstance(node, ast.Name):
            found = scope.lookup(node.id)
            if found is None or not any(binding.kind == "import" for binding in found[1]):
                return False
            if any(b.kind == "import" and b.dotted == node.id for b in found[1]):
                return True
        named = scope.dotted(node)
        if isinstance(node, ast.Attribute) and named is not None and named.startswith("torch."):
            return named == named.lower()  # a part of the library itself
        return named is not None and named in self.by_name

    def scope_of(self, node: ast.AST, module: Module) -> Scope:
        """Return the scope of a function's body, or of the module."""
        return self._definitions.scope_of(node, module)

    def scope_at(self, node: ast.AST, module: Module) -> Scope:
        """Return the scope that a live node stands in."""
        return self._definitions.scope_at(node, module)

    def qualified(self, node: ast.AST, scope: Scope) -> str:
        """Return the full name of a definition."""
        return self._definitions.qualified(node, scope)

    def once(self, find: Callable[["Project"], Iterable[T]]) -> tuple[T, ...]:
        """Return what a function finds in the program; it looks once, whoever asks."""
        if find not in self._found:
            self._found[find] = tuple(find(self))
        return self._found[find]  # type: ignore[return-value]  # it is what this function found

    def names_for(self, last: str) -> frozenset[str] | None:
        """Return the names that code may write for one, by imports and assignments; `None` where it may be any."""
        if last not in self._renamed:
            found, todo = {last}, [last]
            while todo and len(found) <= MAX_NAMES:
                others = self._renames.get(todo.pop(), set()) - found
                found |= others
                todo += others
            self._renamed[last] = frozenset(found) if len(found) <= MAX_NAMES else None
        return self._renamed[last]

    @cached_property
    def _renames(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        for module in self.modules.values():
            for name, others in module.renames.items():
                found[name] |= others
        return found

    @cached_property
    def words(self) -> frozenset[str]:
        """Return the names that some file writes in live code."""
        return frozenset().union(*(module.words for module in self.modules.values()))

    @cached_property
    def method_names(self) -> Counter[str]:
        """Return how many classes have a method of a name."""
        return Counter(name for info in self.classes.values() for name in info.methods)

    @cached_property
    def named(self) -> dict[str, list[tuple[ast.Call, Module]]]:
        """Return the live calls of all modules by the last name that they are written with."""
        found: dict[str, list[tuple[ast.Call, Module]]] = defaultdict(list)
        for module in self.modules.values():
            for name, calls in module.calls.items():
                found[name] += [(call, module) for call in calls]
        return found
