"""Private names that nothing uses: what they define is written down, and never happens."""

import ast
from collections.abc import Iterable

from gates.syntax import Definition, SourceModule


def is_private(name: str) -> bool:
    """Return whether a name is for its own project alone, such as `_step`; `__call__` is not."""
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def may_be_called_from_outside(node: ast.stmt, owner: ast.ClassDef | None) -> bool:
    """Return whether others could use a definition without its name: a decorator takes it, or a base class calls it."""
    if not isinstance(node, Definition) or node.decorator_list:
        return True
    bases = [*owner.bases, *owner.keywords] if owner else []
    return any(not (isinstance(base, ast.Name) and base.id == "object") for base in bases)


def is_used(name: str, node: ast.stmt, modules: Iterable[SourceModule]) -> bool:
    """Return whether any module reads a name, outside of its own definition; a string with the name counts."""
    own = set(ast.walk(node))
    return any(inner not in own and _reads(inner, name) for module in modules for inner in ast.walk(module.tree))


def _reads(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Attribute):
        return node.attr == name and isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.ImportFrom):
        return any(alias.name in {name, "*"} for alias in node.names)
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value == name
