"""What the folders hold: each module of `stages`, `evidence`, `rules` and `render` is found, not listed."""

import importlib
import pkgutil
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")


def modules(package: ModuleType) -> list[ModuleType]:
    """Import the modules of a package that do not start with an underscore, in the order of their names."""
    names = sorted(info.name for info in pkgutil.iter_modules(package.__path__) if not info.name.startswith("_"))
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


def values(package: ModuleType, kind: type[T]) -> list[T]:
    """Return every value of a kind that a module of the package defines, in the order of the modules."""
    return [value for module in modules(package) for value in vars(module).values() if isinstance(value, kind)]


def classes(package: ModuleType, parent: type[T]) -> list[type[T]]:
    """Return every subclass of `parent` that is defined in a module of the package."""

    def is_ours(value: object, module: ModuleType) -> bool:
        return (
            isinstance(value, type)
            and issubclass(value, parent)
            and value is not parent
            and value.__module__ == module.__name__
        )

    return [value for module in modules(package) for value in vars(module).values() if is_ours(value, module)]
