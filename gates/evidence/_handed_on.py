"""Whether a function runs what it is given, or only keeps it."""

import ast
from collections.abc import Iterator

from gates.scan.module import Function
from gates.scan.project import ClassInfo


def runs_what_it_is_given(function: Function, owner: ClassInfo | None) -> bool:
    """Return whether a function calls, passes on or gives back a parameter, or its class what holds one."""
    given = _parameters(function)
    if _is_run(function, given, None):
        return True
    instance = next(iter(given), "") if owner else ""
    kept = set(_kept(function, given, instance))
    return owner is not None and any(_is_run(method, set(), kept) for method in owner.methods.values())


def _parameters(function: Function) -> list[str]:
    given = function.args
    stars = [star for star in (given.vararg, given.kwarg) if star]
    return [arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs, *stars)]


def _is_run(function: Function, names: list[str] | set[str], attributes: set[str] | None) -> bool:
    """Return whether a function calls, passes on or gives back one of some names or attributes."""
    for node in ast.walk(function):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Call):
            parts = [node.func, *node.args, *(word.value for word in node.keywords)]
        elif isinstance(node, ast.Return | ast.Yield) and node.value is not None:
            parts = [node.value]
        for part in parts:
            inner = part.value if isinstance(part, ast.Starred | ast.Subscript) else part
            if isinstance(inner, ast.Name) and inner.id in names:
                return True
            if attributes and isinstance(inner, ast.Attribute) and inner.attr in attributes:
                return True
    return False


def _kept(function: Function, given: list[str], instance: str) -> Iterator[str]:
    """Yield the attributes of an instance that are set to a parameter."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in given:
            for target in node.targets:
                if isinstance(target, ast.Attribute) and ast.unparse(target.value) == instance:
                    yield target.attr
