"""What lies inside of the wrappers, mocks and spies that something stands behind, and where these were written."""

import gc
import sys
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType, ModuleType

MOST = 300  # things that are looked at behind a wrapper
INNER = ("__wrapped__", "__func__", "func", "fget")


def mock_in(found: object) -> object | None:
    """Return the mock that something is, or that stands behind a function with its signature."""
    for one in (found, getattr(found, "mock", None) if isinstance(found, FunctionType) else None):
        if any(kind.__name__ == "NonCallableMock" for kind in type(one).__mro__):
            return one
    return None


def unwrapped(found: object) -> object:
    """Return what lies innermost in wrappers that tell what they wrap."""
    for _ in range(20):
        inner = next((one for name in INNER if (one := getattr(found, name, None)) is not None), None)
        if inner is None:
            break
        found = inner
    return found


def behind(found: object, is_wanted: Callable[[object], bool]) -> object | None:
    """Return what is wanted of all that something holds: in wrappers, closures, attributes and containers."""
    seen: set[int] = set()
    edge: list[object] = [unwrapped(found), found]
    while edge and len(seen) < MOST:
        one = edge.pop(0)
        if id(one) in seen or isinstance(one, ModuleType | type | CodeType | str | bytes | int | float):
            continue
        seen.add(id(one))
        if is_wanted(one):
            return one
        edge += _held(one)
    return None


def _held(one: object) -> Iterable[object]:
    if isinstance(one, FunctionType):
        return [*(one.__closure__ or ()), *vars(one).values()]
    return [] if isinstance(one, dict) and "__builtins__" in one else gc.get_referents(one)


def origin(found: object) -> str | None:
    """Return the file that a function, or the class of something else, was written in."""
    for name in INNER[1:]:
        inner = getattr(found, name, None)
        if inner is not None and not isinstance(found, FunctionType):
            return origin(inner)
    if isinstance(found, FunctionType):
        return found.__code__.co_filename
    return file_of(found if isinstance(found, type) else type(found))


def file_of(kind: type) -> str | None:
    """Return the file of the module that a class was written in."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file if isinstance(file, str) else None


def line_of(found: object) -> int | None:
    """Return the line that a function begins in."""
    inner = next((one for name in INNER[1:] if (one := getattr(found, name, None)) is not None), found)
    return inner.__code__.co_firstlineno if isinstance(inner, FunctionType) else None
