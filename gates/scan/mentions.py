"""Where a program mentions its names, and what each mention may mean; made once for all rules of order."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from gates.scan.module import Function, Module, tail_of
from gates.scan.project import ClassInfo, Project
from gates.scan.scope import Scope


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
    def aliases(self) -> list[str]:
        """Return the variables that are set to what it names, directly, in a choice or in a partial."""
        here: ast.AST | None = self.node
        while here is not None:
            around = self.module.parents.get(here)
            if isinstance(around, ast.Assign):
                return [tail_of(t) for t in around.targets if tail_of(t) and tail_of(t) != tail_of(self.node)]
            is_partial = isinstance(around, ast.Call) and around.func is not here and tail_of(around.func) == "partial"
            here = around if isinstance(around, ast.IfExp) or is_partial else None
        return []

    @cached_property
    def _named(self) -> Function | None:
        named = self.scope.dotted(self.node)
        return self.project.functions[named][0] if named in self.project.functions else None

    @cached_property
    def _is_of_module(self) -> bool:
        return isinstance(self.node, ast.Attribute) and self.project.is_module(self.node.value, self.scope)

    @cached_property
    def _owner(self) -> ClassInfo | None:
        return self.scope.class_of(self.node.value) if isinstance(self.node, ast.Attribute) else None

    @cached_property
    def _method(self) -> Function | None:
        found = self.project.method(self._owner, tail_of(self.node)) if self._owner else None
        return found[0] if found else None

    @cached_property
    def is_open(self) -> bool:
        """Return whether it may mean any method of its name: of `super()`, or of an object of unknown class."""
        if self._owner is not None or not isinstance(self.node, ast.Attribute):
            return False
        value = self.node.value
        if isinstance(value, ast.Call) and tail_of(value.func) == "super":
            return True
        return self.project.types.of(value, self.scope) is None and isinstance(value, ast.Name | ast.Attribute)

    @cached_property
    def _bound(self) -> tuple[bool, bool, frozenset[ast.AST]]:
        """Return of a name whether it is bound, whether to what may be any function, and what else it is bound to."""
        found = self.scope.lookup(tail_of(self.node))
        bindings = found[1] if found else []
        loose = any(b.kind in {"import", "value"} for b in bindings)
        return found is not None, loose, frozenset(b.node for b in bindings if b.node is not None)

    @property
    def sense(self) -> tuple[object, ...]:
        """Return what decides of it which functions it means; two mentions of one name that agree mean the same."""
        if isinstance(self.node, ast.Name):
            return (*self._bound, bool(self.module.stars))
        return (self._named, self._is_of_module, self._owner, self._method, self.is_open)

    def means(self, function: Function, owner: ClassInfo | None) -> bool:
        """Return whether it may mean a function, that of a class where an owner is named."""
        if isinstance(self.node, ast.Name):
            bound, loose, nodes = self._bound
            if not bound or owner is not None:
                return not bound and bool(self.module.stars) and owner is None
            return loose or function in nodes
        if self._named is function:
            return True
        if owner is None:
            return self._is_of_module
        if self._owner is None:
            return self.is_open
        if self._method is None or self._method is function:
            return True
        return self.project.types.is_a(owner.name, self._owner.name) is not False


class Sense:
    """Mentions of one name that mean the same."""

    def __init__(self, mentions: list[Mention]) -> None:
        self.mentions = mentions
        self.first = mentions[0]

    @cached_property
    def arounds(self) -> frozenset[ast.AST]:
        """Return the functions and modules that they stand in."""
        return frozenset(mention.around for mention in self.mentions)

    @cached_property
    def aliases(self) -> tuple[str, ...]:
        """Return the variables that are set to what they name."""
        return tuple(dict.fromkeys(alias for mention in self.mentions for alias in mention.aliases))


class Mentions:
    """The mentions of a program by their last names."""

    def __init__(self, project: Project) -> None:
        self.named: dict[str, list[Mention]] = defaultdict(list)
        self.renamed: dict[str, set[str]] = defaultdict(set)
        self._senses: dict[str, tuple[Sense, ...]] = {}
        self._meaning: dict[str, tuple[Mention, ...]] = {}
        for module in project.modules.values():
            own: dict[str, list[Mention]] = defaultdict(list)
            for node in (*module.live.get(ast.Name, []), *module.live.get(ast.Attribute, [])):
                if isinstance(node, ast.Name | ast.Attribute):
                    mention = Mention(node, module, project)
                    self.named[tail_of(node)].append(mention)
                    if isinstance(node, ast.Name):
                        own[node.id].append(mention)
            self._follow_imports(module, own)

    def _follow_imports(self, module: Module, own: dict[str, list[Mention]]) -> None:
        """List what is imported under another name by the name that it has where it comes from."""
        for name, bindings in module.bindings.items():
            for binding in bindings:
                if binding.kind == "import":
                    last = binding.dotted.rpartition(".")[2]
                    self.renamed[last].add(name)
                    if last != name:
                        self.named[last] += own.get(name, [])

    def of(self, name: str) -> list[Mention]:
        """Return the mentions of a name, those under another that an import gives it too."""
        return self.named.get(name, [])

    def senses(self, name: str) -> tuple[Sense, ...]:
        """Return the mentions of a name by what they mean; of thousands most mean the same."""
        if name not in self._senses:
            found: dict[tuple[object, ...], list[Mention]] = defaultdict(list)
            for mention in self.of(name):
                found[(type(mention.node), *mention.sense)].append(mention)
            self._senses[name] = tuple(map(Sense, found.values()))
        return self._senses[name]

    def meaning(self, tail: str) -> tuple[Mention, ...]:
        """Return where a name of a library's is mentioned, under whatever other name it goes."""
        if tail not in self._meaning:
            self._meaning[tail] = (*self.of(tail), *self._otherwise(tail))
        return self._meaning[tail]

    def _otherwise(self, tail: str) -> Iterator[Mention]:
        names, todo = {tail}, [tail]
        while todo:
            name = todo.pop()
            others = {alias for mention in self.of(name) for alias in mention.aliases}
            for other in (others | self.renamed.get(name, set())) - names:
                names.add(other)
                todo.append(other)
                for mention in self.of(other):
                    dotted = mention.scope.dotted(mention.node)
                    if dotted is not None and dotted.endswith(f".{tail}"):
                        yield mention


def mentions_of(project: Project) -> Iterator[Mentions]:
    """Yield the mentions of a program, for `Project.once`."""
    yield Mentions(project)
