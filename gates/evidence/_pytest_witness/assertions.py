"""Counts the assertions that are executed: a statement before each of them, put in where pytest rewrites modules.

Where an assertion held, a statement after it says so: one that failed in a test that passed was swallowed.
"""

import ast
import os
import sys
import threading
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion import rewrite

from .asserting import asserts, blocks_of, expects_failure, is_plain

executed = [0, 0]  # how many were executed, and how many had been when the last of them held
unheard: list[str] = []
counted: set[str] = set()
_rewrite: Callable[..., Any] | None = getattr(rewrite, "rewrite_asserts", None)
_known = (_rewrite, getattr(rewrite, "_read_pyc", None), getattr(rewrite, "_write_pyc", None))


def install() -> None:
    """Put the counting in front of pytest's own rewriting; a pytest that has none of it is left alone."""
    if all(_known):
        rewrite.gates_executed = executed  # type: ignore[attr-defined]  # reached as @pytest_ar in rewritten modules
        rewrite.rewrite_asserts = _counting
        # a cached module counts nothing, and one that counts must not be cached for runs without us
        rewrite._read_pyc = lambda *_args, **_more: None  # noqa: SLF001
        rewrite._write_pyc = lambda *_args, **_more: False  # noqa: SLF001


def unheld() -> bool:
    """Return whether the last assertion that was executed has not held."""
    return executed[1] != executed[0]


def expect() -> None:
    """Take an exception that a test expects, and that comes, for an assertion that holds."""
    for context in (type(pytest.raises(Exception)), getattr(unittest.case, "_AssertRaisesContext", None)):
        if context is not None:
            setattr(context, "__exit__", _held_after(context.__exit__))  # noqa: B010  # a method, to mypy


def _held_after(leave: Callable[..., Any]) -> Callable[..., Any]:
    def __exit__(*args: object) -> object:  # noqa: N807  # in the place of one
        __tracebackhide__ = True
        swallowed = leave(*args)
        if swallowed:
            executed[1] = executed[0]
        return swallowed

    return __exit__


def listen() -> None:
    """Note assertions that fail where no test hears of it: in a thread, or where nothing can be raised."""
    in_thread, nowhere = threading.excepthook, sys.unraisablehook

    def heard_in_thread(args: threading.ExceptHookArgs) -> None:
        _note(args.exc_type, "in a thread")
        in_thread(args)

    def heard_nowhere(args: "sys.UnraisableHookArgs") -> None:
        _note(args.exc_type, "where nothing can be raised")
        nowhere(args)

    threading.excepthook, sys.unraisablehook = heard_in_thread, heard_nowhere


def _note(kind: type[BaseException] | None, where: str) -> None:
    if kind is not None and issubclass(kind, AssertionError):
        unheard.append(f"{kind.__name__} {where}")


def _counting(mod: ast.Module, source: bytes, module_path: str | None = None, config: object = None) -> None:
    installed = {"site-packages", "dist-packages"} & set(Path(module_path or "").parts)  # such as other plugins
    if not installed and "PYTEST_DONT_REWRITE" not in (ast.get_docstring(mod, clean=False) or ""):
        _instrument(mod)
        if module_path:
            counted.add(os.path.realpath(module_path))
    if _rewrite is not None:
        _rewrite(mod, source, module_path, config)


def _instrument(module: ast.Module) -> None:
    """Put the counter before each statement that asserts, and one that says that it held after each plain assertion."""
    blocks = [module.body]
    while blocks:
        block = blocks.pop()
        for statement in block:
            blocks += blocks_of(statement)
        block[:] = [new for old in block for new in _counted(old)]


def _counted(statement: ast.stmt) -> list[ast.stmt]:
    if expects_failure(statement):
        for handler in statement.handlers:  # type: ignore[attr-defined]  # it is a try
            handler.body.insert(0, _held(handler.body[0]))
    if not asserts(statement):
        return [statement]
    if is_plain(statement):
        return [_counter(statement), statement, _held(statement)]
    return [_counter(statement), _held(statement), statement]


def _counter(statement: ast.stmt) -> ast.stmt:
    """Return the statement `@pytest_ar.gates_executed[0] += 1`, in the line of another."""
    return _placed(ast.AugAssign(_count(0, ast.Store()), ast.Add(), ast.Constant(1)), statement)


def _held(statement: ast.stmt) -> ast.stmt:
    """Return the statement `@pytest_ar.gates_executed[1] = @pytest_ar.gates_executed[0]`."""
    return _placed(ast.Assign([_count(1, ast.Store())], _count(0, ast.Load())), statement)


def _count(index: int, context: ast.expr_context) -> ast.Subscript:
    name = ast.Name(id="@pytest_ar", ctx=ast.Load())
    counts = ast.Attribute(value=name, attr="gates_executed", ctx=ast.Load())
    return ast.Subscript(value=counts, slice=ast.Constant(index), ctx=context)


def _placed(made: ast.stmt, beside: ast.stmt) -> ast.stmt:
    """Put all of a statement that was made into the line of another."""
    for node in ast.walk(made):
        if isinstance(node, ast.stmt | ast.expr):
            node.lineno = node.end_lineno = beside.lineno
            node.col_offset = node.end_col_offset = beside.col_offset
    return made
