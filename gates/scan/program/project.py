"""A program: its modules, classes and functions, found by their names across files."""

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property

from gates.code.syntax import parse
from gates.scan.program.known import LIBRARIES, canonical
from gates.scan.program.module import Binding, Function, Module, name_of, package_of
from gates.scan.program.nodes import definitions, kept, walk
from gates.scan.program.scope import BUILTINS, CONSTRUCTORS, MAX_HOPS, ClassInfo, Scope, stored
from gates.scan.program.types import Types

SCOPED = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda})
Load = Callable[[str], Module | None]
Mentions = Callable[[str, Collection[str]], bool]  # whether a file may have one of some words


class Project:
    """All modules of a program, each loaded when a name leads to it; `modules` are those to search, by default all."""

    def __init__(
        self, paths: Collection[str], load: Load, main: Collection[str] | None = None, mentions: Mentions | None = None
    ) -> None:
        self._paths, self._mentions, self._load = paths, mentions, load
        self._main = paths if main is None else main
        self.by_name = {name_of(path): path for path in paths}
        self._loaded: dict[str, Module | None] = {}
        self._names_for: dict[str, set[str]] = {}
        self._scopes: dict[ast.AST, Scope] = {}
        self._names: dict[ast.AST, str] = {}
        self.classes: dict[str, ClassInfo] = {}
        self.functions: dict[str, tuple[Function, Module]] = {}
        self.method_names: Counter[str] = Counter()  # how many classes have a method of a name
        self._canonical: dict[tuple[str, str], str] = {}
        self._starred: dict[tuple[str, str], str | None] = {}
        self._orders: dict[ClassInfo, list[ClassInfo]] = {}
        self._settings: dict[tuple[ast.AST, str], frozenset[str]] = {}
        self.types = Types(self)
        self._packages = {name for name, path in self.by_name.items() if path.endswith("__init__.py")}
        self._folders = {part for name in self.by_name for part in self._tops(name)}
        self._suffixes: dict[str, list[str]] = defaultdict(list)
        for name, path in self.by_name.items():
            parts = name.split(".")
            for at in range(1, len(parts)):
                self._suffixes[".".join(parts[at:])].append(path)

    def close(self) -> None:
        """Let go of all trees: to search for what holds itself among them takes longer than to read them."""
        for info in self.classes.values():
            info.__dict__.clear()
        self.__dict__.clear()

    def fresh(self) -> "Project":
        """Return the same program, of which nothing is known yet."""
        return Project(self._paths, self._load, self._main, self._mentions)

    def module(self, path: str) -> Module | None:
        """Return a file of the program; nothing for one that cannot be read."""
        if path not in self._loaded:
            module = self._loaded[path] = self._load(path)
            if module is not None:
                self._index(module)
        return self._loaded[path]

    @cached_property
    def modules(self) -> dict[str, Module]:
        """Return the files that are searched, by their paths."""
        return {path: module for path in self._main if (module := self.module(path)) is not None}

    def mentioning(self, words: Collection[str]) -> list[Module]:
        """Return the files in which one of some words may stand."""
        found = (self.module(path) for path in self._paths if not self._mentions or self._mentions(path, words))
        return [module for module in found if module is not None]

    def is_module(self, node: ast.expr, scope: Scope) -> bool:
        """Return whether an expression names a module rather than an object."""
        if isinstance(node, ast.Name):
            imported = [binding.dotted for binding, _ in scope.lookup(node.id) if binding.kind == "import"]
            if not imported or node.id in imported:
                return bool(imported)
        named = scope.dotted(node)
        if isinstance(node, ast.Attribute) and named is not None and named.startswith("torch."):
            return named == named.lower()  # a part of the library itself
        return named is not None and named in self.by_name

    def names_for(self, word: str) -> set[str]:
        """Return the names that code may write for what ends in a word: those that imports and assignments give it."""
        if word not in self._names_for:
            found, edge = set[str](), {word}
            while edge:
                found |= edge
                given = (module.renames.get(name, ()) for module in self.modules.values() for name in edge)
                edge = set().union(*given) - found
            self._names_for[word] = found
        return self._names_for[word]

    def _index(self, module: Module) -> None:
        """Take in what a module defines."""
        top = Scope(self, module)
        self._scopes[module.tree] = top
        stack: list[tuple[ast.AST, Scope, str, ClassInfo | None]] = [(module.tree, top, module.name, None)]
        while stack:
            node, scope, prefix, owner = stack.pop()
            for child in kept(node, definitions):
                name = f"{prefix}.{child.name}"
                self._names[child] = name
                if isinstance(child, ast.ClassDef):
                    info = ClassInfo(name, child, scope, twice=name in self.classes)
                    self.classes.setdefault(name, info).twice |= info.twice
                    stack.append((child, scope, name, info))
                    continue
                inner = Scope(self, module, child, scope, owner)
                self._scopes[child] = inner
                self.functions.setdefault(name, (child, module))
                if owner and child.name not in owner.methods:
                    owner.methods[child.name] = child
                    self.method_names[child.name] += self.classes[owner.name] is owner
                stack.append((child, inner, name, None))

    def scope_of(self, node: ast.AST, module: Module) -> Scope:
        """Return the scope of a function's body, or of the module."""
        if isinstance(node, ast.Lambda) and node not in self._scopes:
            self._scopes[node] = Scope(self, module, node, self.scope_at(node, module))
        return self._scopes.get(node) or self._scopes[module.tree]

    def scope_at(self, node: ast.AST, module: Module) -> Scope:
        """Return the scope that a live node stands in."""
        _, parents = module.live, module.parents  # which the walk of what is live fills
        inside, around = node, parents.get(node)
        while around is not None:
            if type(around) in SCOPED and not _is_of_head(inside, around):
                return self.scope_of(around, module)
            inside, around = around, parents.get(around)
        return self._scopes[module.tree]

    def qualified(self, node: ast.AST, scope: Scope) -> str:
        """Return the full name of a definition."""
        return self._names.get(node) or f"{scope.module.name}.{getattr(node, 'name', '')}"

    def find_module(self, name: str, near: Module) -> Module | None:
        """Return a module by its name: from the root, beside the one that asks, or the only one that ends so."""
        return self.module(path) if (path := self._path(name, near)) is not None else None

    def _path(self, name: str, near: Module) -> str | None:
        if name in self.by_name:
            return self.by_name[name]
        first = name.partition(".")[0]
        if self._means_library(first, near):
            return None
        beside = f"{near.package}.{name}" if near.package else name
        if beside in self.by_name:
            return self.by_name[beside]
        if first in sys.stdlib_module_names:
            return None
        found = self._suffixes.get(name, [])
        return found[0] if len(found) == 1 else None

    def _means_library(self, first: str, near: Module) -> bool:
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
            if (module := self.find_module(".".join(parts[:at]), near)) is None:
                continue
            if not (rest := parts[at:]):
                return module.name
            named = self._bound(rest[0], module, hops) or self.starred(rest[0], module) or f"{module.name}.{rest[0]}"
            return canonical(".".join([named, *rest[1:]]))
        return canonical(dotted)

    def _bound(self, name: str, module: Module, hops: int) -> str | None:
        """Return the full name of what a module binds a name to."""
        return self.scope_of(module.tree, module)._name(name, hops) if name in module.bindings else None  # noqa: SLF001

    def starred(self, name: str, module: Module) -> str | None:
        """Return the full name of what came with `import *`."""
        key = (name, module.path)
        if module.stars and key not in self._starred:
            self._starred[key] = None  # a circle gives nothing
            self._starred[key] = self._from_stars(name, module)
        return self._starred.get(key)

    def _from_stars(self, name: str, module: Module) -> str | None:
        found = [(star, self.find_module(star, module)) for star in module.stars]
        sources = (source for _, source in found if source is not None and source is not module)
        for source in (each for each in sources if name in each.bindings or each.stars):
            if named := self._bound(name, source, MAX_HOPS - 1) or self.starred(name, source):
                return named
        outside = [star for star, source in found if source is None]
        is_from_there = len(outside) == 1 and name not in BUILTINS and name not in module.bindings
        return canonical(f"{outside[0]}.{name}") if is_from_there else None

    def _tops(self, name: str) -> Iterator[str]:
        """Yield the folders on the way to a module that are in no package: those that an import may begin with."""
        parts = name.split(".")[:-1]
        yield from (part for at, part in enumerate(parts) if ".".join(parts[:at]) not in self._packages)

    def order_of(self, info: ClassInfo) -> list[ClassInfo]:
        """Return a class and the program's classes that it extends, in the order in which members are looked up."""
        if info not in self._orders:
            found = [info, *self._above(info, MAX_HOPS)]
            self._orders[info] = [each for at, each in enumerate(found) if each not in found[at + 1 :]]
        return [] if info.twice else [each for each in self._orders[info] if not each.twice]

    def _above(self, info: ClassInfo, hops: int) -> list[ClassInfo]:
        bases = [self.classes[base] for base in info.bases if base in self.classes] if hops else []
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
        for info in list(self.classes.values()):
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
        methods = [m for info in list(self.classes.values()) for m in info.methods.items()]
        own = (kept(method, stored) for name, method in methods if name not in CONSTRUCTORS)
        return frozenset().union(*own, *(module.stores for module in self.modules.values()))

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


def _is_of_head(node: ast.AST, function: ast.AST) -> bool:
    """Return whether a node is a decorator, a default or an annotation of a function, read where that is defined."""
    if isinstance(node, ast.arguments):
        return True
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return node is function.returns or node in function.decorator_list


def project_of(contents: Mapping[str, bytes]) -> Project:
    """Parse files by their paths relative to the root; raise `Unparsed` with the place and the reason."""
    modules = {path: module_of(path, raw) for path, raw in contents.items()}
    return Project(modules, modules.get)


def module_of(path: str, raw: bytes) -> Module:
    """Parse one file; raise `Unparsed` with the place and the reason."""
    return Module.of(parse(raw, path, package_of(path)))
