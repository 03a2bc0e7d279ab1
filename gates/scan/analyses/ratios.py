"""Ratios of two arms the wrong way up."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses._benching import GAIN, RATE, SAVED, called, is_baseline, is_candidate, words
from gates.scan.analyses._code import broken, function_of, nodes, tail_text
from gates.scan.module import Module, tail_of
from gates.scan.project import Project
from gates.scan.site import Site

TIME = re.compile(r"(?i)(^|[^a-z])(ms|us|ns|sec|secs|seconds?|times?|elapsed|latenc(y|ies)|durations?|dt)([^a-z]|$)")
SHARE = re.compile(r"(?i)ratio|factor|left|remain|_x$|fold")
WORDS = ("speed", "faster", "saved", "saving", "reduction", "reduced", "acceleration")


def look(project: Project) -> Iterator[Site]:
    """Yield each speed-up that divides the new time by the old one, and each saving with its sign turned."""
    for module in project.modules.values():
        for name, value in _formulas(module):
            if GAIN.search(name):
                for left, right in _quotients(value, module):
                    if _is_turned(left, right):
                        yield broken(module, value, f"{name} divides {left.strip()} by {right.strip()}, upside down")
            elif SAVED.search(name) and (problem := _saving(value, module) or _left(name, value, module)):
                yield broken(module, value, f"{name}: {problem}")


def _is_turned(left: str, right: str) -> bool:
    """Return whether a speed-up divides the wrong way: by both arms, or by one of them and what is clearly a time."""
    rate = RATE.search(left) or RATE.search(right)
    over, under = (is_baseline, is_candidate) if rate else (is_candidate, is_baseline)
    if over(left) and under(right):
        return True
    if rate or not TIME.search(words(f"{left} {right}")):
        return False
    told = [is_candidate(text) or is_baseline(text) for text in (left, right)]
    return (over(left) and not told[1]) or (under(right) and not told[0])


def _left(name: str, value: ast.expr, module: Module) -> str | None:
    """Return what is wrong with a saving that is the share which is left."""
    if SHARE.search(name):
        return None
    pairs = [(left, right) for left, right in _quotients(value, module) if is_candidate(left) and is_baseline(right)]
    return "the new arm divided by the old one is the share that is left" if pairs else None


def _formulas(module: Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield each expression with the name that it is given: a variable's, a key's, a keyword's, a function's."""
    for node in nodes(module, ast.Assign, ast.AnnAssign, ast.Dict, ast.keyword, ast.Return):
        if isinstance(node, ast.Assign):
            yield tail_text(node.targets[0]), node.value
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


def _quotients(value: ast.expr, module: Module) -> Iterator[tuple[str, str]]:
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
        yield _text(value.left, module), _text(value.right, module)
    elif isinstance(value, ast.Call) and tail_of(value.func) in {"round", "float", "abs"} and value.args:
        yield from _quotients(value.args[0], module)
    elif isinstance(value, ast.IfExp):
        yield from _quotients(value.body, module)


def _text(node: ast.expr, module: Module) -> str:
    """Return the names that a side is made of; a mean or median is what it is of."""
    if isinstance(node, ast.Call) and node.args:
        return f"{tail_text(node.func)} {_text(node.args[0], module)}"
    if isinstance(node, ast.BinOp):
        return f"{_text(node.left, module)} {_text(node.right, module)}"
    return called(node, module)


def _saving(value: ast.expr, module: Module) -> str | None:
    """Return what is wrong with a share that is saved: it is 1 - new / old, or (old - new) / old."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        return _saving(value.left, module) or _saving(value.right, module)
    if not isinstance(value, ast.BinOp):
        return None
    if (
        isinstance(value.op, ast.Sub)
        and isinstance(value.right, ast.BinOp)
        and isinstance(value.right.op, ast.Div)
        and is_baseline(_text(value.right.left, module))
        and is_candidate(_text(value.right.right, module))
    ):
        return "the old arm is divided by the new one, upside down"
    if (
        isinstance(value.op, ast.Div)
        and isinstance(value.left, ast.BinOp)
        and isinstance(value.left.op, ast.Sub)
        and is_candidate(_text(value.left.left, module))
        and is_baseline(_text(value.left.right, module))
    ):
        return "the old arm is subtracted from the new one, so a saving is negative"
    if (
        isinstance(value.op, ast.Sub)
        and is_candidate(_text(value.left, module))
        and is_baseline(_text(value.right, module))
    ):
        return "the old arm is subtracted from the new one, so a saving is negative"
    return None
