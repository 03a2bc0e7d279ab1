"""Which functions of libraries look only at what they are given."""

import ast

from .bindings import Bindings

LIBRARIES = {"math": (), "pytest": ("approx", "param"), "mock": ("Mock", "MagicMock", "sentinel"),
             "unittest.mock": ("Mock", "MagicMock", "sentinel")}  # fmt: skip


def is_of_library(func: ast.Attribute | ast.Name, bindings: Bindings) -> bool:
    """Return whether a function is one of a few of libraries, by the import of its name."""
    root = func.value if isinstance(func, ast.Attribute) else func
    if not isinstance(root, ast.Name):
        return False
    values = bindings.values(root) or []
    if len(values) != 1 or not isinstance(values[0], ast.Import | ast.ImportFrom):
        return False
    name = func.attr if isinstance(func, ast.Attribute) else func.id
    origin = values[0].module if isinstance(values[0], ast.ImportFrom) else root.id
    if isinstance(func, ast.Attribute) and isinstance(values[0], ast.ImportFrom):
        origin = f"{origin}.{root.id}"
    known = LIBRARIES.get(origin or "")
    return known is not None and (not known or name in known)
