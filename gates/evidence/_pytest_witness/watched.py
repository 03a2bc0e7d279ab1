"""Whether the functions that criteria are traced to are what their files define, whenever a test asserts something.

A test that puts another function in the place of one and asserts on that says nothing of the one that it replaced.
Nor does one that runs other code under its name, or that changes what its file says of the names that it reads.
"""

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType

from .given_names import injected, stubbed
from .shipped import Shipped
from .values import altered, constants
from .wrapped import behind, file_of, line_of, mock_in, origin, unwrapped

INSTALLED = ("site-packages", "dist-packages")
LISTED = ("chain", "reads", "unbound", "imports")
LOOKS = 1000  # in one test: what is still replaced then stays so
ABSENT = object()


@dataclass(frozen=True)
class Function:
    """A function as its file defines it; `plain` says that nothing there could wrap it or take its name.

    `literals` and `defaults` are what the file gives to names that it reads, `reads` those that only Python defines,
    `unbound` those that nothing in the file gives anything to, `imports` the modules that it imports itself.
    """

    name: str
    path: str
    chain: tuple[str, ...]
    line: int
    plain: bool
    module: str
    literals: dict[str, str] = field(default_factory=dict, hash=False)
    defaults: dict[str, str] = field(default_factory=dict, hash=False)
    reads: tuple[str, ...] = ()
    unbound: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()


StandIn = tuple[str, str]  # what was seen: other code, another object or another value; and which
Told = dict[str, object]


class Watched:
    """The functions that are watched, and which of them the test that runs has replaced."""

    def __init__(self) -> None:
        self.traced: frozenset[str] = frozenset()
        self.helpers: tuple[str, ...] = ()
        self._functions: tuple[Function, ...] = ()
        self._own: tuple[str, ...] = ()
        self._root = ""
        self._open: list[Function] = []
        self._replaced: list[Told] = []
        self._constants: dict[Function, Told] = {}
        self._tests: tuple[str, ...] = ()
        self._made = False
        self._looks = 0
        self._test: ModuleType | None = None
        self._given: dict[str, set[str]] = {}
        self._modules: dict[str, ModuleType] = {}
        self._known = 0
        self._real: dict[str, str] = {}
        self._shipped = Shipped(self._path)
        self._strays: dict[str, str] = {}  # of each file, in one look

    def load(self, path: Path) -> None:
        """Read what is to be watched."""
        told = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        self._functions = tuple(
            Function(**{**one, **{name: tuple(one.get(name, ())) for name in LISTED}})
            for one in told.get("functions", ())
        )
        self._tests, self._made = tuple(told.get("tests", ())), bool(told.get("made"))
        self.traced = frozenset(told.get("traced", ()))
        self.helpers = tuple(told.get("helpers", ()))
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
        """Begin with a test: all is open that is not replaced already."""
        self._test = module
        self._open, self._replaced, self._constants, self._looks = [*self._functions], [], {}, 0
        self.look()

    def look(self) -> None:
        """Note what is replaced now."""
        if self._open and self._looks < LOOKS:
            self._looks += 1
            self._strays.clear()
            seen = [(one, self._instead_of(one)) for one in self._open]
            if any(instead for _, instead in seen):
                self._replaced += [_told(one, instead) for one, instead in seen if instead]
                self._open = [one for one, instead in seen if not instead]
            for one in self._open:
                if one not in self._constants and (changed := self._changed(one)):
                    told = _told(one, ("constant", "; ".join(changed.values())))
                    self._constants[one] = {**told, "constants": sorted(changed)}

    def asserted(self) -> None:
        """Take what was never replaced until something is asserted for what is asserted on."""
        if self._open:
            self.look()
            self._open = []

    def end(self) -> list[dict[str, object]]:
        """Return what the test has replaced before it asserted anything, or until its end."""
        self.look()
        self._open = []
        told = {one["name"] for one in self._replaced}
        for one in self._functions:
            stub = stubbed(one.imports, self._tests, self._path) if one.name not in told else ""
            if stub:  # imported by the call itself, when something was asserted already
                self._replaced.append(_told(one, ("value", stub.replace(f"{self._root}{os.sep}", ""))))
        return [*self._replaced, *self._constants.values()]

    def changed(self) -> list[str]:
        """Return the functions of which a constant is another one now; after all tests it was never put back."""
        return [one.name for one in self._functions if self._changed(one)]

    def _changed(self, function: Function) -> dict[str, str]:
        module = self._module(function.path) if function.literals else None
        return constants(module, function.literals) if module is not None else {}

    def _instead_of(self, function: Function) -> StandIn | None:
        """Return what stands in the place of a function, or nothing where it is itself."""
        named = sys.modules.get(function.module) if function.module else None
        if named is not None and getattr(named, "__file__", None) is None:
            return "object", "a module that was made up"
        module = self._module(function.path)
        if module is None:
            return None
        loader = file_of(type(getattr(module, "__loader__", None)))
        if self._is_foreign(loader):
            return "code", f"what the import hook of {self._shown(loader)} made of the file"
        if function.path not in self._strays:
            self._strays[function.path] = self._shipped.stray(function.path, module)
        if other := self._strays[function.path]:
            return "code", f"{other} is not what the file says"
        held = _at(module, function.chain)
        owners = [held]
        if self._test is not None and function.chain[0] in self._given.get(self._test.__name__, ()):
            owners.append(_at(self._test, function.chain))
        found = (self._other(one, function, module) for one in owners if one is not ABSENT)
        return next(filter(None, found), None) or self._altered(held, function, module)

    def _altered(self, held: object, function: Function, module: ModuleType) -> StandIn | None:
        inner = held if self._is_at_its_place(held, function) else unwrapped(held)
        real = inner if self._is_at_its_place(inner, function) else None
        changed = altered(real, module, function.literals, function.defaults, function.reads) or injected(
            module, function.unbound, self.is_own, self._is_foreign, made=self._made
        )
        return ("value", changed.replace(f"{self._root}{os.sep}", "")) if changed else None

    def _other(self, found: object, function: Function, module: ModuleType) -> StandIn | None:
        """Return what something is where it is neither the function that a file defines nor a wrapper around it."""
        mock = None if self._is_at_its_place(found, function) else mock_in(found)
        if mock is not None:
            return None if self._only_spies(mock, function) else ("object", "a mock")
        from_file = origin(found)
        if not self._is_at_its_place(found, function) and self._is_foreign(from_file):
            return "object", f"{self._shown(from_file)}:{line_of(found) or 1}"
        real = behind(found, lambda one: self._is_at_its_place(one, function))
        if real is not None:
            as_written = self._shipped.is_as_written(real, function.path, module)
            return None if as_written else ("code", f"{'.'.join(function.chain)} is not what the file says")
        if not function.plain:
            return None
        return "object", f"{self._shown(from_file)}:{line_of(found) or 1}" if from_file else f"{found!r:.60}"

    def _is_at_its_place(self, found: object, function: Function) -> bool:
        if not isinstance(found, FunctionType):
            return False
        code = found.__code__
        return code.co_firstlineno == function.line and self._path(code.co_filename) == function.path

    def _only_spies(self, mock: object, function: Function) -> bool:
        """Return whether a mock calls the real function and hands on what that returns."""
        facts = vars(mock)
        wraps, effect = facts.get("_mock_wraps"), facts.get("_mock_side_effect")
        default = getattr(sys.modules.get(type(mock).__mro__[-2].__module__), "DEFAULT", None)
        if wraps is not None and facts.get("_mock_return_value") is default:
            return self._is_at_its_place(unwrapped(wraps), function)
        return self._is_at_its_place(unwrapped(effect), function) and not self._is_foreign(origin(effect))

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
        if file is None or (file.startswith("<") and file.endswith(">")):  # made while it runs, by whom is unknown
            return False
        path = self._path(file)
        inside = path.startswith(self._root + os.sep) and not any(part in Path(path).parts for part in INSTALLED)
        return inside and not self.is_own(file)

    def is_own(self, file: str | None) -> bool:
        """Return whether a file is one of the implementation."""
        path = self._path(file) if file else ""
        return any(path == own or path.startswith(own + os.sep) for own in self._own)

    def _shown(self, file: str | None) -> str:
        return self._path(file).removeprefix(f"{self._root}{os.sep}") if file else ""

    def _path(self, file: str) -> str:
        if file not in self._real:
            self._real[file] = os.path.realpath(file)
        return self._real[file]


def _told(function: Function, instead: StandIn) -> Told:
    kind, by = instead
    return {"name": function.name, "line": function.line, "kind": kind, "by": by[:200]}


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
    return owner if mock_in(owner) is not None else ABSENT
