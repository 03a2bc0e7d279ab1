"""The holes of a pattern: how they are written in the Python that it is compiled to, and what they stand for."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

MANY = "__many__"
HOLE = "__hole_"


class Names(Protocol):
    """What a matcher asks of the place that code stands in."""

    def dotted(self, node: ast.expr) -> str | None:
        """Return the full name of what an expression names, or `None` where it names nothing that is known."""

    def through(self, node: ast.expr) -> "tuple[ast.expr, Names] | None":
        """Return the expression that a variable was made by, and the place of that."""

    def key(self, node: ast.AST) -> str:
        """Return what makes two expressions the same object."""


@dataclass(frozen=True)
class Hole:
    """What a metavariable stands for, and where."""

    node: ast.AST
    names: Names

    @property
    def key(self) -> str:
        """Return what makes it the same as another."""
        return self.names.key(self.node)


Holes = Mapping[str, Hole]


def root_of(node: ast.expr) -> str | None:
    """Return the dotted text of a chain of names that begins with a plain name, holes left out."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        if node.attr.startswith(HOLE):
            return None
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id.startswith((HOLE, MANY)):
        return None
    return ".".join([node.id, *reversed(parts)])


def is_many(node: ast.AST) -> bool:
    """Return whether a part of a pattern stands for any number of items."""
    if isinstance(node, ast.Starred):
        node = node.value
    if isinstance(node, ast.alias):
        return node.name == MANY
    return (isinstance(node, ast.Name) and node.id == MANY) or (
        isinstance(node, ast.Constant) and node.value is Ellipsis
    )


def is_gap(node: ast.stmt) -> bool:
    """Return whether a statement of a pattern stands for any number of statements."""
    return isinstance(node, ast.Expr) and (
        (isinstance(node.value, ast.Constant) and node.value.value is Ellipsis) or is_many(node.value)
    )
