"""The methods of a program's classes: by name, with what extends them, and those that a library may call."""

import ast
from collections import defaultdict
from collections.abc import Iterator

from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Module
from gates.scan.program.project import Project
from gates.stub import last_name

Unit = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
BUILT_BY = ("__new__", "__init__", "__post_init__")
# What these call of their own accord is known: special methods, and those that are named here.
QUIET = {
    "torch.nn.Module": {"forward"},
    "torch.autograd.Function": {"forward", "backward"},
    "torch.utils.data.Dataset": set(),
    "torch.utils.data.IterableDataset": set(),
    "object": set(),
    "abc.ABC": set(),
    "typing.Protocol": set(),
    "typing.Generic": set(),
    "typing.NamedTuple": set(),
    "enum.Enum": set(),
    "Exception": set(),
    "ValueError": set(),
    "RuntimeError": set(),
}


class Members:
    """Looks methods up, inherited ones and those of classes that extend theirs."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self.named: dict[str, list[Function]] = defaultdict(list)
        self.owner: dict[Unit, ClassInfo] = {}
        self._below: dict[str, list[ClassInfo]] = defaultdict(list)
        self._info = {info.node: info for info in project.classes.values()}
        for info in project.classes.values():
            for name, method in info.methods.items():
                self.named[name].append(method)
                self.owner[method] = info
            for base in info.bases:
                self._below[base or ""].append(info)
        self._twins: dict[str, list[Unit]] = defaultdict(list)
        for module in project.modules.values():
            for node in (n for kind in (ast.FunctionDef, ast.AsyncFunctionDef) for n in module.live.get(kind, [])):
                assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                self._twins[project.qualified(node, project.scope_of(module.tree, module))].append(node)
                if node not in self.owner:
                    self.named[node.name].append(node)

    def twins(self, name: str) -> list[Unit]:
        """Return every definition of a function's full name: one in each branch of an `if`, say."""
        return self._twins.get(name, [])

    def of(self, owner: ClassInfo, names: tuple[str, ...]) -> Iterator[Unit]:
        """Yield what a call of a method on an object of a class, or of one that extends it, may run."""
        for name in names:
            found = self._project.method(owner, name)
            if found:
                yield found[0]
            yield from (info.methods[name] for info in self.extending(owner) if name in info.methods)

    def beside(self, owner: ClassInfo | None, name: str) -> Iterator[Unit]:
        """Yield what `super()` may come to beside what a class itself extends: other bases of those that extend it."""
        for info in self.extending(owner) if owner else ():
            for base in info.bases:
                other = self._project.classes.get(base or "")
                if other is not None and other is not owner:
                    yield from self.of(other, (name,))

    def meant(self, named: str | None) -> str | None:
        """Return what a package gives the name of one of its modules: `from .heading import heading`."""
        parent, _, last = (named or "").rpartition(".")
        around = self._project.by_name.get(parent) if named in self._project.by_name else None
        for binding in around.bindings.get(last, ()) if around else ():
            if around and binding.kind == "import" and binding.dotted != named:
                return self._project.canonical(binding.dotted, around)
        return named

    def built_by(self, unit: Unit) -> Iterator[Unit]:
        """Yield what runs where an object of a class is made."""
        info = self._info.get(unit) if isinstance(unit, ast.ClassDef) else None
        for name in BUILT_BY if info else ():
            found = self._project.method(info, name) if info else None
            if found:
                yield found[0]

    def is_protocol(self, owner: ClassInfo) -> bool:
        """Return whether a class only says what others must have."""
        return any((base or "").endswith("Protocol") for base in owner.bases)

    def in_body(self, node: ast.AST, name: str, module: Module) -> Iterator[Unit]:
        """Yield the method that a name stands for in the body of its class: `two = one`."""
        for around in (node, *module.ancestors(node)):
            if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                return
            if isinstance(around, ast.ClassDef) and around in self._info:
                method = self._info[around].methods.get(name)
                yield from [method] if method else []
                return

    def called_by_others(self) -> Iterator[Unit]:
        """Yield the methods that operators call, or that a library may call on what extends its classes."""
        for info in self._project.classes.values():
            bases = self._outer_bases(info)
            known = set().union(*(QUIET.get(base, set()) for base in bases))
            outside = any(base not in QUIET for base in bases)
            for name, method in info.methods.items():
                special = name.startswith("__") and name not in BUILT_BY
                if special or outside or name in known:
                    yield method

    def _outer_bases(self, info: ClassInfo) -> set[str]:
        """Return the classes that are not the program's own and that a class extends, itself or through others."""
        found: set[str] = set()
        edge, seen = [info], {info.name}
        while edge:
            for base in edge.pop().bases:
                own = self._project.classes.get(base or "")
                if own is None:
                    found.add(base or "")
                elif own.name not in seen:
                    seen.add(own.name)
                    edge.append(own)
        return found

    def extending(self, owner: ClassInfo) -> Iterator[ClassInfo]:
        """Yield the classes that extend a class, themselves or through others."""
        edge, seen = [owner.name], {owner.name}
        while edge:
            for info in self._below.get(edge.pop(), ()):
                if info.name not in seen:
                    seen.add(info.name)
                    edge.append(info.name)
                    yield info


def decorators(function: Function) -> frozenset[str]:
    """Return the last names of a function's decorators."""
    return frozenset(map(last_name, function.decorator_list))


def is_super(node: ast.expr) -> bool:
    """Return whether an expression is `super()`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
