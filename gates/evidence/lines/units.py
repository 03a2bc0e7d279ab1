"""A Python file as its functions and the rest: what of it changed between two of its texts, and where lines went."""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

Function = ast.FunctionDef | ast.AsyncFunctionDef
Key = tuple[str, int]


@dataclass(frozen=True)
class Units:
    """The functions of a file that lie in no other function, and its outline: all the rest of it."""

    tree: ast.Module

    @classmethod
    def of(cls, source: bytes) -> "Units":
        """Read a file; raise `SyntaxError` or `ValueError` where that is no Python."""
        return cls(ast.parse(source))

    @cached_property
    def functions(self) -> dict[Key, Function]:
        """Return each function by its dotted name and, where a name is given again, its number."""
        seen: Counter[str] = Counter()
        found = {}
        for name, node in _functions(self.tree, ""):
            found[name, seen[name]] = node
            seen[name] += 1
        return found

    @cached_property
    def outline(self) -> list[ast.AST]:
        """Return all nodes but those of the bodies of functions, in their order."""
        return [*_nodes(self.tree)]

    @cached_property
    def told(self) -> list[tuple[object, ...]]:
        """Return what the outline says."""
        return _told(self.outline)

    def changed(self, other: "Units") -> list[Function] | None:
        """Return the functions whose bodies another text of the file has otherwise; nothing where more changed."""
        if self.told != other.told:
            return None
        pairs = ((node, other.functions[key]) for key, node in self.functions.items())
        return [node for node, theirs in pairs if _body(node) != _body(theirs)]

    def moved(self, other: "Units") -> dict[int, int]:
        """Return for each line of what is the same in another text the line where that has it."""
        pairs = [*zip(self.outline, other.outline, strict=True)] if self.told == other.told else []
        for key, node in self.functions.items():
            theirs = other.functions.get(key)
            if theirs is not None and _body(node) == _body(theirs):
                pairs.append((node, theirs))
                for one, same in zip(node.body, theirs.body, strict=True):
                    pairs += zip(ast.walk(one), ast.walk(same), strict=True)
        places = ((a, b) for a, b in pairs if isinstance(a, ast.stmt | ast.expr) and isinstance(b, ast.stmt | ast.expr))
        return {a.lineno: b.lineno for a, b in places}


def lines_of(function: Function) -> range:
    """Return the lines of a function's body."""
    return range(function.body[0].lineno, (function.end_lineno or function.lineno) + 1)


def _functions(node: ast.AST, owner: str) -> Iterator[tuple[str, Function]]:
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, Function):
            yield f"{owner}{inner.name}", inner
        else:
            yield from _functions(inner, f"{owner}{inner.name}." if isinstance(inner, ast.ClassDef) else owner)


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for name, value in ast.iter_fields(node):
        if name != "body" or not isinstance(node, Function):
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, ast.AST):
                    yield from _nodes(inner)


def _told(nodes: list[ast.AST]) -> list[tuple[object, ...]]:
    """Return what nodes say, each without those in it."""
    return [(type(node).__name__, *(_plain(value) for _, value in ast.iter_fields(node))) for node in nodes]


def _plain(value: object) -> object:
    """Return a field as it can be compared: of nodes, how many there are, for each is told by itself."""
    if isinstance(value, list):
        return len(value), tuple(repr(one) for one in value if not isinstance(one, ast.AST))
    return "" if isinstance(value, ast.AST) else repr(value)


def _body(function: Function) -> list[str]:
    return [ast.dump(statement) for statement in function.body]
