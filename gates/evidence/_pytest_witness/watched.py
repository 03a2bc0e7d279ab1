"""Whether the functions that criteria are traced to are what their files define, whenever a test asserts something.

A test that puts another function in the place of one and asserts on that says nothing of the one that it replaced.
"""

import json
import os
import sys
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

INSTALLED = ("site-packages", "dist-packages")
LOOKS = 1000  # in one test: what is still replaced then stays so
ABSENT = object()


@dataclass(frozen=True)
class Function:
    """A function as its file defines it; `plain` says that nothing there could wrap it or take its name."""

    name: str
    path: str
    chain: tuple[str, ...]
    line: int
    plain: bool
    module: str


class Watched:
    """The functions that are watched, and which of them the test that runs has replaced."""

    def __init__(self) -> None:
        self.traced: frozenset[str] = frozenset()
        self._functions: tuple[Function, ...] = ()
        self._own: tuple[str, ...] = ()
        self._root = ""
        self._open: list[Function] = []
        self._replaced: list[str] = []
        self._looks = 0
        self._test: ModuleType | None = None
        self._given: dict[str, set[str]] = {}
        self._modules: dict[str, ModuleType] = {}
        self._known = 0
        self._written: dict[str, dict[tuple[str, int], CodeType]] = {}
        self._seen_as_written: set[CodeType] = set()
        self._real: dict[str, str] = {}

    def load(self, path: Path) -> None:
        """Read what is to be watched."""
        told = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        self._functions = tuple(Function(**{**one, "chain": tuple(one["chain"])}) for one in told.get("functions", ()))
        self.traced = frozenset(told.get("traced", ()))
        self._own, self._root = tuple(told.get("implementation", ())), told.get("root", "")

    def is_inside(self, file: str) -> bool:
        """Return whether a file lies in the project."""
        return bool(self._root) and self._path(file).startswith(self._root + os.sep)

    def collected(self, module: ModuleType | None) -> None:
        """Note which of the functions and classes a module of tests has imported by their own names."""
        if module is not None and module.__name__ not in self._given:
            self._given[module.__name__] = {
                one.chain[0] for one in self._functions if (real := self._module(one.path)) is not None
                and vars(module).get(one.chain[0], ABSENT) is vars(real).get(one.chain[0])
            }  # fmt: skip

    def begin(self, module: ModuleType | None) -> None:
        """Begin with a test: all is open."""
        self._test = module
        self._open, self._replaced, self._looks = [*self._functions], [], 0

    def look(self) -> None:
        """Note what is replaced now."""
        if self._open and self._looks < LOOKS:
            self._looks += 1
            gone = [one for one in self._open if self._is_replaced(one)]
            self._replaced += [one.name for one in gone]
            self._open = [one for one in self._open if one not in gone] if gone else self._open

    def asserted(self) -> None:
        """Take what was never replaced until something is asserted for what is asserted on."""
        if self._open:
            self.look()
            self._open = []

    def end(self) -> list[str]:
        """Return what the test has replaced before it asserted anything, or until its end."""
        self.look()
        self._open = []
        return self._replaced

    def _is_replaced(self, function: Function) -> bool:
        named = sys.modules.get(function.module) if function.module else None
        if named is not None and getattr(named, "__file__", None) is None:
            return True  # a module that was made up
        module = self._module(function.path)
        if module is None:
            return False
        if self._is_foreign(_file_of(type(getattr(module, "__loader__", None)))):
            return True
        owners = [module]
        if self._test is not None and function.chain[0] in self._given.get(self._test.__name__, ()):
            owners.append(self._test)
        held = (_at(owner, function.chain) for owner in owners)
        return not all(one is ABSENT or self._is_real(one, function, module) for one in held)

    def _is_real(self, found: object, function: Function, module: ModuleType) -> bool:
        """Return whether something is the function that a file defines, or a library's wrapper around it."""
        if self._is_at_its_place(found, function):
            return self._is_as_written(found.__code__, function, module)  # type: ignore[attr-defined]  # a function
        mock = _mock_in(found)
        if mock is not None:
            return self._only_spies(mock, function)
        if self._is_foreign(_origin(found)):
            return False
        if not function.plain:
            return True
        inner = _unwrapped(found)
        if self._is_at_its_place(inner, function):
            return True
        origin = _origin(inner)
        return origin is not None and not self._is_foreign(origin)

    def _is_at_its_place(self, found: object, function: Function) -> bool:
        if not isinstance(found, FunctionType):
            return False
        code = found.__code__
        return code.co_firstlineno == function.line and self._path(code.co_filename) == function.path

    def _is_as_written(self, code: CodeType, function: Function, module: ModuleType) -> bool:
        """Return whether the code of a function is what its source comes to; what imports otherwise is left alone."""
        if code in self._seen_as_written or type(getattr(module, "__loader__", None)) is not SourceFileLoader:
            return True
        if function.path not in self._written:
            self._written[function.path] = _codes_in(function.path)
        written = self._written[function.path].get((code.co_name, code.co_firstlineno))
        same = written is None or _are_one(code, written)
        if same:
            self._seen_as_written.add(code)
        return same

    def _only_spies(self, mock: object, function: Function) -> bool:
        """Return whether a mock calls the real function and hands on what that returns."""
        facts = vars(mock)
        wraps, effect = facts.get("_mock_wraps"), facts.get("_mock_side_effect")
        default = getattr(sys.modules.get(type(mock).__mro__[-2].__module__), "DEFAULT", None)
        if wraps is not None and facts.get("_mock_return_value") is default:
            return self._is_at_its_place(_unwrapped(wraps), function)
        return self._is_at_its_place(_unwrapped(effect), function) and not self._is_foreign(_origin(effect))

    def _module(self, path: str) -> ModuleType | None:
        """Return the module that a file was imported as."""
        known = self._modules.get(path)
        if known is not None and sys.modules.get(known.__name__) is known:
            return known
        if len(sys.modules) != self._known:
            self._known = len(sys.modules)
            wanted = {function.path for function in self._functions}
            for module in list(sys.modules.values()):
                file = getattr(module, "__file__", None)
                if isinstance(file, str) and isinstance(module, ModuleType) and self._path(file) in wanted:
                    self._modules[self._path(file)] = module
        return self._modules.get(path)

    def _is_foreign(self, file: str | None) -> bool:
        """Return whether a file is one of the project that is no part of the implementation, such as a conftest.py."""
        if file is None:
            return False
        path = self._path(file)
        inside = path.startswith(self._root + os.sep) and not any(part in Path(path).parts for part in INSTALLED)
        return inside and not any(path == own or path.startswith(own + os.sep) for own in self._own)

    def _path(self, file: str) -> str:
        if file not in self._real:
            self._real[file] = os.path.realpath(file)
        return self._real[file]


def _at(owner: object, chain: tuple[str, ...]) -> object:
    """Return what a module holds under names inside of names."""
    for name in chain:
        owner = _member(owner, name)
        if owner is ABSENT:
            break
    return owner


def _member(owner: object, name: str) -> object:
    """Return what a module or class holds under a name, as it is kept there."""
    for one in owner.__mro__ if isinstance(owner, type) else (owner,):
        held = getattr(one, "__dict__", {})
        if name in held:
            return held[name]
    return owner if _mock_in(owner) is not None else ABSENT


def _mock_in(found: object) -> object | None:
    """Return the mock that something is, or that stands behind a function with its signature."""
    for one in (found, getattr(found, "mock", None) if isinstance(found, FunctionType) else None):
        if any(kind.__name__ == "NonCallableMock" for kind in type(one).__mro__):
            return one
    return None


def _unwrapped(found: object) -> object:
    """Return what lies innermost in wrappers that tell what they wrap."""
    for _ in range(20):
        inner = next(
            (one for name in ("__wrapped__", "__func__", "func", "fget")
             if (one := getattr(found, name, None)) is not None), None
        )  # fmt: skip
        if inner is None:
            break
        found = inner
    return found


def _origin(found: object) -> str | None:
    """Return the file that a function, or the class of something else, was written in."""
    for name in ("__func__", "func", "fget"):
        inner = getattr(found, name, None)
        if inner is not None and not isinstance(found, FunctionType):
            return _origin(inner)
    if isinstance(found, FunctionType):
        return found.__code__.co_filename
    return _file_of(found if isinstance(found, type) else type(found))


def _file_of(kind: type) -> str | None:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file if isinstance(file, str) else None


def _codes_in(path: str) -> dict[tuple[str, int], CodeType]:
    """Return the code of each function that a file defines, by name and first line."""
    found: dict[tuple[str, int], CodeType] = {}
    try:
        edge = [compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)]
    except (OSError, SyntaxError, ValueError):
        return {}
    while edge:
        code = edge.pop()
        found[code.co_name, code.co_firstlineno] = code
        edge += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    return found


def _are_one(one: CodeType, other: CodeType) -> bool:
    """Return whether two codes do the same: the same steps on the same names and constants."""
    facts = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars")
    if any(getattr(one, name) != getattr(other, name) for name in facts) or len(one.co_consts) != len(other.co_consts):
        return False
    for a, b in zip(one.co_consts, other.co_consts, strict=True):
        if isinstance(a, CodeType) and isinstance(b, CodeType):
            same = _are_one(a, b)
        else:
            same = type(a) is type(b) and (isinstance(a, frozenset) or repr(a) == repr(b))
        if not same:
            return False
    return True
