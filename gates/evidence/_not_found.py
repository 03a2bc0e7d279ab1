"""Why a symbol leads to no code, in words."""

import ast
from collections.abc import Sequence

from gates.syntax import SourceModule


class Lacking(str):
    """Says that nothing of a name is defined, as opposed to something that counts for nothing."""

    __slots__ = ()


def lacking(module: SourceModule, names: Sequence[str], *, above: bool = False) -> Lacking:
    """Say that a module, or a class and perhaps what it extends, defines no such name."""
    return Lacking(f"{module.path} defines no {'.'.join(names)!r}{', nor does what it extends' if above else ''}")


def only_imports(module: SourceModule, node: ast.stmt, name: str) -> str:
    """Say of a name that it only comes from elsewhere."""
    return f"{module.path}:{node.lineno} only imports {name!r}; name the symbol where it is defined"
