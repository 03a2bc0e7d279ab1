"""What a program puts under a key or a name of an object of which reading knows no class."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gates.scan.program.module import Module, tail_of

if TYPE_CHECKING:
    from gates.scan.program.project import Project

FIELDS = frozenset({"dict", "SimpleNamespace", "Namespace", "update"})
Stored = dict[str, list[tuple[ast.expr, Module]]]


def stored_in(project: "Project") -> Iterable[Stored]:
    """Yield all that the program puts under constant keys, or sets as attributes from outside of a class."""
    found: Stored = defaultdict(list)
    for module in project.modules.values():
        for name, value in (*_keyed(module), *_set(module)):
            found[name].append((value, module))
    yield dict(found)


def _keyed(module: Module) -> Iterator[tuple[str, ast.expr]]:
    for made in module.live.get(ast.Dict, []):
        for key, value in zip(made.keys, made.values, strict=True) if isinstance(made, ast.Dict) else ():
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value
    for name in FIELDS:
        for call in module.calls.get(name, []):
            yield from ((keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg)


def _set(module: Module) -> Iterator[tuple[str, ast.expr]]:
    for node in module.live.get(ast.Assign, []):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            assert isinstance(node, ast.Assign)
            if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
                if isinstance(target.slice.value, str):
                    yield target.slice.value, node.value
            elif isinstance(target, ast.Attribute) and tail_of(target.value) != "self":
                yield target.attr, node.value
