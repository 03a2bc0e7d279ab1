"""Verdicts of a benchmark that pass what is bad."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses._code import broken, nodes, tail_text
from gates.scan.module import Module
from gates.scan.project import Project
from gates.scan.site import Site

WORDS = ("speed", "faster", "saved", "saving", "reduction", "reduced", "overhead", "drop", "degradation", "diff")
PASS = re.compile(
    r"(?i)(^|_)(pass(ed|es)?|ok(ay)?|success(ful)?|met|meets(_\w+)?|achieved|good|reached|satisfied|target_met)(_|$)"
)
FAIL = re.compile(r"(?i)(^|_)(fail(ed|s|ure)?|too_slow|slow|regress(ed|ion)?|violated|bad|degraded|missed)(_|$)")
MORE = re.compile(r"(?i)speed_?up|faster|acceleration|saved|saving|reduction|reduced|decrease|throughput")
LESS = re.compile(r"(?i)overhead|degradation|_drop|drop_|accuracy_loss|(^|_)(abs_)?diff(erence)?(_|$)|(^|_)error(_|$)")


def look(project: Project) -> Iterator[Site]:
    """Yield each comparison that counts a small gain, or a large loss, as passed."""
    for module in project.modules.values():
        for name, value in _verdicts(module):
            good = PASS.search(name) is not None and not FAIL.search(name)
            if not good and not FAIL.search(name):
                continue
            for compare in _conjuncts(value):
                if (problem := _turned(compare, wanted=good)) is not None:
                    yield broken(module, compare, f"{name}: {problem}")


def _verdicts(module: Module) -> Iterator[tuple[str, ast.expr]]:
    for node in nodes(module, ast.Assign, ast.Dict, ast.keyword, ast.Assert):
        if isinstance(node, ast.Assign):
            yield tail_text(node.targets[0]).strip().rpartition(" ")[2], node.value
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant):
                    yield str(key.value), value
        elif isinstance(node, ast.keyword):
            yield node.arg or "", node.value
        elif isinstance(node, ast.Assert):
            yield "passed", node.test


def _conjuncts(value: ast.expr) -> Iterator[ast.Compare]:
    if isinstance(value, ast.BoolOp):
        for part in value.values:
            yield from _conjuncts(part)
    elif isinstance(value, ast.Compare) and len(value.ops) == 1:
        yield value
    elif isinstance(value, ast.Call) and value.args and tail_text(value.func) == "bool":
        yield from _conjuncts(value.args[0])


def _turned(compare: ast.Compare, *, wanted: bool) -> str | None:
    """Return what is wrong with a comparison whose truth means passed (`wanted`) or failed."""
    left, right, op = compare.left, compare.comparators[0], compare.ops[0]
    if isinstance(left, ast.Constant):
        left, right = right, left
        below = isinstance(op, ast.Gt | ast.GtE)
    else:
        below = isinstance(op, ast.Lt | ast.LtE)
    if not isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) or not _is_bar(right):
        return None
    text = tail_text(left).strip().replace(" ", "_")
    if MORE.search(text) and not LESS.search(text) and below is wanted:
        return f"{ast.unparse(compare)} is true where the gain is small"
    if LESS.search(text) and not MORE.search(text) and below is not wanted:
        return f"{ast.unparse(compare)} is true where the loss is large"
    return None


def _is_bar(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool) and node.value != 0
    return (
        re.search(
            r"(?i)target|min|wanted|expected|least|floor|threshold|required|bar|limit|tol|max|goal", tail_text(node)
        )
        is not None
    )
