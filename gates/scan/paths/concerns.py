"""What hot code is concerned with: the names that stand in its conditions, and whose methods it runs."""

import ast
from collections.abc import Iterable

from gates.scan.paths.hot import Hot
from gates.scan.paths.state import State
from gates.scan.paths.values import Value
from gates.scan.program.module import tail_of
from gates.scan.program.nodes import below, walk
from gates.scan.program.scope import Scope

TELLING = (ast.Constant, ast.Call, ast.Name, ast.Attribute, ast.IfExp, ast.Lambda)
ASKING = (ast.If, ast.IfExp, ast.Call, ast.withitem, ast.While, ast.Match)


class Concerns:
    """The names that the hot code of a program is concerned with."""

    def __init__(self, hot: Hot) -> None:
        self._hot = hot
        self._names: dict[ast.AST, frozenset[str]] = {}

    def are_set(self, nodes: Iterable[ast.AST], scope: Scope) -> bool:
        """Return whether statements set one to what a later condition or event may tell apart."""
        for node in nodes:
            for inner in walk(node):
                if not isinstance(inner, ast.Assign) or not isinstance(inner.value, TELLING):
                    continue
                for target in inner.targets:
                    around = scope.module.tree if isinstance(target, ast.Attribute) else scope.function
                    if tail_of(target) in self._of(around or scope.module.tree):
                        return True
        return False

    def assumed(self, function: ast.AST, path: State) -> frozenset[tuple[str, bool]]:
        """Return what a path has assumed of what a function asks before it comes to an event."""
        names = self._of(function)
        return frozenset(item for item in path.assumed.items() if any(name in item[0] for name in names))

    def kept(self, function: ast.AST, instance: Value, path: State) -> frozenset[tuple[str, str]]:
        """Return what an object keeps of what its method asks: constants, and members such as those of enumerations."""
        there = ((name, path.heap.get(f"{instance.key}.{name}")) for name in self._of(function))
        return frozenset(
            (name, value.key)
            for name, value in there
            if value is not None and (value.is_known or isinstance(value.node, ast.Attribute))
        )

    def _of(self, around: ast.AST) -> frozenset[str]:
        """Return the names that stand in hot conditions, and whose methods are hot, in a function or a whole file."""
        if around not in self._names:
            names: set[str] = set()
            for node in below(around):
                if node not in self._hot or not isinstance(node, ASKING):
                    continue
                names |= {tail_of(n) for n in walk(_asked(node)) if isinstance(n, ast.Name | ast.Attribute)}
            self._names[around] = frozenset(names - {"self"})
        return self._names[around]


def _asked(node: ast.AST) -> ast.AST:
    """Return the part of code that decides what it does."""
    if isinstance(node, ast.Call):
        return node.func
    if isinstance(node, ast.Match):
        return node.subject
    return node.test if isinstance(node, ast.If | ast.IfExp | ast.While) else node
