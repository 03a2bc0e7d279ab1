"""Whether the names that a function reads mean what its file says: constants, defaults, and functions of Python."""

import ast
import builtins
from functools import cache
from pathlib import PurePath
from types import FunctionType, ModuleType

BEFORE = dict(vars(builtins))
ABSENT = object()
PLAIN = {int, float, complex, str, bytes, bool, type(None)}


def constants(module: ModuleType, literals: dict[str, str]) -> dict[str, str]:
    """Return, in words, which constants of a module are other numbers, texts or paths than its file says, by name."""
    held = {name: vars(module).get(name, ABSENT) for name, text in literals.items()}
    return {
        name: f"`{name}` is {_shown(value)} in place of {literals[name]}"
        for name, value in held.items() if not _is_that(value, literals[name]) and is_plain(value)
    }  # fmt: skip


def is_plain(value: object) -> bool:
    """Return whether a value is a number, a text, a path, None or a tuple of these, and nothing that acts."""
    if type(value) is tuple:
        return all(map(is_plain, value))
    return type(value) in PLAIN or (isinstance(value, PurePath) and type(value).__module__.startswith("pathlib"))


def altered(
    found: object, module: ModuleType, literals: dict[str, str], defaults: dict[str, str], reads: tuple[str, ...]
) -> str:
    """Return, in words, what a function reads and its file does not say, or nothing; constants are not asked for."""
    for name, text in literals.items():
        value = vars(module).get(name, ABSENT)
        if not _is_that(value, text) and not is_plain(value):
            return f"`{name}` is {_shown(value)} in place of {text}"
    for name in reads:
        if name in vars(module):
            return f"`{name}` is {_shown(vars(module)[name])} in place of Python's own"
        if vars(builtins).get(name) is not BEFORE.get(name):
            return f"Python's own `{name}` is {_shown(vars(builtins).get(name))}"
    if isinstance(found, FunctionType):
        if found.__globals__ is not vars(module):
            return "its names are looked up in another place than its module"
        return _other_default(found, defaults)
    return ""


def _other_default(function: FunctionType, defaults: dict[str, str]) -> str:
    code, given = function.__code__, function.__defaults__ or ()
    positional = code.co_varnames[code.co_argcount - len(given) : code.co_argcount]
    held = {**dict(zip(positional, given, strict=False)), **(function.__kwdefaults__ or {})}
    for name, text in defaults.items():
        if not _is_that(held.get(name, ABSENT), text):
            return f"the default of `{name}` is {_shown(held.get(name, ABSENT))} in place of {text}"
    return ""


def _is_that(value: object, text: str) -> bool:
    wanted = _read(text)
    return value is wanted or (type(value) is type(wanted) and repr(value) == repr(wanted))


@cache
def _read(text: str) -> object:
    return ast.literal_eval(text)


def _shown(value: object) -> str:
    if value is ABSENT:
        return "not there"
    if is_plain(value):
        return f"{value!r:.60}"
    code = getattr(value, "__code__", None)
    return f"something of {code.co_filename}:{code.co_firstlineno}" if code else f"a {type(value).__name__}"
