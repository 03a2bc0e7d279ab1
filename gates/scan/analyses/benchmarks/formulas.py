"""Expressions with what they are called: by a variable, a key, a keyword, a function, or a text printed beside."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from gates.scan.analyses.reading.code import constant, function_of, nodes, tail_text
from gates.scan.analyses.reading.flow import set_before
from gates.scan.program.module import Module

LABEL = re.compile(r"([A-Za-z][\w /-]{2,30}?)\s*[:=]?\s*$")
BEHIND = re.compile(r"(?i)\s*[x×%]?\s+(faster|speed-?up|\w+ ?/ ?s(?:ec)?)\b")  # noqa: RUF001  # as it is written in reports
PLACE = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?[a-zA-Z]|\{[^{}]*\}")


def formulas(module: Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield each expression with the name that it is given: a variable's, a key's, a keyword's, a function's."""
    yield from _printed(module)
    for node in nodes(module, ast.Assign, ast.AnnAssign, ast.Dict, ast.keyword, ast.Return):
        if isinstance(node, ast.Assign):
            yield from _assigned(node.targets[0], node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield tail_text(node.target), node.value
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant):
                    yield str(key.value), value
        elif isinstance(node, ast.keyword):
            yield node.arg or "", node.value
        elif isinstance(node, ast.Return) and node.value is not None:
            function = function_of(node, module)
            if function is not None and isinstance(node.value, ast.BinOp | ast.Call):
                yield function.name, node.value


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        yield from ((tail_text(name), part) for name, part in zip(target.elts, value.elts, strict=True))
    else:
        yield tail_text(target), value


def _printed(module: Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield what is printed beside its name: `f"speedup: {a / b}"`, `print("speedup", a / b)`, `"%.1fx faster" % x`."""
    for node in nodes(module, ast.JoinedStr, ast.Call, ast.BinOp):
        parts = _parts(node)
        for value, label in pairwise(parts if not isinstance(node, ast.Call) or _is_format(node) else ()):
            if isinstance(value, ast.expr) and isinstance(label, str) and (named := BEHIND.match(label)):
                yield named[1], _made(value, module)
        for label, value in pairwise(parts):
            inside = _made(value, module) if isinstance(value, ast.expr) else None
            if isinstance(label, str) and isinstance(inside, ast.BinOp | ast.Call) and (named := LABEL.search(label)):
                yield named[1], inside


def _parts(node: ast.AST) -> list[ast.expr | str]:
    """Return the texts and values of what is printed, in their order."""
    if isinstance(node, ast.JoinedStr):
        return [_text(part) or _inside(part) for part in node.values]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and (text := _text(node.left)):
        return _filled(text, node.right.elts if isinstance(node.right, ast.Tuple) else [node.right])
    if not isinstance(node, ast.Call) or any(isinstance(arg, ast.Starred) for arg in node.args):
        return []
    if _is_format(node) and isinstance(node.func, ast.Attribute) and (text := _text(node.func.value)):
        return _filled(text, node.args)
    first = _text(node.args[0]) if node.args else ""
    if len(PLACE.findall(first)) == len(node.args) - 1 > 0:
        return _filled(first, node.args[1:])
    return [_text(arg) or arg for arg in node.args]


def _inside(part: ast.expr) -> ast.expr:
    return part.value if isinstance(part, ast.FormattedValue) else part


def _is_format(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format"


def _filled(text: str, values: list[ast.expr]) -> list[ast.expr | str]:
    """Return the texts between the places of a format, and what these are filled with."""
    texts = PLACE.split(text)
    if len(texts) != len(values) + 1:
        return []
    between: list[ast.expr | str] = [*values, ""]
    return [part for text, value in zip(texts, between, strict=True) for part in (text, value)]


def _text(node: ast.expr) -> str:
    value = constant(node)
    return value if isinstance(value, str) else ""


def _made(value: ast.expr, module: Module) -> ast.expr:
    """Return the quotient that a variable without a telling name was set to: `r = a / b`."""
    if not isinstance(value, ast.Name):
        return value
    before = set_before(function_of(value, module) or module.tree, value.id, value.lineno)
    return before[0][0] if len(before) == 1 and isinstance(before[0][0], ast.BinOp) else value
