"""Code of the kind that a pattern speaks of, as it is written: whether any of it in a line can run."""

import ast
from collections import defaultdict

from gates.code.symbols import Resolver
from gates.model import Location
from gates.scan.patterns.pattern import Pattern
from gates.syntax import Unparsed, live_nodes

ALSO: dict[type[ast.AST], type[ast.AST]] = {
    ast.With: ast.AsyncWith, ast.For: ast.AsyncFor, ast.FunctionDef: ast.AsyncFunctionDef,
    ast.Attribute: ast.Name, ast.Name: ast.Attribute,
}  # fmt: skip


class Written:
    """Looks for code of a pattern's kind in lines of files; each file is read once."""

    def __init__(self, pattern: Pattern, resolver: Resolver) -> None:
        kind = type(pattern.body[0]) if isinstance(pattern.body, tuple) else type(pattern.body)
        self._kinds = (kind, ALSO.get(kind, kind))
        self._words = pattern.words
        self._resolver = resolver
        self._files: dict[str, tuple[dict[int, list[ast.AST]], frozenset[ast.AST]]] = {}

    def may_run(self, place: Location) -> bool:
        """Return whether some code of the kind that begins in a line can run, or none is found there."""
        if place.path not in self._files:
            self._files[place.path] = self._read(place.path)
        by_line, live = self._files[place.path]
        here = by_line.get(place.line or 1, [])
        return not here or any(node in live for node in here)

    def dead(self, path: str) -> list[Location]:
        """Return where code with all names of the pattern stands in a file that never runs."""
        if path not in self._files:
            self._files[path] = self._read(path)
        by_line, live = self._files[path]
        return [
            Location(path=path, line=line, last_line=getattr(node, "end_lineno", None) or line)
            for line, nodes in sorted(by_line.items())
            for node in nodes[:1]
            if node not in live and self._words <= _names_in(node)
        ]

    def _read(self, path: str) -> tuple[dict[int, list[ast.AST]], frozenset[ast.AST]]:
        found: dict[int, list[ast.AST]] = defaultdict(list)
        try:
            tree = self._resolver.module(self._resolver.root / path).tree
        except Unparsed:
            return found, frozenset()
        for node in ast.walk(tree):
            if isinstance(node, self._kinds):
                found[getattr(node, "lineno", 1)].append(node)
        return found, frozenset(live_nodes(tree))


def _names_in(node: ast.AST) -> set[str]:
    found = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return found | {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
