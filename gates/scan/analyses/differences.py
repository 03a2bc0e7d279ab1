"""Differences of two arms held against a tolerance on one side only."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses._benching import called, is_baseline, is_candidate, words
from gates.scan.analyses._code import broken, function_of, nodes, tail_text
from gates.scan.analyses._flow import set_before
from gates.scan.module import Module, tail_of
from gates.scan.nodes import inner, text_of
from gates.scan.project import Project
from gates.scan.site import Site

WORDS = ("baseline*", "fp32*", "float32", "reference*", "control*", "eager*", "base_*", "full_*", "_ref*",
         "ref_*", "expected*", "naive*", "plain*", "vanilla*", "atol", "rtol", "tolerance*", "golden*",
         "double")  # fmt: skip
BAR = re.compile(r"(?i)tol|eps|delta|thresh|limit|max_|margin|within")
CLOSE = re.compile(r"(?i)(^|[^a-z])([ar]?tol|tolerances?|eps|epsilon)([^a-z]|$)")
ALIKE = re.compile(r"(?i)close|equal|same|match|parity|agree|identical|equivalen|consisten|within|accurate|toleran")
MINE = re.compile(
    r"(?i)(^|[^a-z])(lr|old|new|before|after|decay|start|end|prev|last|begin|t0|now)([^a-z]|$)|improv|patience|best|early|"
    r"faster|better|gain|saved|overhead|time|second|_ms|memory|peak|elapsed"
)
REDUCES = frozenset({"max", "min", "mean", "amax", "sum", "item", "float", "double", "cpu", "numpy", "flatten",
                     "median", "detach", "any", "all", "maximum"})  # fmt: skip
CONVERTS = frozenset({"asarray", "array", "tensor", "as_tensor", "float", "stack"})
EITHER = re.compile(r"(?i)drop|worse|regress|no_loss|increase|exceed|slower|higher|lower|too_|below|above|converge")


def look(project: Project) -> Iterator[Site]:
    """Yield each `new - old < tolerance` without `abs`, where closeness is asked for."""
    for module in project.modules.values():
        for node in nodes(module, ast.Compare):
            if not isinstance(node, ast.Compare) or len(node.ops) != 1:
                continue
            left, bar = node.left, node.comparators[0]
            if not isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                continue
            if _is_close(left) and not _is_close(bar):
                left, bar = bar, left
            if not _is_bar(bar):
                continue
            found = _behind(left, module, 3)
            if found is not None and _are_arms(found, bar, module) and not _is_meant(node, module):
                yield broken(module, node, f"{text_of(node)} without abs() is blind to one side")


def _is_bar(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float) and 0 < node.value < 1
    return BAR.search(tail_text(node)) is not None or (isinstance(node, ast.BinOp | ast.Call) and _is_close(node))


def _tolerances(node: ast.expr) -> list[ast.expr]:
    """Return the names that a bar is reckoned of: of `atol + rtol * abs(ref)`, each."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult | ast.Div):
        return [*_tolerances(node.left), *_tolerances(node.right)]
    if isinstance(node, ast.Call) and tail_of(node.func) in {"max", "maximum"}:
        return [each for arg in node.args for each in _tolerances(arg)]
    return [node]


def _is_close(node: ast.expr) -> bool:
    """Return whether a bar is called a tolerance, as for what should be the same."""
    return any(
        isinstance(each, ast.Name | ast.Attribute | ast.Subscript) and bool(CLOSE.search(words(tail_text(each))))
        for each in _tolerances(node)
    )


def _behind(node: ast.expr, module: Module, hops: int) -> ast.BinOp | None:
    """Return the difference that a value is made of: through variables, reductions and relative ones."""
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Sub):
            return node
        return _behind(node.left, module, hops) if isinstance(node.op, ast.Div) else None
    if isinstance(node, ast.GeneratorExp | ast.ListComp):
        return _behind(node.elt, module, hops)
    if isinstance(node, ast.Call):
        if (made := _subtracted(node)) is not None:
            return made
        if len([a for a in node.args if not isinstance(a, ast.Constant)]) > 1:
            return None  # the larger one of two
        inside = node.func.value if isinstance(node.func, ast.Attribute) and not node.args else None
        if inside is None or (isinstance(inside, ast.Name) and inside.id in {"torch", "np", "numpy", "math"}):
            inside = node.args[0] if node.args else None
        return _behind(inside, module, hops) if inside is not None and tail_of(node.func) in REDUCES else None
    if isinstance(node, ast.Name) and hops:
        found = set_before(function_of(node, module) or module.tree, node.id, node.lineno)
        return _behind(found[0][0], module, hops - 1) if len(found) == 1 else None
    return None


def _subtracted(call: ast.Call) -> ast.BinOp | None:
    """Return the difference that a method or a function makes: `out.sub(ref)`, `np.subtract(out, ref)`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in {"sub", "subtract"} or call.keywords:
        return None
    of_library = isinstance(call.func.value, ast.Name) and call.func.value.id in {"torch", "np", "numpy", "jnp"}
    sides = call.args if of_library else [call.func.value, *call.args]
    return ast.copy_location(ast.BinOp(sides[0], ast.Sub(), sides[1]), call) if len(sides) == 2 else None


def _are_arms(node: ast.BinOp, bar: ast.expr, module: Module) -> bool:
    """Return whether a difference is that of two arms, or of a value and what it should be close to."""
    left, right = called(_plain(node.left), module), called(_plain(node.right), module)
    if MINE.search(words(left)) or MINE.search(words(right)) or not left.strip() or not right.strip():
        return False
    if (is_candidate(left) and is_baseline(right)) or (is_baseline(left) and is_candidate(right)):
        return True
    function = function_of(node, module)
    close = _is_close(bar)
    alike = function is not None and ALIKE.search(function.name) is not None
    return (close and (is_baseline(left) or is_baseline(right) or alike)) or (alike and is_baseline(right))


def _plain(node: ast.expr) -> ast.expr:
    """Return the value under conversions: of `out.float()`, `out`."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and not node.args:
            node = node.func.value
        elif tail_of(node.func) in CONVERTS and len(node.args) == 1:
            node = node.args[0]
        else:
            break
    return node


def _is_meant(node: ast.Compare, module: Module) -> bool:
    """Return whether the other side is asked for, too, or the name says that one side is meant."""
    statement = next((a for a in module.ancestors(node) if isinstance(a, ast.stmt)), None)
    text = text_of(statement) if isinstance(statement, ast.Assign | ast.Return | ast.Assert | ast.Expr) else ""
    if isinstance(statement, ast.If):
        text = f"{text_of(statement.test)} {' '.join(text_of(s) for s in statement.body[:2])}"
    if MINE.search(text.partition("=")[0]) and not isinstance(statement, ast.If):
        return True
    names = [a.name for a in module.ancestors(node) if isinstance(a, ast.FunctionDef)][:1]
    return EITHER.search(" ".join([text, *names])) is not None or _both_asked(node, module)


def _both_asked(node: ast.Compare, module: Module) -> bool:
    """Return whether the same difference, or the one turned round, is held against something once more."""
    function = function_of(node, module) or module.tree
    mine = _differences(node, module)
    others = (c for c in inner(function, ast.Compare) if isinstance(c, ast.Compare) and c is not node)
    return any(mine & _differences(other, module) for other in others)


def _differences(node: ast.Compare, module: Module) -> set[frozenset[str]]:
    found = [_behind(side, module, 3) for side in (node.left, *node.comparators)]
    return {frozenset((text_of(f.left), text_of(f.right))) for f in found if f is not None}
