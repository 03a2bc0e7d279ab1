"""Assertions in modules that pytest does not rewrite: helpers beside the tests, and the methods of unittest anywhere.

A helper is run with the same statements in it as a module of tests; pytest's own rewriting is left to pytest.
"""

import ast
import functools
import os
import sys
import unittest
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from . import insertions

__unittest = True  # a frame of this module is none of the test's, to unittest and to pytest
IMPORTS = (("builtins", "@py_builtins"), ("_pytest.assertion.rewrite", "@pytest_ar"))


class Helpers:
    """The files beside the tests whose assertions count, too."""

    def __init__(self) -> None:
        self._files: frozenset[str] = frozenset()
        self._names: frozenset[str] = frozenset()
        self._taken: set[str] = set()

    def __contains__(self, file: str) -> bool:
        """Return whether a file is one of them that pytest does not rewrite."""
        return file in self._taken

    def hand_over(self, hook: Any, files: Iterable[str]) -> None:  # noqa: ANN401  # a class of pytest
        """Let the import hook of pytest load files, by their real paths; one that is built otherwise is left alone."""
        self._files = frozenset(files)
        paths = [*map(Path, self._files)]
        self._names = frozenset(path.parent.name if path.stem == "__init__" else path.stem for path in paths)
        leaves, rewrites = getattr(hook, "_early_rewrite_bailout", None), getattr(hook, "_should_rewrite", None)
        if leaves is None or rewrites is None:
            return

        def _early_rewrite_bailout(own: object, name: str, state: object) -> bool:
            left = bool(leaves(own, name, state))
            return left and name.rpartition(".")[2] not in self._names

        def _should_rewrite(own: object, name: str, fn: str, state: object) -> bool:
            if rewrites(own, name, fn, state):
                return True
            if os.path.realpath(fn) in self._files:
                self._taken.add(fn)
            return fn in self._taken

        hook._early_rewrite_bailout, hook._should_rewrite = _early_rewrite_bailout, _should_rewrite  # noqa: SLF001


def open_to_counting(module: ast.Module, values: dict[tuple[int, int], str | None]) -> None:
    """Import what the statements that were put in reach, as pytest's rewriting would; have values looked at."""
    for node in ast.walk(module):
        where = (getattr(node, "lineno", 0), getattr(node, "col_offset", -1))
        if isinstance(node, ast.Assert) and where in values:
            given = (ast.Constant(values[where]), ast.Constant(node.lineno))
            node.test = insertions.answer("value", node.test, node.test, *given)
    first = next((i for i, statement in enumerate(module.body) if not _leads(i, statement)), len(module.body))
    imports = [ast.Import([ast.alias(name, known_as)], lineno=1, col_offset=0) for name, known_as in IMPORTS]
    module.body[first:first] = imports
    ast.fix_missing_locations(module)


def _leads(index: int, statement: ast.stmt) -> bool:
    """Return whether a statement must stay at the head of its module."""
    if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
        return True
    text = statement.value if isinstance(statement, ast.Expr) and index == 0 else None
    return isinstance(text, ast.Constant) and isinstance(text.value, str)


def count_methods(executed: list[int], counted: AbstractSet[str]) -> None:
    """Count the assertions of unittest that hold where they are called from modules that nobody counts in."""
    for name, method in [*vars(unittest.TestCase).items()]:
        if name.startswith("assert") and callable(method):
            setattr(unittest.TestCase, name, _counting(method, executed, counted))


def _counting(method: Callable[..., Any], executed: list[int], counted: AbstractSet[str]) -> Callable[..., Any]:
    own = {unittest.case.__file__}

    @functools.wraps(method)
    def call(*args: object, **named: object) -> object:
        __tracebackhide__ = True
        result = method(*args, **named)
        file = sys._getframe(1).f_code.co_filename  # noqa: SLF001
        if file not in own and os.path.realpath(file) not in counted:
            executed[1] += executed[1] == executed[0]
            executed[0] += 1
        return result

    return call
