"""Differences of two arms held against a tolerance on one side only."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses._benching import called, is_baseline, is_candidate, words
from gates.scan.analyses._code import broken, function_of, nodes, tail_text
from gates.scan.analyses._flow import set_before
from gates.scan.module import Module
from gates.scan.nodes import text_of
from gates.scan.project import Project
from gates.scan.site import Site

WORDS = ("baseline", "fp32", "float32", "reference", "control", "eager", "base_", "full_", "_ref", "ref_", "expected",
         "naive", "plain", "vanilla")  # fmt: skip
BAR = re.compile(r"(?i)tol|eps|delta|thresh|limit|max_|margin")
MINE = re.compile(
    r"(?i)(^|[^a-z])(lr|old|new|before|after|decay)([^a-z]|$)|improv|patience|best|early|faster|better|gain|saved|overhead|time|second|_ms|memory|peak"
)


def look(project: Project) -> Iterator[Site]:
    """Yield each `new - old < tolerance` without `abs`, where closeness is asked for."""
    for module in project.modules.values():
        for node in nodes(module, ast.Compare):
            if not isinstance(node, ast.Compare) or len(node.ops) != 1:
                continue
            left, right = _behind(_undivided(node.left), module), node.comparators[0]
            if not isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE) or not _is_bar(right):
                continue
            if (
                isinstance(left, ast.BinOp)
                and isinstance(left.op, ast.Sub)
                and _are_arms(left, module)
                and not _is_meant(node, module)
            ):
                yield broken(module, node, f"{text_of(node)} without abs() is blind to one side")


def _is_bar(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float) and 0 < node.value < 1
    return BAR.search(tail_text(node)) is not None


def _behind(node: ast.expr, module: Module) -> ast.expr:
    """Return the difference that a variable was last set to, or the expression itself."""
    if not isinstance(node, ast.Name):
        return node
    found = set_before(function_of(node, module) or module.tree, node.id, node.lineno)
    return found[0][0] if len(found) == 1 and isinstance(found[0][0], ast.BinOp) else node


def _undivided(node: ast.expr) -> ast.expr:
    """Return the difference that a relative one is made of."""
    return node.left if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) else node


def _are_arms(node: ast.BinOp, module: Module) -> bool:
    left, right = called(node.left, module), called(node.right, module)
    if MINE.search(words(left)) or MINE.search(words(right)):
        return False
    return (is_candidate(left) and is_baseline(right)) or (is_baseline(left) and is_candidate(right))


def _is_meant(node: ast.Compare, module: Module) -> bool:
    """Return whether the other side is asked for, too, or the name says that one side is meant."""
    statement = next((a for a in module.ancestors(node) if isinstance(a, ast.stmt)), None)
    text = text_of(statement) if isinstance(statement, ast.Assign | ast.Return | ast.Assert | ast.Expr) else ""
    return (
        MINE.search(text.partition("=")[0]) is not None
        or re.search(r"(?i)drop|worse|regress|no_loss", text) is not None
    )
