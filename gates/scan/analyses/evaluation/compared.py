"""Arms that are compared by their scores on the data of the training, where those on others stand beside."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.benchmarks.benching import is_baseline, is_candidate
from gates.scan.analyses.evaluation.evaluating import HELD
from gates.scan.analyses.reading.code import FUNCTIONS, broken, constant, nodes, tail_text
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of
from gates.scan.program.project import Project
from gates.scan.site import Site

TRAINING = re.compile(r"(?i)^train(ing)?(_?(acc|accuracy|score|f1|auc|iou|top1))?$")
SCORED = re.compile(r"(?i)acc|accuracy|score|f1|auc|iou|top1")
UNSCORED = re.compile(r"(?i)loss|nll|entropy|time|second|elapsed|perf_counter|_(ms|s|secs)\b")
CLOSE = re.compile(r"(?i)^(assert_?)?(all|is)_?close$")
ROUNDS = frozenset({"abs", "float", "round"})
SHOWS = frozenset({"print", "echo", "info", "format"})


def compared_on_training(project: Project, module: Module) -> Iterator[Site]:
    """Yield each comparison of two arms by their scores on the data of the training, and nowhere by others."""
    known = project.once(_beside)[0]
    found = [(node, _key(node)) for node in nodes(module, ast.BinOp, ast.Compare, ast.Call)] if known else []
    if any(HELD.search(key) for _, key in found):
        return
    for node, key in found:
        if key in known and (not isinstance(node, ast.Call) or CLOSE.search(tail_of(node.func))):
            yield broken(module, node, f"the arms are compared by {key!r}, {known[key]!r} stands beside it")


def _key(node: ast.AST) -> str:
    """Return the key that both arms of a comparison are asked for: of a difference, an order, what is handed both."""
    sides: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        sides = [node.left, node.right]
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        sides = [node.left, *node.comparators]
    elif isinstance(node, ast.Call) and tail_of(node.func) not in SHOWS:
        sides = node.args[:2]
    asked = [list(_asked(side)) for side in sides]
    if len(asked) != 2 or any(len(each) != 1 for each in asked):
        return ""
    (one, first), (other, second) = (each[0] for each in asked)
    are_arms = any(map(is_baseline, (first, second))) and any(map(is_candidate, (first, second)))
    return one if one == other and are_arms else ""


def _asked(node: ast.expr) -> Iterator[tuple[str, str]]:
    """Yield the keys and fields that a side of a comparison is reckoned of, each with what is asked for it."""
    if isinstance(node, ast.BinOp):
        yield from (*_asked(node.left), *_asked(node.right))
    elif isinstance(node, ast.Call) and tail_of(node.func) in ROUNDS:
        yield from (each for arg in node.args[:1] for each in _asked(arg))
    elif isinstance(node, ast.Subscript) and isinstance(key := constant(node.slice), str):
        yield key, tail_text(node.value)
    elif isinstance(node, ast.Attribute):
        yield node.attr, tail_text(node.value)


def _beside(project: Project) -> Iterator[dict[str, str]]:
    """Yield the keys of scores on the training's data, each with one of others' that a record of scores has, too.

    What stands for a loss or a time in some other record is no such key.
    """
    found: dict[str, str] = {}
    others: set[str] = set()
    for module in project.modules.values():
        for node in nodes(module, ast.Dict, ast.DictComp, ast.ClassDef):
            keys = _keys(node)
            held = [key for key in keys if HELD.search(key)]
            for key in filter(TRAINING.search, keys):
                if UNSCORED.search(keys[key]):
                    others.add(key)
                elif held and (SCORED.search(key) or _is_of_scores(node, module)):
                    found[key] = held[-1]
    yield {key: held for key, held in found.items() if key not in others}


def _keys(node: ast.AST) -> dict[str, str]:
    """Return the keys of a record, and what each stands for: written out, made for each name of a tuple, declared."""
    parts: list[tuple[object, str]] = []
    if isinstance(node, ast.Dict):
        parts = [(constant(k), text_of(v)) for k, v in zip(node.keys, node.values, strict=True) if k is not None]
    elif isinstance(node, ast.DictComp) and isinstance(node.generators[0].iter, ast.Tuple | ast.List):
        parts = [(constant(each), text_of(node.value)) for each in node.generators[0].iter.elts]
    elif isinstance(node, ast.ClassDef):
        parts = [(tail_of(n.target), "") for n in node.body if isinstance(n, ast.AnnAssign)]
    return {key: text for key, text in parts if isinstance(key, str)}


def _is_of_scores(node: ast.AST, module: Module) -> bool:
    """Return whether a record is made where what was predicted is held against what is right, and no loss is taken."""
    function = next((a for a in module.ancestors(node) if isinstance(a, FUNCTIONS)), None)
    if function is None or isinstance(node, ast.ClassDef):
        return False
    called = [tail_of(c.func) for c in inner(function, ast.Call) if isinstance(c, ast.Call)]
    compares = (c for c in inner(function, ast.Compare) if isinstance(c, ast.Compare))
    is_compared = any(isinstance(c.ops[0], ast.Eq) for c in compares)
    return "argmax" in called and is_compared and not any("loss" in name or "entropy" in name for name in called)
