"""What the folders hold: each check, gate, kind of evidence, rule and format is found, not listed."""

import importlib.util
import pkgutil
from typing import TypeVar

T = TypeVar("T")


def parts(name: str, part: str) -> list[str]:
    """Return the modules of one name in the folders of a package, and the files beside these, in order."""
    found = pkgutil.iter_modules(importlib.import_module(name).__path__)
    return [f"{name}.{info.name}{f'.{part}' if info.ispkg else ''}" for info in sorted(found, key=lambda i: i.name)]


def values(package: str, kind: type[T]) -> list[T]:
    """Return every value of a kind that a module of a package defines, in the order of the modules."""
    return [value for name in parts(package, "judge") for value in values_of(name, kind)]


def values_of(name: str, kind: type[T]) -> list[T]:
    """Return every value of a kind that a module defines."""
    return [value for value in vars(importlib.import_module(name)).values() if isinstance(value, kind)]


def kinds_in(name: str, parent: type[T]) -> list[type[T]]:
    """Return every class below `parent` that a module defines; none where there is no such module."""
    if importlib.util.find_spec(name) is None:
        return []
    own = (each for each in values_of(name, type) if each.__module__ == name)
    return [each for each in own if issubclass(each, parent) and each is not parent]
