"""Names that a function reads and nothing of its project gives: put there by tests, or of modules of theirs."""

import builtins
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

from .values import BEFORE
from .wrapped import line_of, origin

ABSENT = object()
# what `gettext.install` puts among the functions of Python
INSTALLED = {"_", "gettext", "ngettext", "pgettext", "npgettext"}


def injected(
    module: ModuleType, names: Iterable[str], is_own: Callable[[str | None], bool],
    is_foreign: Callable[[str | None], bool], *, made: bool,
) -> str:  # fmt: skip
    """Return, in words, which name that a module never binds is there all the same, or nothing.

    Where the implementation makes names by expressions (`made`), only what tests have written is told.
    """
    for name in names:
        value = vars(module).get(name, ABSENT)
        if value is ABSENT and name not in INSTALLED and not _is_of_python(name):
            value = vars(builtins).get(name, ABSENT)
        if value is ABSENT or _is_part(value, module, name):
            continue
        file = origin(value)
        if is_foreign(file) or not (made or is_own(file)):
            place = f"{file}:{line_of(value) or 1}" if file and is_foreign(file) else f"a {type(value).__name__}"
            return f"`{name}` is {place}, which its file neither defines nor imports"
    return ""


def stubbed(names: Iterable[str], folders: Sequence[str], real_path: Callable[[str], str]) -> str:
    """Return, in words, which module that a function imports is one that only the tests have, or nothing."""

    def is_inside(path: str) -> bool:
        return any(real_path(path).startswith(f"{folder}/") for folder in folders)

    for name in names:
        top = name.partition(".")[0]
        file = getattr(sys.modules.get(top), "__file__", None)
        if not isinstance(file, str) or not is_inside(file):
            continue
        others = [path for path in sys.path if not is_inside(str(Path(path or ".") / top))]
        if PathFinder.find_spec(top, others) is None:
            return f"`{top}` is {file}, and only the tests have it"
    return ""


def _is_of_python(name: str) -> bool:
    """Return whether a name was Python's own before the project's code ran; `sitecustomize` may add some of its."""
    value = BEFORE.get(name, ABSENT)
    same = value is not ABSENT and vars(builtins).get(name, ABSENT) is value
    return same and getattr(value, "__module__", "builtins") in {"builtins", "io", "_io", "_sitebuiltins", None}


def _is_part(value: object, module: ModuleType, name: str) -> bool:
    """Return whether a name of a package is its module of that name, which an import anywhere puts there."""
    return isinstance(value, ModuleType) and value.__name__ == f"{module.__name__}.{name}"
