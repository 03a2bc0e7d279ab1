"""The code that the files of the implementation come to, beside the code that stands in their modules."""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

FACTS = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount", "co_kwonlyargcount",
         "co_posonlyargcount", "co_exceptiontable")  # fmt: skip
Codes = dict[tuple[str, int], list[CodeType]]


class Shipped:
    """The code of each file, compiled once; what is imported otherwise than from a source file is left alone."""

    def __init__(self, real_path: Callable[[str], str]) -> None:
        self._real_path = real_path
        self._compiled: dict[str, Codes] = {}
        self._same: dict[str, dict[int, CodeType]] = defaultdict(dict)  # by identity: to hash a code takes long

    def is_as_written(self, found: object, path: str, module: ModuleType) -> bool:
        """Return whether the code of a function, its names and its module are what its file comes to."""
        if not isinstance(found, FunctionType) or type(getattr(module, "__loader__", None)) is not SourceFileLoader:
            return True
        return self._is_known(found.__code__, path)

    def stray(self, path: str, module: ModuleType) -> str:
        """Return the name of a function that claims to be of a module's file and is not, or nothing."""
        for name, function in _functions(module):
            code = function.__code__
            if self._real_path(code.co_filename) == path and not self.is_as_written(function, path, module):
                return name
        return ""

    def _is_known(self, code: CodeType, path: str) -> bool:
        if self._same[path].get(id(code)) is code:
            return True
        if path not in self._compiled:
            self._compiled[path] = codes_in(path)
        codes = self._compiled[path]
        known = not codes or any(are_one(code, one) for one in codes.get((code.co_name, code.co_firstlineno), ()))
        if known:
            self._same[path][id(code)] = code
        return known


def codes_in(path: str) -> Codes:
    """Return the code of each function that a file defines, by name and first line."""
    found: Codes = defaultdict(list)
    try:
        edge = [compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)]
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    while edge:
        code = edge.pop()
        found[code.co_name, code.co_firstlineno].append(code)
        edge += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    return dict(found)


def are_one(one: CodeType, other: CodeType) -> bool:
    """Return whether two codes do the same: the same steps on the same names and constants."""
    if any(getattr(one, name, None) != getattr(other, name, None) for name in FACTS):
        return False
    return len(one.co_consts) == len(other.co_consts) and all(map(_is_one, one.co_consts, other.co_consts))


def _is_one(a: object, b: object) -> bool:
    if isinstance(a, CodeType) and isinstance(b, CodeType):
        return are_one(a, b)
    if isinstance(a, frozenset):  # in any order
        return isinstance(b, frozenset) and a == b
    return type(a) is type(b) and (repr(a) == repr(b) or (isinstance(a, tuple) and a == b))


def _functions(module: ModuleType) -> Iterator[tuple[str, FunctionType]]:
    """Yield the functions that stand in a module and in its classes."""
    for name, held in list(vars(module).items()):
        if isinstance(held, FunctionType):
            yield name, held
        elif isinstance(held, type) and sys.modules.get(held.__module__) is module:
            for inner, member in list(vars(held).items()):
                function = getattr(member, "__func__", getattr(member, "fget", member))
                if isinstance(function, FunctionType):
                    yield f"{name}.{inner}", function
