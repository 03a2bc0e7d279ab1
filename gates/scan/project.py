"""A program: its modules, classes and functions, found by their names across files."""

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TypeVar

from gates.scan.alternatives import Alternatives
from gates.scan.classes import CONSTRUCTORS, ClassInfo, sets, stored_in
from gates.scan.known import LIBRARIES, canonical
from gates.scan.module import Binding, Function, Module, definitions, tail_of
from gates.scan.nodes import walk
from gates.scan.scope import BUILTINS, MAX_HOPS, Scope
from gates.scan.types import Types

T = TypeVar("T")
MAX_NAMES = 200


def _is_of_head(node: ast.AST, function: ast.AST) -> bool:
    """Return whether a node is a decorator, a default or an annotation of a function, read where that is defined."""
    if isinstance(node, ast.arguments):
        return True
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return node is function.returns or node in function.decorator_list


class Project:
    """All modules of a program, and where their names lead."""

    _scopes: dict[ast.AST, Scope]
    _names: dict[ast.AST, str]
    classes: dict[str, ClassInfo]
    functions: dict[str, tuple[Function, Module]]

    def __init__(self, modules: Iterable[Module], unparsed: Iterable[str] = ()) -> None:
        self.modules = {module.path: module for module in modules}
        self.unparsed = tuple(unparsed)
        self.by_name = {module.name: module for module in self.modules.values()}
        self._packages = {m.name for m in self.modules.values() if m.path.endswith("__init__.py")}
        self._folders = {part for name in self.by_name for part in self._tops(name)}
        self._suffixes: dict[str, list[Module]] = defaultdict(list)
        for module in self.modules.values():
            parts = module.name.split(".")
            for at in range(1, len(parts)):
                self._suffixes[".".join(parts[at:])].append(module)
        self._canonical: dict[tuple[str, str], str] = {}
        self._starred: dict[tuple[str, str], str | None] = {}
        self._family: dict[ClassInfo, list[ClassInfo]] = {}
        self._ancestors: dict[ClassInfo, tuple[ClassInfo, ...]] = {}
        self._line: dict[ClassInfo, tuple[frozenset[ClassInfo] | None, frozenset[str | None]]] = {}
        self._settings: dict[tuple[ast.AST, str], frozenset[str]] = {}
        self._renamed: dict[str, frozenset[str] | None] = {}
        self._found: dict[object, tuple[object, ...]] = {}
        self.types = Types(self)
        self.alternatives = Alternatives(self)

    def __getattr__(self, name: str) -> object:
        """Make the tables of definitions where one is first asked for: in most files no name is looked up."""
        if name not in {"_scopes", "_names", "classes", "functions"}:
            raise AttributeError(name)
        self._scopes, self._names, self.classes, self.functions = {}, {}, {}, {}
        for module in self.modules.values():
            self._index(module)
        return self.__dict__[name]

    def _index(self, module: Module) -> None:
        top = Scope(self, module)
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
                inner = Scope(self, module, child, scope, owner)
                self._scopes[child] = inner
                if not isinstance(child, ast.Lambda):
                    self.functions.setdefault(name, (child, module))
                    if owner:
                        owner.methods.setdefault(child.name, child)
                stack.append((child, inner, name, None))

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

    def is_foreign(self, dotted: str) -> bool:
        """Return whether a full name is one of a library, which has no part of the program."""
        first = dotted.partition(".")[0]
        return bool(first) and first not in self._parts

    @cached_property
    def _parts(self) -> frozenset[str]:
        return frozenset(part for name in self.by_name for part in name.split("."))

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

    def _tops(self, name: str) -> Iterator[str]:
        """Yield the folders on the way to a module that are in no package: those that an import may begin with."""
        parts = name.split(".")[:-1]
        yield from (part for at, part in enumerate(parts) if ".".join(parts[:at]) not in self._packages)

    def find_module(self, name: str, near: Module) -> Module | None:
        """Return a module by its name: from the root, beside the one that asks, or the only one that ends so."""
        if name in self.by_name:
            return self.by_name[name]
        first = name.partition(".")[0]
        if self._is_foreign(first, near):
            return None
        beside = f"{near.package}.{name}" if near.package else name
        if beside in self.by_name:
            return self.by_name[beside]
        if first in sys.stdlib_module_names:
            return None
        found = self._suffixes.get(name, [])
        return found[0] if len(found) == 1 else None

    def _is_foreign(self, first: str, near: Module) -> bool:
        """Return whether an import means a library, and not a package's own `torch.py` or `logging.py`."""
        if first in LIBRARIES:
            return first not in self._folders
        return first in sys.stdlib_module_names and near.package in self._packages

    def canonical(self, dotted: str, near: Module) -> str:
        """Return the name under which something is defined, re-exports followed."""
        key = (dotted, near.package)
        if key not in self._canonical:
            self._canonical[key] = dotted  # a circle ends here
            self._canonical[key] = self._followed(dotted, near, MAX_HOPS)
        return self._canonical[key]

    def _followed(self, dotted: str, near: Module, hops: int) -> str:
        parts = dotted.split(".")
        for at in range(len(parts), 0, -1):
            module = self.find_module(".".join(parts[:at]), near)
            if module is None:
                continue
            rest = parts[at:]
            if not rest:
                return module.name
            named = self._scopes[module.tree]._name(rest[0], hops) if rest[0] in module.bindings else None  # noqa: SLF001
            named = named or self.starred(rest[0], module) or f"{module.name}.{rest[0]}"
            return canonical(".".join([named, *rest[1:]]))
        return canonical(dotted)

    def starred(self, name: str, module: Module) -> str | None:
        """Return the full name of what came with `import *`."""
        key = (name, module.path)
        if module.stars and key not in self._starred:
            self._starred[key] = None  # a circle gives nothing
            self._starred[key] = self._from_stars(name, module)
        return self._starred.get(key)

    def _from_stars(self, name: str, module: Module) -> str | None:
        found = [(star, self.find_module(star, module)) for star in module.stars]
        for _, source in found:
            if source is not None and source is not module and (name in source.bindings or source.stars):
                named = self._scopes[source.tree]._name(name, MAX_HOPS - 1) if name in source.bindings else None  # noqa: SLF001
                named = named or self.starred(name, source)
                if named is not None:
                    return named
        outside = [star for star, source in found if source is None]
        if len(outside) == 1 and name not in BUILTINS and name not in module.bindings:
            return canonical(f"{outside[0]}.{name}")
        return None

    def method(self, owner: ClassInfo, name: str, hops: int = MAX_HOPS) -> tuple[Function, Module, ClassInfo] | None:
        """Return a method, bases followed."""
        if owner.twice:
            return None
        if name in owner.methods:
            return owner.methods[name], owner.scope.module, owner
        for base in owner.bases if hops else ():
            found = self.classes.get(base or "")
            inherited = self.method(found, name, hops - 1) if found else None
            if inherited:
                return inherited
        return None

    @cached_property
    def by_method(self) -> "dict[str, list[ClassInfo]]":
        """Return the classes that define a method, by its name, and those that inherit it."""
        found: dict[str, list[ClassInfo]] = defaultdict(list)
        for info in self.classes.values():
            for name in {n for each in (info, *self.ancestors_of(info)) for n in each.methods}:
                found[name].append(info)
        return dict(found)

    def ancestors_of(self, info: ClassInfo) -> tuple[ClassInfo, ...]:
        """Return the program's classes that a class extends."""
        if info not in self._ancestors:
            self._ancestors[info] = tuple(self._above(info, MAX_HOPS))
        return self._ancestors[info]

    def _above(self, info: ClassInfo, hops: int) -> list[ClassInfo]:
        bases = [self.classes[base] for base in info.bases if base in self.classes] if hops else []
        return [*bases, *(further for base in bases for further in self._above(base, hops - 1))]

    def may_be(self, info: ClassInfo, wanted: ClassInfo) -> bool:
        """Return whether a class may be or extend another: a base that is not known may be the other by its name."""
        if info not in self._line:
            line = frozenset((info, *self.ancestors_of(info)))
            unknown = {base for each in line for base in each.bases if base not in self.classes}
            names = frozenset(base and base.rpartition(".")[2] for base in unknown)
            self._line[info] = (None if any(each.twice for each in line) or None in names else line, names)
        line_of, others = self._line[info]
        return line_of is None or wanted in line_of or wanted.node.name in others

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
            found = self.classes.get(base or "")
            inherited = self.attribute(found, name, hops - 1) if found else []
            if inherited:
                return inherited
        return []

    def is_reset(self, owner: ClassInfo, name: str) -> bool:
        """Return whether code other than the constructor sets an attribute of a class's instances."""
        if name in self._set_outside:
            return True
        if owner not in self._family:
            near = dict.fromkeys((owner, *self.ancestors_of(owner), *self.below(owner)))
            self._family[owner] = [info for info in near if self._is_related(info, owner)]
        return any(sets(info, name) for info in self._family[owner])

    def attributes_set(self, function: ast.AST, owner: ClassInfo, depth: int = 3) -> frozenset[str]:
        """Return the attributes that a method sets on its instance, itself or in the methods that it calls."""
        key = (function, owner.name)
        if key not in self._settings:
            self._settings[key] = frozenset()  # a circle sets nothing more
            found = stored_in(function)
            for call in walk(function) if depth else ():
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                    own = isinstance(call.func.value, ast.Name) and call.func.value.id == "self"
                    method = self.method(owner, call.func.attr) if own else None
                    found |= self.attributes_set(method[0], owner, depth - 1) if method else frozenset()
            self._settings[key] = frozenset(found)
        return self._settings[key]

    def _is_related(self, info: ClassInfo, owner: ClassInfo) -> bool:
        """Return whether one of two classes is, or extends, the other."""
        if info is owner:
            return True
        return True in {self.types.is_a(info.name, owner.name), self.types.is_a(owner.name, info.name)}

    @cached_property
    def _set_outside(self) -> frozenset[str]:
        """Return the attributes that code sets on something other than the instance of the method around it."""
        found: set[str] = set()
        for module in self.modules.values():
            for node in module.live.get(ast.Attribute, []):
                stored = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
                if stored and isinstance(node, ast.Attribute) and tail_of(node.value) != "self":
                    found.add(node.attr)
            for call in module.calls.get("setattr", []):
                found |= {str(arg.value) for arg in call.args[1:2] if isinstance(arg, ast.Constant)}
        return frozenset(found)

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
    def extended(self) -> frozenset[str]:
        """Return the full names of the classes that others extend."""
        return frozenset(base for info in self.classes.values() for base in info.bases if base)

    @cached_property
    def extending(self) -> dict[str, list[ClassInfo]]:
        """Return the classes that extend a class, by its full name."""
        found: dict[str, list[ClassInfo]] = defaultdict(list)
        for info in self.classes.values():
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


__all__ = ["CONSTRUCTORS", "ClassInfo", "Project", "tail_of"]
