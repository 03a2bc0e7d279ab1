"""Counts the assertions that are executed: a statement before each of them, put in where pytest rewrites modules."""

import ast
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _pytest.assertion import rewrite

from .asserting import asserts, blocks_of

executed = [0]
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
    """Put the counter before each statement that asserts."""
    blocks = [module.body]
    while blocks:
        block = blocks.pop()
        found = [statement for statement in block if asserts(statement)]
        for statement in block:
            blocks += blocks_of(statement)
        if found:
            block[:] = [new for old in block for new in ((_counter(old), old) if old in found else (old,))]


def _counter(statement: ast.stmt) -> ast.stmt:
    """Return the statement `@pytest_ar.gates_executed[0] += 1`, in the line of another."""
    where = {"lineno": statement.lineno, "col_offset": statement.col_offset, "end_lineno": statement.lineno,
             "end_col_offset": statement.col_offset}  # fmt: skip
    name = ast.Name(id="@pytest_ar", ctx=ast.Load(), **where)
    counts = ast.Attribute(value=name, attr="gates_executed", ctx=ast.Load(), **where)
    target = ast.Subscript(value=counts, slice=ast.copy_location(ast.Constant(0), statement), ctx=ast.Store(), **where)
    return ast.AugAssign(target=target, op=ast.Add(), value=ast.copy_location(ast.Constant(1), statement), **where)
