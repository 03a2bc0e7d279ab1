"""Counts the assertions that are executed: a statement before each of them, put in where pytest rewrites modules.

Where an assertion held, a statement after it says so: one that failed in a test that passed was swallowed. So was one
that failed where no handler of the tests came to see it, such as in a pool of threads, and never held later on. One
that holds whatever the code does is counted among the settled, too.
"""

import ast
import itertools
import os
import sys
import threading
import traceback
import unittest
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from _pytest.assertion import rewrite

from .asserting import asserts, blocks_of, catches_failures, expects_failure, gives_up, is_plain, may_replace
from .helpers import Helpers, count_methods, open_to_counting
from .insertions import call, held, placed
from .looks import look_at, look_at_values, values_in
from .misnamed import Misnamed
from .settled import Settled
from .swallowing import is_quiet, only_notes, swallows, waits
from .vain import Vain
from .watched import Watched

# how many were executed, how many had been when the last of them held, how many were settled; which was the last of
# those that are not
executed = [0, 0, 0, 0]
unheard: list[str] = []
failed: dict[int, int] = {}  # assertions that failed and that no test has seen failing, each with its line
hidden: set[int] = set()  # the lines of those that failed, and that a handler let pass as if they had held
counted: set[str] = set()
reached: set[int] = set()  # those that were executed since it was last told
places: dict[int, tuple[str, int]] = {}  # of those of which it was not told yet
_lines: dict[int, int] = {}  # of the module that is being rewritten
watched = Watched()
helpers = Helpers()
vain = Vain(executed)
misnamed = Misnamed()
_numbers = itertools.count()
_marks: list[tuple[int, list[int]]] = []  # of each settled one that was begun: its number, and what was counted before
_rewrite: Callable[..., Any] | None = getattr(rewrite, "rewrite_asserts", None)
_known = (_rewrite, getattr(rewrite, "_read_pyc", None), getattr(rewrite, "_write_pyc", None))


def install() -> None:
    """Put the counting in front of pytest's own rewriting; a pytest that has none of it is left alone."""
    if all(_known):
        # reached as @pytest_ar in rewritten modules
        for name, reached in REACHED.items():
            setattr(rewrite, f"gates_{name}", reached)
        rewrite.rewrite_asserts = _counting
        # a cached module counts nothing, and one that counts must not be cached for runs without us
        rewrite._read_pyc = lambda *_args, **_more: None  # noqa: SLF001
        rewrite._write_pyc = lambda *_args, **_more: False  # noqa: SLF001
        helpers.hand_over(rewrite.AssertionRewritingHook, watched.helpers)
    count_methods(executed, counted)


def asserting() -> int:
    """Return how many assertions were executed that the code has a part in."""
    return executed[0] - executed[2]


def _asserts(number: int) -> None:
    failed.pop(number, None)  # it is tried again
    vain.begins(number)
    reached.add(number)
    executed[0] += 1
    executed[3] = executed[0]
    watched.asserted()


def _enters(number: int) -> None:
    """Note that a settled assertion begins; what it executes on its way is settled too."""
    while _marks and _marks[-1][0] == number:  # it failed the last time
        _marks.pop()
    _marks.append((number, executed[:]))
    executed[0] += 1


def _leaves(number: int) -> None:
    """Note that a settled assertion has held, which says nothing of another before it that has not."""
    while _marks:
        begun, (count, held, settled, last) = _marks.pop()
        if begun == number:  # those in between have failed
            executed[1:] = [held if last > held else executed[0], settled + executed[0] - count, last]
            break


def _hides() -> None:
    """Note the line of an assertion of the tests whose failure a handler lets pass."""
    kind, _, trace = sys.exc_info()
    _hide(kind, trace)


def _notes() -> None:
    """Note the line of an assertion of which a handler only says that it failed: it was to fail."""
    kind, _, trace = sys.exc_info()
    if _fails_here(kind, trace):
        _hide(kind, trace)
    else:
        failed.clear()


def _hide(kind: object, trace: object) -> None:
    places = [*traceback.walk_tb(trace)] if isinstance(trace, TracebackType) and _is_failure(kind) else []
    own = [line for frame, line in places if os.path.realpath(frame.f_code.co_filename) in counted]
    hidden.update(own[-1:])


REACHED = {"executed": executed, "asserts": _asserts, "enters": _enters, "leaves": _leaves, "looks": watched.look,
           "fails": failed.__setitem__, "sees": failed.clear, "hides": _hides, "notes": _notes, "each": vain.each,
           "all_of": vain.all_of, "value": vain.value, "titled": vain.titled}  # fmt: skip


def are_reached() -> bool:
    """Return whether the statements that were put in still reach what counts them."""
    return not all(_known) or all(getattr(rewrite, f"gates_{name}", None) is one for name, one in REACHED.items())


def unheld() -> bool:
    """Return whether the last assertion that was executed has not held."""
    return executed[1] != executed[0]


def begin() -> int:
    """Begin with a test, of which nothing has failed yet; return how many assertions were executed before it."""
    executed[1] = executed[0]
    failed.clear()
    vain.forget()
    misnamed.found.clear()
    return asserting()


def newly_reached() -> dict[str, list[int]]:
    """Return the lines of the assertions that were executed for the first time, by the file that they stand in."""
    found: dict[str, list[int]] = {}
    for number in sorted(reached):
        path, line = places.pop(number, ("", 0))
        if path:
            found.setdefault(path, []).append(line)
    reached.clear()
    return found


def unseen() -> int:
    """Return the line of an assertion that failed and whose failure came to nothing, or 0."""
    return min((*failed.values(), *hidden), default=0)


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
            misnamed.expected(_expected(args[0]), args[1], args[3], watched.is_own)
        if swallowed and (_waits_for_another(args[0], args[1], args[3]) or _fails_here(args[1], args[3])):
            _hide(args[1], args[3])
        elif swallowed and not _waits_for_all(args[0], args[1]):
            executed[1] = executed[0]
            failed.clear()
        return swallowed

    return __exit__


def _waits_for_all(waiting: object, raised: object) -> bool:
    """Return whether an assertion failed where any exception would have done."""
    return bool({Exception, BaseException} & _expected(waiting)) and _is_failure(raised)


def _waits_for_another(waiting: object, raised: object, trace: object) -> bool:
    """Return whether an assertion of the tests failed where another exception would have done as well."""
    last = [*traceback.walk_tb(trace)][-1:] if isinstance(trace, TracebackType) else []
    own = any(os.path.realpath(frame.f_code.co_filename) in counted for frame, _ in last)
    return own and len(_expected(waiting)) > 1 and _is_failure(raised)


def _fails_here(raised: object, trace: object) -> bool:
    """Return whether what a test expects is that its own assertion fails, which is to expect that the code is wrong."""
    files = (
        [frame.f_code.co_filename for frame, _ in traceback.walk_tb(trace)] if isinstance(trace, TracebackType) else []
    )
    own = [os.path.realpath(file) in counted for file in files]
    elsewhere = any(watched.is_inside(file) for file in files[1:])  # such as in a helper that is tested
    return _is_failure(raised) and own[:1] == [True] and not elsewhere


def _expected(waiting: object) -> set[object]:
    names = ("expected_exceptions", "expected_exception", "expected")  # of pytest, of its older versions, of unittest
    expected = next((getattr(waiting, name) for name in names if hasattr(waiting, name)), ())
    return {*(expected if isinstance(expected, tuple) else (expected,))}


def _is_failure(raised: object) -> bool:
    return isinstance(raised, type) and issubclass(raised, AssertionError)


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
    values: dict[tuple[int, int], str | None] = {}
    installed = {"site-packages", "dist-packages"} & set(Path(module_path or "").parts)  # such as other plugins
    if not installed and "PYTEST_DONT_REWRITE" not in (ast.get_docstring(mod, clean=False) or ""):
        values = values_in(mod)
        _instrument(mod, followed=watched.is_inside(module_path or ""))
        if module_path:
            counted.add(os.path.realpath(module_path))
            places.update({number: (os.path.realpath(module_path), line) for number, line in _lines.items()})
        _lines.clear()
    if module_path and module_path in helpers:
        open_to_counting(mod, values)
    elif _rewrite is not None:
        _rewrite(mod, source, module_path, config)
        look_at_values(mod, values)


def _instrument(module: ast.Module, *, followed: bool) -> None:
    """Put the counter before each statement that asserts, and one that says that it held after each plain assertion.

    Of a module that is `followed`, such as none that a test makes up, it is told as well which of them fail unseen.
    """
    settled = Settled(module, watched.traced)
    seen = {id(one) for node in ast.walk(module) if swallows(node) for one in ast.walk(node)} if followed else None
    blocks = [module.body]
    while blocks:
        block = blocks.pop()
        for statement in block:
            blocks += blocks_of(statement)
        block[:] = [new for old in block for new in _counted(old, settled, seen)]


def _counted(statement: ast.stmt, settled: Settled, seen: set[int] | None) -> list[ast.stmt]:
    for handler in getattr(statement, "handlers", ()):
        if catches_failures(handler):
            handler.body.insert(0, _seeing(statement, handler))
    if expects_failure(statement):
        for handler in statement.handlers:  # type: ignore[attr-defined]  # it is a try
            handler.body.insert(0, held(handler.body[0]))
    number = ast.Constant(index := next(_numbers))
    first, last = [call("asserts", statement, number)], []
    if settled.holds(statement):
        first, last = [call("enters", statement, number)], [call("leaves", statement, number)]
    if isinstance(statement, ast.With | ast.AsyncWith):
        statement.body.insert(0, call("looks", statement))
    if not asserts(statement) or (not last and settled.is_left_to_others(statement)):
        return [statement, call("looks", statement)] if may_replace(statement) else [statement]
    if last:
        return [*first, statement, *last]
    _lines[index] = statement.lineno
    if not is_plain(statement):
        return [*first, held(statement), statement]
    told = seen is not None and id(statement) not in seen and not gives_up(statement)
    after = look_at(statement, number)
    return [*first, _telling(statement, number) if told else statement, *after, held(statement)]


def _seeing(statement: ast.stmt, handler: ast.ExceptHandler) -> ast.stmt:
    """Return the statement that says that a handler has seen a failure, or that it lets it pass for none."""
    first = handler.body[0]
    quiet = "hides" if is_quiet(statement) else "notes" if only_notes(statement) else "sees"
    return call("sees" if waits(handler) else quiet, first)


def _telling(statement: ast.stmt, number: ast.Constant) -> ast.stmt:
    """Return a statement that does the same, and notes the line in which it fails; the failure goes on its way."""
    wanted = ast.Attribute(ast.Name("@py_builtins", ast.Load()), "AssertionError", ast.Load())
    note = call("fails", statement, number, ast.Constant(statement.lineno))
    handler = ast.ExceptHandler(wanted, None, [note, placed(ast.Raise(None, None), statement)])
    made = placed(ast.Try([], [handler], [], []), statement)
    made.body.append(statement)  # type: ignore[attr-defined]  # it is a try
    return made
