"""Arms that are compared by their scores on the data of the training, where those on others stand beside."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.benchmarks.benching import is_baseline, is_candidate
from gates.scan.analyses.evaluation.evaluating import HELD
from gates.scan.analyses.reading.code import FUNCTIONS, broken, constant, nodes, tail_text
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner
from gates.scan.program.project import Project
from gates.scan.site import Site

TRAINING = re.compile(r"(?i)^train(ing)?(_?(acc|accuracy|score|f1|auc|iou|top1))?$")
SCORED = re.compile(r"(?i)acc|accuracy|score|f1|auc|iou|top1")


def compared_on_training(project: Project, module: Module) -> Iterator[Site]:
    """Yield each difference of two arms that is of their scores on the data of the training."""
    for node in nodes(module, ast.BinOp):
        key = _key(node) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) else ""
        held = project.once(_beside)[0].get(key, "") if key else ""
        if held:
            yield broken(module, node, f"the arms are compared by {key!r}, {held!r} stands beside it")


def _key(node: ast.BinOp) -> str:
    """Return the training's key that both arms of a difference are asked for."""
    left, right = node.left, node.right
    if not isinstance(left, ast.Subscript) or not isinstance(right, ast.Subscript):
        return ""
    key, arms = constant(left.slice), (tail_text(left.value), tail_text(right.value))
    is_same = isinstance(key, str) and key == constant(right.slice) and TRAINING.search(key) is not None
    are_arms = any(map(is_baseline, arms)) and any(map(is_candidate, arms))
    return str(key) if is_same and are_arms else ""


def _beside(project: Project) -> Iterator[dict[str, str]]:
    """Yield the keys of scores on the training's data, each with one of others' that a record of scores has, too."""
    found: dict[str, str] = {}
    for module in project.modules.values():
        for node in nodes(module, ast.Dict, ast.DictComp):
            keys = _keys(node)
            held = [key for key in keys if HELD.search(key)]
            for key in filter(TRAINING.search, keys) if held else ():
                if SCORED.search(key) or _is_of_scores(node, module):
                    found[key] = held[-1]
    yield found


def _keys(node: ast.AST) -> list[str]:
    """Return the keys of a dictionary that is written out, or made for each name of a tuple."""
    parts: list[ast.expr | None] = []
    if isinstance(node, ast.Dict):
        parts = [*node.keys]
    elif isinstance(node, ast.DictComp) and isinstance(node.generators[0].iter, ast.Tuple | ast.List):
        parts = [*node.generators[0].iter.elts]
    return [value for value in map(constant, parts) if isinstance(value, str)]


def _is_of_scores(node: ast.AST, module: Module) -> bool:
    """Return whether a record is made where what was predicted is held against what is right, and no loss is taken."""
    function = next((a for a in module.ancestors(node) if isinstance(a, FUNCTIONS)), None)
    if function is None:
        return False
    called = [tail_of(c.func) for c in inner(function, ast.Call) if isinstance(c, ast.Call)]
    compares = (c for c in inner(function, ast.Compare) if isinstance(c, ast.Compare))
    is_compared = any(isinstance(c.ops[0], ast.Eq) for c in compares)
    return "argmax" in called and is_compared and not any("loss" in name or "entropy" in name for name in called)
