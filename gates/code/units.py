"""The functions of a file, what of them another text has otherwise, and where it has the rest."""

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gates.code.meanings import Function


class Units(NamedTuple):
    """The functions of a file that lie in no other, with their full names, and its outline: the rest, and its nodes."""

    functions: Mapping[Function, str]
    outline: str
    nodes: tuple[ast.AST, ...]

    @classmethod
    def of(cls, source: bytes) -> "Units":
        """Read a file; raise `SyntaxError` or `ValueError` where that is no Python."""
        whole, bare = ast.parse(source), ast.parse(source)
        for function, _ in [*_functions(bare)]:
            del function.body[ast.get_docstring(function) is not None :]  # which others read
        return cls(dict(_functions(whole)), ast.dump(bare), tuple(ast.walk(bare)))

    def changed(self, other: "Units") -> list[Function] | None:
        """Return the functions whose bodies another text of the file has otherwise; nothing where more changed."""
        if self.outline != other.outline:
            return None
        pairs = zip(self.functions, other.functions, strict=True)
        return [node for node, theirs in pairs if ast.dump(node) != ast.dump(theirs)]

    def moved(self, other: "Units") -> dict[int, int]:
        """Return for each line of what is the same in another text the line where that has it."""
        if self.outline != other.outline:
            return {}
        pairs = [*zip(self.nodes, other.nodes, strict=True)]
        for node, theirs in zip(self.functions, other.functions, strict=True):
            if ast.dump(node) == ast.dump(theirs):
                pairs += zip(ast.walk(node), ast.walk(theirs), strict=True)
        places = ((a, b) for a, b in pairs if isinstance(a, ast.stmt | ast.expr) and isinstance(b, ast.stmt | ast.expr))
        return {a.lineno: b.lineno for a, b in places}

    def stays_in(self, other: "Units") -> bool:
        """Return whether all that is the same in another text of the file stands in the same lines there."""
        moved = self.moved(other)
        return bool(moved) and all(line == there for line, there in moved.items())


def lines_of(function: Function) -> range:
    """Return the lines of a function's body."""
    return range(function.body[0].lineno, (function.end_lineno or function.lineno) + 1)


def _functions(node: ast.AST, owner: str = "") -> Iterator[tuple[Function, str]]:
    for inner in ast.iter_child_nodes(node):
        name = f"{owner}{getattr(inner, 'name', '')}"
        if isinstance(inner, Function):
            yield inner, name
        else:
            yield from _functions(inner, f"{name}." if isinstance(inner, ast.ClassDef) else owner)
