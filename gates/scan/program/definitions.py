"""What a program defines: its classes and functions by their full names, and the scopes of its bodies."""

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Module, definitions
from gates.scan.program.scope import Scope

if TYPE_CHECKING:
    from gates.scan.program.project import Project


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
