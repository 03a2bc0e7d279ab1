"""Quotients that are named by what they divide by what: `"amp/fp32"`, `amp_over_fp32`."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.reading.code import nodes
from gates.scan.program.module import Module
from gates.scan.program.nodes import text_of

SLASH = re.compile(r"^\s*([A-Za-z_][\w -]*?)\s*/\s*([A-Za-z_][\w -]*?)\s*$")
OVER = re.compile(r"^(?:\w+_)??([a-z0-9]+)_over_([a-z0-9]+)$")


def misnamed(module: Module) -> Iterator[tuple[ast.expr, str]]:
    """Yield each division that is named the other way round, with its name."""
    for name, (over, under), value in _named(module):
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
            sides = text_of(value.left), text_of(value.right)
            told = [[_is_in(word, side) for side in sides] for word in (over, under)]
            if told == [[False, True], [True, False]]:
                yield value, name


def _named(module: Module) -> Iterator[tuple[str, tuple[str, str], ast.expr]]:
    """Yield what is stored under a name or a key that tells of two words, and the words."""
    for node in nodes(module, ast.Assign, ast.Dict):
        pairs: list[tuple[ast.expr | None, ast.expr]] = []
        if isinstance(node, ast.Assign):
            pairs += [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.Dict):
            pairs += zip(node.keys, node.values, strict=True)
        for key, value in pairs:
            for label in _labels(key):
                if (words := _words(label)) is not None:
                    yield label, words, value


def _labels(key: ast.expr | None) -> Iterator[str]:
    """Yield the texts of a key, or the name: `f"{arm}/base"` reads `arm/base`."""
    if isinstance(key, ast.Name | ast.Attribute):
        yield text_of(key).rpartition(".")[2]
    elif isinstance(key, ast.Subscript):
        yield from _labels(key.slice)
    elif isinstance(key, ast.Tuple):
        for each in key.elts:
            yield from _labels(each) if not isinstance(each, ast.Name | ast.Attribute) else ()
    elif isinstance(key, ast.Constant) and isinstance(key.value, str):
        yield key.value
    elif isinstance(key, ast.JoinedStr):
        parts = (p.value if isinstance(p, ast.Constant) else text_of(p.value) for p in key.values)  # type: ignore[attr-defined]  # the other kind
        yield "".join(map(str, parts))


def _words(label: str) -> tuple[str, str] | None:
    found = SLASH.match(label) or OVER.match(label)
    return (found[1], found[2]) if found is not None and found[1] != found[2] else None


def _is_in(word: str, text: str) -> bool:
    """Return whether a text has a word, as a whole or as a part of a name between underscores."""
    return re.search(rf"(?i)(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", text) is not None
