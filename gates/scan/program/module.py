"""One file of a program: what its names are bound to, and which of its nodes can run."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Self

from gates.code.meanings import star_imports
from gates.code.syntax import Definition, SourceModule, imported, live_statements, origin
from gates.scan.program.nodes import DEFINED, DEFINITIONS, A, chain_of, live_nodes_of, walk
from gates.words import grouped

Function = ast.FunctionDef | ast.AsyncFunctionDef
STANDING = (ast.Name, ast.Attribute, ast.Call, ast.IfExp, ast.Tuple, ast.List)
ASSIGNING = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor)
REGISTERS = {"setattr", "__setattr__", "add_module", "register_module", "register_buffer", "register_parameter"}
MAX_CALLS = 4  # from function to function


def name_of(path: str) -> str:
    """Return the dotted name of a file, from the root of the project."""
    return package_of(path) if path.endswith("__init__.py") else path.removesuffix(".py").replace("/", ".")


def package_of(path: str) -> str:
    """Return the package that the imports of a file are relative to."""
    return ".".join(path.split("/")[:-1])


class Binding(NamedTuple):
    """One way that a name gets its meaning.

    `kind` is import (`dotted`), define (`node`), value (`node`), item (`node` unpacked `at` an index), enter (`node` is
    a context), parameter (`node` is its annotation), or opaque.
    """

    kind: str
    node: ast.AST | None = None
    dotted: str = ""
    at: int = 0


@dataclass(frozen=True, eq=False)
class Module(SourceModule):
    """A file of a program; path, dotted name and the package that its imports are relative to are from its root."""

    name: str = ""
    package: str = ""
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)

    @classmethod
    def of(cls, source: SourceModule) -> Self:
        """Return a parsed file as one of a program."""
        return cls(source.path, source.tree, source.aliases, name_of(source.path), package_of(source.path))

    @cached_property
    def bindings(self) -> dict[str, list[Binding]]:
        """Return what each name of the module is bound to, statement by statement."""
        return self.bound_in(self.tree)

    def bound_in(self, around: Function | ast.Lambda | ast.Module) -> dict[str, list[Binding]]:
        """Return what a function or the file binds, its parameters and blocks too, definitions unopened."""
        found: dict[str, list[Binding]] = defaultdict(list)
        own = [] if isinstance(around, ast.Module) else [*_parameters(around.args)]
        for node in () if isinstance(around, ast.Lambda) else live_statements(around.body):
            own += _bound(node, self.package)
        for name, binding in own:
            found[name].append(binding)
        for name, binding in () if isinstance(around, ast.Module) else self._bound_inside.get(around, ()):
            if binding.kind == "value" or name not in found:
                found[name].append(binding)
        return dict(found)

    @cached_property
    def _bound_inside(self) -> dict[ast.AST, list[tuple[str, Binding]]]:
        """Return by function what its expressions bind: `:=`, and comprehensions."""
        found: dict[ast.AST, list[tuple[str, Binding]]] = defaultdict(list)
        for node in (*self.live.get(ast.NamedExpr, ()), *self.live.get(ast.comprehension, ())):
            around = next((each for each in self.ancestors(node) if isinstance(each, DEFINITIONS)), node)
            if isinstance(node, ast.NamedExpr):
                found[around].append((node.target.id, Binding("value", node.value)))
            elif isinstance(node, ast.comprehension):
                found[around] += _opaque(node.target)
        return found

    @cached_property
    def stars(self) -> list[str]:
        """Return the modules that are imported wholesale."""
        return [origin(node, self.package) for node in star_imports(self.tree.body)]

    @cached_property
    def live(self) -> dict[type[ast.AST], list[ast.AST]]:
        """Return every node that can run, by its type, in the order of the source; fills `parents`."""
        return live_nodes_of(self.tree, self.parents)

    def nodes(self, kind: type[A]) -> list[A]:
        """Return the live nodes of a type."""
        return self.live.get(kind, [])  # type: ignore[return-value]  # kept by their type

    @cached_property
    def calls(self) -> dict[str, list[ast.Call]]:
        """Return the live calls by the last name that they are written with."""
        return dict(grouped(self.nodes(ast.Call), lambda node: tail_of(node.func)))

    @cached_property
    def mentions(self) -> dict[str, list[ast.Name | ast.Attribute]]:
        """Return where live code mentions a name, the last part of a dotted one, also as what it is imported as."""
        found: dict[str, list[ast.Name | ast.Attribute]] = defaultdict(list)
        for node in self.nodes(ast.Name):
            for name in {node.id, self.aliases.get(node.id, node.id).rpartition(".")[2]}:
                found[name].append(node)
        for attribute in self.nodes(ast.Attribute):
            found[attribute.attr].append(attribute)
        return found

    @cached_property
    def renames(self) -> dict[str, set[str]]:
        """Return for each name those that imports give it, and those that are set to what may stand for the same."""
        found: dict[str, set[str]] = defaultdict(set)
        for alias, dotted in self.aliases.items():
            found[dotted.rpartition(".")[2]].add(alias)
        for kind in (ast.Assign, ast.AnnAssign, ast.NamedExpr):
            for node in self.nodes(kind):
                value: ast.expr | None = getattr(node, "value", None)
                if not isinstance(value, STANDING):
                    continue
                targets: list[ast.expr] = getattr(node, "targets", None) or [node.target]  # type: ignore[attr-defined]  # one of these
                for name in set(_standing_for(value)):
                    found[name] |= {tail_of(inner) for target in targets for inner in walk(target)} - {""}
        return dict(found)

    @cached_property
    def uses(self) -> frozenset[str]:
        """Return the names of its code and imports, `f()` for a call of f, `a=` for an attribute that it sets."""
        attributes = self.nodes(ast.Attribute)
        found = {node.id for node in self.nodes(ast.Name)} | {node.attr for node in attributes}
        found.update(f"{node.attr}=" for node in attributes if not isinstance(node.ctx, ast.Load))
        found.update(f"{name}()" for name in self.calls)
        dotted = (binding.dotted for bindings in self.bindings.values() for binding in bindings)
        return frozenset(found.union(*(name.split(".") for name in (*dotted, *self.aliases.values()))))

    @cached_property
    def stores(self) -> frozenset[str]:
        """Return the attributes that code sets on anything but `self`, or by name."""
        stored = (node for node in self.nodes(ast.Attribute) if not isinstance(node.ctx, ast.Load))
        found = {node.attr for node in stored if chain_of(node.value) != "self"}
        calls = (call for name in REGISTERS for call in self.calls.get(name, ()))
        return frozenset(found.union(str(a.value) for call in calls for a in call.args if isinstance(a, ast.Constant)))

    def leading(self, word: str) -> frozenset[str]:
        """Return the functions and classes in which live code mentions a name, or one of these."""
        found, todo = set[str](), {word}
        for _ in range(MAX_CALLS):
            nodes = (node for name in todo for node in self.mentions.get(name, ()))
            around = (each for node in nodes for each in self.ancestors(node))
            todo = {each.name for each in around if isinstance(each, DEFINED)} - found
            found |= todo
        return frozenset(found)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what a live node stands in, from the inside out."""
        _ = self.live
        while node in self.parents:
            node = self.parents[node]
            yield node


def tail_of(node: ast.AST) -> str:
    """Return the last name of `a.b.c`, or nothing."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def names_of(node: ast.AST) -> list[str]:
    """Return what an object may be said to be called: its name, the key that it stands under, its container."""
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return [*([key] if isinstance(key, str) else []), *names_of(node.value)]
    if isinstance(node, ast.Call):
        return names_of(node.func)
    return [tail_of(node)] if isinstance(node, ast.Name | ast.Attribute) else []


def _standing_for(value: ast.expr) -> Iterator[str]:
    """Yield the names that a variable may stand for once it is set to a value: `a.b`, `a if x else b`, `partial(a)`."""
    if isinstance(value, ast.Name | ast.Attribute):
        yield tail_of(value)
    elif isinstance(value, ast.Call):
        yield from _standing_for(value.args[0]) if value.args else ()
    elif isinstance(value, ast.IfExp):
        yield from (*_standing_for(value.body), *_standing_for(value.orelse))
    elif isinstance(value, ast.Tuple | ast.List):
        yield from (name for part in value.elts for name in _standing_for(part))


def _parameters(arguments: ast.arguments) -> Iterator[tuple[str, Binding]]:
    yield from ((star.arg, Binding("opaque")) for star in filter(None, (arguments.vararg, arguments.kwarg)))
    for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        yield arg.arg, Binding("parameter", arg.annotation)


def _bound(node: ast.stmt, package: str) -> Iterator[tuple[str, Binding]]:  # noqa: C901  # a case for each
    if isinstance(node, Definition):
        yield node.name, Binding("define", node)
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from ((name, Binding("import", dotted=dotted)) for name, dotted in imported(node, package))
    elif isinstance(node, ast.AnnAssign) and node.value is None:
        if isinstance(node.target, ast.Name):
            yield node.target.id, Binding("parameter", node.annotation)
    elif isinstance(node, ast.With | ast.AsyncWith):
        for item in node.items:
            if isinstance(item.optional_vars, ast.Name):
                yield item.optional_vars.id, Binding("enter", item.context_expr)
            elif item.optional_vars:
                yield from _opaque(item.optional_vars)
    elif isinstance(node, ASSIGNING):
        for target, binding in assigned(node):
            if isinstance(target, ast.Name):
                yield target.id, binding
            elif not isinstance(target, ast.Attribute):
                yield from _opaque(target)


def assigned(node: ast.AST) -> Iterator[tuple[ast.expr, Binding]]:
    """Yield what an assignment or a loop sets, the parts of a tuple one by one, each with what it is set to."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _apart(target, node.value)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, Binding("value", node.value)
    elif isinstance(node, ast.AugAssign | ast.For | ast.AsyncFor):
        yield from _apart(node.target, None)


def _apart(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.expr, Binding]]:
    if not isinstance(target, ast.Tuple | ast.List):
        yield target, Binding("value", value) if value is not None else Binding("opaque")
        return
    parts = value.elts if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts) else None
    for at, inner in enumerate(target.elts):
        if parts is not None or value is None:
            yield from _apart(inner, parts[at] if parts else None)
        else:
            yield inner, Binding("item", value, at=at)


def _opaque(target: ast.expr) -> Iterator[tuple[str, Binding]]:
    for each in walk(target):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            yield each.id, Binding("opaque")
