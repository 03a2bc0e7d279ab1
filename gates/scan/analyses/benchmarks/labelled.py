"""Comparisons that are chosen by the name of what is measured: `case "speedup": return got >= self.value`."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.benchmarks.benching import is_baseline, is_candidate
from gates.scan.analyses.benchmarks.verdicts import verdicts
from gates.scan.analyses.reading.code import FUNCTIONS, constant, function_of, tail_text
from gates.scan.analyses.reading.flow import set_before
from gates.scan.program.module import Module
from gates.scan.program.nodes import text_of

VAGUE = re.compile(
    r"(?i)(decreas|increas|reduc|improv|min|max|low|upp|high|less|great|small|large|big|fast|slow|at_|drop|ris)\w*|"
    r"more|above|below|under|over|up|down|gain|ceiling|floor|mem|memory|peak|time|value|metric"
)
RELATIVE = re.compile(r"(?i)saved|saving|ratio|share|gain|speed|reduc|improv|relative|delta|change|diff|fraction|perc")
TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
Labelled = tuple[str, ast.Compare, ast.Compare, bool]


def labelled(module: Module) -> Iterator[Labelled]:
    """Yield what gives a verdict, its comparison, and the same one with the measured side called by its label."""
    for name, value, good in verdicts(module):
        if not isinstance(value, ast.Compare) or len(value.ops) != 1 or (at := _measured(value, module)) is None:
            continue
        for label in _labels(value, module):
            if not VAGUE.fullmatch(label):
                yield name, value, _called(value, label, at), good


def _measured(compare: ast.Compare, module: Module) -> int | None:
    """Return which side is measured, where the other one is a field of the object that asks; neither names an arm."""
    sides = [compare.left, compare.comparators[0]]
    fields = [isinstance(side, ast.Attribute) and text_of(side.value) == "self" for side in sides]
    if sum(fields) != 1 or any(is_baseline(tail_text(side)) or is_candidate(tail_text(side)) for side in sides):
        return None
    at = fields.index(False)
    return at if _is_as_labelled(_plain(sides[at]), module) else None


def _is_as_labelled(node: ast.expr, module: Module) -> bool:
    """Return whether what a value is called, or computed of, does not say that it is another one than its label."""
    if not isinstance(node, ast.Name | ast.Subscript) or RELATIVE.search(tail_text(node)):
        return False
    body = function_of(node, module) or module.tree
    made = set_before(body, node.id, node.lineno) if isinstance(node, ast.Name) else []
    return all(isinstance(value, ast.Subscript | ast.Attribute | ast.Name) for value, _ in made)


def _plain(node: ast.expr) -> ast.expr:
    """Return the value under `abs` and conversions."""
    while isinstance(node, ast.Call) and len(node.args) == 1 and text_of(node.func) in {"abs", "float", "round"}:
        node = node.args[0]
    return node


def _called(compare: ast.Compare, label: str, at: int) -> ast.Compare:
    """Return the comparison, of what a label names, with its bar on the right."""
    bar = f"{tail_text([compare.comparators[0], compare.left][at]).strip().rpartition(' ')[2]}_bar"
    left, right = (ast.Attribute(ast.Name("", ast.Load()), name, ast.Load()) for name in (label, bar))
    sign = type(compare.ops[0])
    return ast.copy_location(ast.Compare(left, [TURNED.get(sign, sign)() if at else sign()], [right]), compare)


def _labels(node: ast.AST, module: Module) -> list[str]:
    """Return the names that are asked for where a node is reached: by the nearest `case`, or by `if name == "..."`."""
    below = node
    for around in module.ancestors(node):
        if isinstance(around, FUNCTIONS):
            break
        if isinstance(around, ast.match_case):
            return _of_pattern(around.pattern)
        if isinstance(around, ast.If) and below in around.body:
            return _of_test(around.test)
        below = around
    return []


def _of_pattern(pattern: ast.pattern) -> list[str]:
    """Return the names of a pattern: of `("speedup" | "saved"), got`, both."""
    if isinstance(pattern, ast.MatchSequence):
        return _of_pattern(pattern.patterns[0]) if pattern.patterns else []
    if isinstance(pattern, ast.MatchOr):
        return [name for each in pattern.patterns for name in _of_pattern(each)]
    value = constant(pattern.value) if isinstance(pattern, ast.MatchValue) else None
    return [value] if isinstance(value, str) and value.isidentifier() else []


def _of_test(test: ast.expr) -> list[str]:
    """Return the names of a test: of `kind == "speedup"` and of `kind in ("speedup", "saved")`."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq | ast.In) or len(test.ops) > 1:
        return []
    right = test.comparators[0]
    values = map(constant, right.elts if isinstance(right, ast.Tuple | ast.Set | ast.List) else [right])
    return [value for value in values if isinstance(value, str) and value.isidentifier()]
