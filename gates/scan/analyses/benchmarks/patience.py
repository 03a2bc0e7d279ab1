"""Searches that end when their patience is out: the conditions that end them while there is some left."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.benchmarks.verdicts import NOT, given
from gates.scan.analyses.reading.code import constant, function_of, nodes, tail_text
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import text_of

ENDS = re.compile(
    r"(?i)(^|_)(should_?|must_?|early_?|is_?)*(stop(ped|ping|s)?|finish(ed)?|done|exhausted|give_?up)(_|$)|^over$"
)
GOES_ON = re.compile(r"(?i)(^|_)(keep_?(going|on|training)|continues?|go_?on|proceed|running|has_patience)(_|$)")
PATIENCE = re.compile(r"(?i)(^|[^a-z])(patience|patient|max_(bad|stale|wait|no_improve\w*)(_\w+)?)([^a-z]|$)")


def out_of_patience(module: Module) -> Iterator[tuple[ast.Compare, str]]:
    """Yield each comparison that ends a search while there is patience left, or goes on when there is none."""
    for test, ends in _endings(module):
        for compare, told in _compared(test, ends):
            above = _is_above(compare, module)
            if above is not None and above is not told:
                yield compare, f"{text_of(compare)} {'ends' if told else 'goes on with'} the search the wrong way round"


def _endings(module: Module) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the conditions whose truth ends a search, or lets it go on."""
    for name, value in given(module):
        if (ends := _ends(name)) is not None:
            yield value, ends
    for node in nodes(module, ast.If):
        assert isinstance(node, ast.If)
        function = function_of(node, module)
        for last in (*node.body[:1], *node.body[-1:]):
            if isinstance(last, ast.Break):
                yield node.test, True
            elif isinstance(last, ast.Return) and isinstance(said := constant(last.value), bool) and function:
                ends = _ends(function.name)
                yield from [(node.test, ends is said)] if ends is not None else []
            elif isinstance(last, ast.Assign) and isinstance(said := constant(last.value), bool):
                ends = _ends(tail_text(last.targets[0]).strip().rpartition(" ")[2])
                yield from [(node.test, ends is said)] if ends is not None else []


def _ends(name: str) -> bool | None:
    ends, goes_on = ENDS.search(name) is not None, GOES_ON.search(name) is not None
    return ends if ends is not goes_on and not NOT.search(name) else None


def _compared(test: ast.expr, ends: bool) -> Iterator[tuple[ast.Compare, bool]]:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _compared(test.operand, not ends)
    elif isinstance(test, ast.BoolOp):
        for part in test.values:
            yield from _compared(part, ends)
    elif isinstance(test, ast.Call) and tail_of(test.func) == "bool" and test.args:
        yield from _compared(test.args[0], ends)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        yield test, ends


def _is_above(compare: ast.Compare, module: Module) -> bool | None:
    """Return whether a comparison is true of a count that is above its patience; `None` for other ones."""
    left, right = compare.left, compare.comparators[0]
    if not isinstance(compare.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        return None
    above = isinstance(compare.ops[0], ast.Gt | ast.GtE)
    for count, bar, is_above in ((left, right, above), (right, left, not above)):
        if PATIENCE.search(tail_text(bar)) and not PATIENCE.search(tail_text(count)) and _grows(count, module):
            return is_above
    return None


def _grows(count: ast.expr, module: Module) -> bool:
    """Return whether something counts up: by what is added to it, or as what has passed since."""
    if isinstance(count, ast.BinOp):
        return isinstance(count.op, ast.Sub) and bool(tail_text(count.left).strip())
    added = [
        n for n in nodes(module, ast.AugAssign) if isinstance(n, ast.AugAssign) and text_of(n.target) == text_of(count)
    ]
    return bool(added) and all(isinstance(n.op, ast.Add) for n in added)
