"""What the names of a program may stand for: each by the names that it is ever given, whoever gives them."""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from gates.scan.program.known import tells
from gates.scan.program.module import Function, names_of, tail_of
from gates.scan.program.nodes import children, inner
from gates.scan.program.scope import PREPARES

if TYPE_CHECKING:
    from gates.scan.program.project import Project

HOPS = 4  # from name to name: a walk goes into few calls
HANDING = PREPARES | {"partial", "next", "iter", "zip", "enumerate", "list", "tuple", "reversed", "cast", "chain"}
OWN = frozenset({"self", "cls"})


class Flows:
    """Answers whether objects may come to a name, by assignments, arguments and what functions return."""

    def __init__(self, project: "Project") -> None:
        self._project = project
        self._known: dict[tuple[str, str], bool] = {}
        self._before: dict[str, frozenset[str]] = {}

    def may_be(self, name: str, wanted: str) -> bool:
        """Return whether an object under a name may be of a kind, by what any name that leads to it is called."""
        key = (name, wanted)
        if key not in self._known:
            self._known[key] = self.reach(name, lambda word: tells(word, wanted))
        return self._known[key]

    def reach(self, name: str, ends: Callable[[str], bool]) -> bool:
        """Return whether one of the names that lead to a name is asked for."""
        seen = edge = {name}
        for _ in range(HOPS):
            if any(map(ends, edge)):
                return True
            edge = set().union(*map(self._leading, edge)) - seen
            seen = seen | edge
        return any(map(ends, edge))

    def _leading(self, name: str) -> frozenset[str]:
        if name not in self._before:
            self._before[name] = frozenset(self._given(name)) - OWN
        return self._before[name]

    def _given(self, name: str) -> Iterator[str]:
        for module in self._project.modules.values():
            for value in module.given.get(name, ()):
                yield from _standing(value)
        for function in self._functions.get(name, ()):
            for node in inner(function, ast.Return):
                yield from _standing(node.value) if node.value else ()
        for function in self._taking.get(name, ()):
            yield from self._passed(function, name)

    def _passed(self, function: Function, name: str) -> Iterator[str]:
        """Yield what calls pass in the place of a parameter."""
        names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
        if name not in names:
            return
        at = names.index(name) - (names[0] in OWN)
        owner = self._owner.get(function)
        for call, _ in self._project.named.get(owner if function.name == "__init__" and owner else function.name, ()):
            if 0 <= at < len(call.args):
                yield from _standing(call.args[at])

    @cached_property
    def _functions(self) -> dict[str, list[Function]]:
        """Return the functions of the program by their names."""
        found: dict[str, list[Function]] = defaultdict(list)
        for module in self._project.modules.values():
            for node in (*module.live.get(ast.FunctionDef, ()), *module.live.get(ast.AsyncFunctionDef, ())):
                assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                found[node.name].append(node)
        return found

    @cached_property
    def _taking(self) -> dict[str, list[Function]]:
        """Return the functions that take a parameter, by its name."""
        found: dict[str, list[Function]] = defaultdict(list)
        for function in (each for named in self._functions.values() for each in named):
            for arg in (*function.args.posonlyargs, *function.args.args):
                found[arg.arg].append(function)
        return found

    @cached_property
    def _owner(self) -> dict[ast.AST, str]:
        return {m: info.node.name for info in list(self._project.classes.values()) for m in info.methods.values()}


def _standing(value: ast.AST) -> Iterator[str]:
    """Yield the names of what an expression may be; of a call what it calls, and what a wrapper is handed."""
    if isinstance(value, ast.Name | ast.Attribute):
        yield tail_of(value)
    elif isinstance(value, ast.Call):
        yield tail_of(value.func)
        if isinstance(value.func, ast.Attribute):
            yield from _standing(value.func.value)
        if tail_of(value.func) in HANDING:
            for argument in value.args:
                yield from _standing(argument)
    elif isinstance(value, ast.Subscript):
        yield from names_of(value)
    else:
        for child in children(value):
            yield from _standing(child)
