"""A place where a program mentions a name, and which functions it may mean."""

import ast
from collections import deque
from dataclasses import dataclass
from functools import cached_property

from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Module, is_property, tail_of
from gates.scan.program.nodes import is_none
from gates.scan.program.project import Project
from gates.scan.program.scope import BUILTINS, PREPARES, Scope
from gates.scan.ways.holders import Holder, holders_of, set_to

LISTS = (ast.List, ast.Tuple, ast.Set, ast.Dict)
READ = (ast.Attribute, ast.AugAssign, ast.BinOp, ast.Compare, ast.FormattedValue, ast.Slice, ast.Subscript, ast.UnaryOp)
TENSOR = (
    "clone",
    "cpu",
    "cuda",
    "detach",
    "dim",
    "expand",
    "item",
    "mean",
    "numel",
    "numpy",
    "size",
    "sum",
    "to",
    "tolist",
)
PLAIN = frozenset(name for kind in (dict, list, set, str, deque) for name in dir(kind) if name != "update").union(
    TENSOR
)  # what containers, texts and tensors do, of which most objects of unknown class are one
DISPLAYS = (*LISTS, ast.ListComp, ast.SetComp, ast.DictComp, ast.Constant)


@dataclass(eq=False)
class Mention:
    """A live place where a name is read or an attribute set."""

    node: ast.Name | ast.Attribute
    module: Module
    project: Project

    @cached_property
    def scope(self) -> Scope:
        """Return where it stands."""
        return self.project.scope_at(self.node, self.module)

    @cached_property
    def around(self) -> ast.AST:
        """Return the function that it stands in, or the module."""
        for around in self.module.ancestors(self.node):
            if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
                return around
        return self.module.tree

    @cached_property
    def aliases(self) -> list[ast.Name | ast.Attribute]:
        """Return the variables that are set to what it names, directly, in a choice or in a partial."""
        here: ast.AST | None = self.node
        while here is not None:
            if (targets := set_to(here, self.module)) is not None:
                return [target for target in targets if isinstance(target, ast.Name | ast.Attribute)]
            around = self.module.parents.get(here)
            is_partial = isinstance(around, ast.Call) and around.func is not here and tail_of(around.func) == "partial"
            here = around if isinstance(around, ast.IfExp | ast.BoolOp) or is_partial else None
        return []

    @cached_property
    def holders(self) -> tuple[Holder, ...]:
        """Return what is set to what it names, or is handed it."""
        return tuple(holders_of(self.node, self.module, self.scope))

    @cached_property
    def decorates(self) -> bool:
        """Return whether it is a decorator, or what a call made one."""
        call = self.module.parents.get(self.node)
        node = call if isinstance(call, ast.Call) and call.func is self.node else self.node
        return node in getattr(self.module.parents.get(node), "decorator_list", ())

    @cached_property
    def is_called(self) -> bool:
        """Return whether it is what a call runs."""
        call = self.module.parents.get(self.node)
        return isinstance(call, ast.Call) and call.func is self.node

    @cached_property
    def _named(self) -> Function | None:
        named = self.scope.dotted(self.node)
        return self.project.functions[named][0] if named in self.project.functions else None

    @cached_property
    def _is_of_module(self) -> bool:
        return isinstance(self.node, ast.Attribute) and self.project.is_module(self.node.value, self.scope)

    @cached_property
    def owner(self) -> ClassInfo | None:
        """Return the class of the object that it is an attribute of, where that is known."""
        return self.scope.class_of(self.node.value) if isinstance(self.node, ast.Attribute) else None

    @cached_property
    def _method(self) -> Function | None:
        found = self.project.method(self.owner, tail_of(self.node)) if self.owner else None
        return found[0] if found else None

    @cached_property
    def _is_handed(self) -> bool:
        """Return whether it is called or handed on, rather than set, compared or reckoned with as no function is."""
        return isinstance(self.node.ctx, ast.Load) and not isinstance(self.module.parents.get(self.node), READ)

    @cached_property
    def _family(self) -> frozenset[ClassInfo] | None:
        """Return the classes of which `super()` here may mean one; `None` for what is no `super()`."""
        value = self.node.value if isinstance(self.node, ast.Attribute) else None
        if not isinstance(value, ast.Call) or tail_of(value.func) != "super" or self.scope.self_class is None:
            return None
        return family_of(self.scope.self_class, self.project)

    @cached_property
    def is_open(self) -> bool:
        """Return whether it may mean any method of its name: of an object of unknown class."""
        if self.owner is not None or not isinstance(self.node, ast.Attribute) or not self._is_handed:
            return False
        if self.node.attr in PLAIN:
            return False
        value = self.node.value
        if isinstance(self.module.parents.get(self.node), LISTS):
            return False  # what stands in a list is followed for known classes alone
        if isinstance(value, ast.Call) and tail_of(value.func) == "super":
            return self.scope.self_class is None
        if not isinstance(value, ast.Name | ast.Attribute) or self._is_of_library:
            return False
        return self.project.types.of(value, self.scope) is None and not self._is_display

    @cached_property
    def _is_of_library(self) -> bool:
        """Return whether it is a part of a library that knows nothing of the program's classes."""
        assert isinstance(self.node, ast.Attribute)
        root = self.node.value
        while isinstance(root, ast.Attribute):
            root = root.value
        found = self.scope.lookup(root.id) if isinstance(root, ast.Name) else None
        if found is None or not all(binding.kind == "import" for binding in found[1]):
            return False
        named = self.scope.dotted(self.node.value)
        return named is not None and self.project.is_foreign(named)

    @cached_property
    def _is_display(self) -> bool:
        """Return whether it is of an object that is written out, such as a list, or that a library's function made."""
        assert isinstance(self.node, ast.Attribute)
        behind = self.scope.through(self.node.value)
        if behind is None:
            return False
        made, scope = behind
        if isinstance(made, ast.Call) and isinstance(made.func, ast.Name | ast.Attribute):
            named = scope.dotted(made.func) if tail_of(made.func) not in PREPARES else None
            return named is not None and _is_imported(made.func, scope) and self.project.is_foreign(named)
        return isinstance(made, DISPLAYS) and not is_none(made)

    @cached_property
    def _may_hold(self) -> bool:
        """Return whether an attribute that is no method of its class may be a function all the same."""
        if self.owner is None:
            return False
        bound = [binding.node for binding, _ in self.project.attribute(self.owner, tail_of(self.node))]
        return not any(isinstance(node, DISPLAYS) and not is_none(node) for node in bound)

    @cached_property
    def _bound(self) -> tuple[bool, frozenset[ast.AST]]:
        """Return of a name whether it may be any function that is called so, and what it is in any case.

        What else it is set to is followed from there: a variable of a function is one of no other.
        """
        found = self.scope.lookup(tail_of(self.node))
        if found is None:
            return bool(self.module.stars), frozenset()
        known = {b.node for b in found[1] if b.kind == "define" and b.node is not None}
        imported = any(b.kind == "import" for b in found[1])
        if imported and self._named is not None:
            known.add(self._named)
        return imported and self._named is None and not self._is_foreign, frozenset(known)

    @cached_property
    def _is_foreign(self) -> bool:
        """Return whether an imported name, or one of an imported module, is a library's."""
        return self.project.is_foreign(self.scope.dotted(self.node) or "")

    @property
    def sense(self) -> tuple[object, ...]:
        """Return what decides of it which functions it means; two mentions of one name that agree mean the same."""
        if isinstance(self.node, ast.Name):
            return self._bound
        if not self._is_handed:
            return ("read",)
        holds = self.owner is not None and self._method is None and self._may_hold
        known = (self._named, self.plain[0], self.owner, self._method)
        return (*known, self.is_open, self._family, holds, self.is_called)

    @property
    def plain(self) -> tuple[bool, frozenset[ast.AST]]:
        """Return whether it may mean any function that is no method, and which it means in any case."""
        if isinstance(self.node, ast.Name):
            return self._bound
        if not self._is_handed:
            return False, frozenset()
        loose = self._is_of_module and self._named is None and not self._is_foreign
        return loose, frozenset({self._named} if self._named is not None else ())

    @property
    def may_be_attribute(self) -> bool:
        """Return whether it may mean what objects keep under a name, and is no method of a known class."""
        is_value = self._method is None or _is_read(self._method)
        return isinstance(self.node, ast.Attribute) and is_value and not self._is_of_module

    @property
    def may_be_method(self) -> bool:
        """Return whether it may mean a method at all."""
        return isinstance(self.node, ast.Attribute) and self._is_handed

    @property
    def is_guess(self) -> bool:
        """Return whether its name alone tells what it means: a name from elsewhere, an attribute that is no method."""
        return self.plain[0] or (self.owner is not None and self._method is None)

    @property
    def is_super(self) -> bool:
        """Return whether it is of `super()`, in a class that is known."""
        return self._family is not None

    def may_be_of(self, function: Function, owner: ClassInfo) -> bool:
        """Return whether what has it, of a known class, may have a method of another class."""
        return self._method is None or self._method is function or self._is_related(owner)

    def _is_related(self, owner: ClassInfo) -> bool:
        assert self.owner is not None
        return self.project.may_be(owner, self.owner) or owner in self._mixed

    def means(self, function: Function, owner: ClassInfo | None) -> bool:
        """Return whether it may mean a function, that of a class where an owner is named."""
        if isinstance(self.node, ast.Name):
            loose, nodes = self._bound
            return owner is None and (loose or function in nodes)
        if not self._is_handed:
            return False
        if self._named is function:
            return True
        if owner is None:
            return self.plain[0]
        if not self.is_called and _is_read(function):
            return False
        if self.owner is None:
            return self.is_open or (self._family is not None and owner in self._family)
        if self._method is None and self._may_be_set_to(function):
            return self.is_called
        return self._method is function or self._is_related(owner)

    @cached_property
    def _mixed(self) -> frozenset[ClassInfo]:
        """Return the classes that others extend beside the object's own: mixins, whose methods may take its place."""
        if self.owner is None or self.owner.name not in self.project.extending:
            return frozenset()
        return family_of(self.owner, self.project) - {*self.project.ancestors_of(self.owner)}

    def _may_be_set_to(self, function: Function) -> bool:
        return tail_of(self.node) != function.name or self._may_hold


def _is_imported(node: ast.expr, scope: Scope) -> bool:
    """Return whether a name begins with a module or a part of one, or is one of Python's own."""
    while isinstance(node, ast.Attribute):
        node = node.value
    found = scope.lookup(node.id) if isinstance(node, ast.Name) else None
    if found is None:
        return isinstance(node, ast.Name) and node.id in BUILTINS
    return all(binding.kind == "import" for binding in found[1])


def family_of(info: ClassInfo, project: Project) -> frozenset[ClassInfo]:
    """Return the other bases of a class, and of those that extend it: where `super()` may lead."""
    return frozenset(base for each in (info, *project.below(info)) for base in project.ancestors_of(each)) - {info}


def _is_read(function: Function) -> bool:
    """Return whether a method is read or set like an attribute."""
    return is_property(function) or any(tail_of(d) in {"setter", "deleter"} for d in function.decorator_list)
