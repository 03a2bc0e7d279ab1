"""Whether a function runs what it is given, or only keeps it or looks at it."""

import ast
from collections.abc import Iterator

from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function
from gates.scan.program.scope import BUILTINS

RUN_BY = frozenset({"map", "filter", "sorted", "min", "max", "iter"})
LOOKS = ("logging.", "warnings.", "inspect.", "typing.", "pickle.", "copy.", "json.", "pprint.", "weakref.", "dis.",
         "dataclasses.", "functools.wraps", "functools.update_wrapper", "abc.")  # fmt: skip
KEEPS = frozenset({
    "add", "append", "appendleft", "insert", "extend", "setdefault", "put", "put_nowait", "discard", "remove", "index",
    "count", "get", "debug", "info", "warning", "error", "exception", "critical", "log", "write",
})  # fmt: skip
SAME_NAME = frozenset({"wraps", "update_wrapper"})


def only_keeps(called: ast.expr, named: str | None) -> bool:
    """Return whether a library's function runs nothing of what it is given: it looks at it, prints it or keeps it."""
    if named in BUILTINS:
        return named not in RUN_BY
    if named is not None and f"{named}.".startswith(LOOKS):
        return True
    return isinstance(called, ast.Attribute) and called.attr in KEEPS


def drops_what_it_decorates(decorator: ast.expr, function: Function) -> bool:
    """Return whether a decorator has no use for the function that it is put on: that one is never run."""
    if isinstance(decorator, ast.Call):
        inner = [node for node in function.body if isinstance(node, ast.FunctionDef)]
        if len(inner) != 1:
            return False
        function = inner[0]
    given = _parameters(function)[:1]
    idle: set[ast.AST] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and _tail(node.func) in SAME_NAME:
            idle |= set(node.args)
        elif isinstance(node, ast.Attribute) and node.attr.startswith("__"):
            idle.add(node.value)
    return not any(isinstance(node, ast.Name) and node.id in given and node not in idle for node in ast.walk(function))


def _tail(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


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
        if isinstance(node, ast.Call) and _tail(node.func) not in SAME_NAME:
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
