"""Stretches of a function between two readings of a clock, as the code takes their differences, or keeps both."""

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gates.scan.analyses.benchmarks.clocks import is_clock
from gates.scan.analyses.reading.code import calls, loop_of
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, kept, text_of, walk
from gates.scan.program.scope import Scope

CONTEXTS = {"contextmanager", "asynccontextmanager"}
KEEPS = {"append", "appendleft", "add"}
DIFFERS = re.compile(r"^(ediff1d|diff|subtract)$")


@dataclass(frozen=True)
class Span:
    """The code between two readings of a clock: both of them, and the calls between in their order."""

    begin: ast.Call
    end: ast.Call
    calls: tuple[ast.Call, ...]


def clocks_in(function: Function, scope: Scope) -> list[ast.Call]:
    """Return the readings of a clock in a function, in their order."""
    found = (c for c in calls(function) if is_clock(c, scope))
    return sorted(found, key=lambda c: (c.lineno, c.col_offset))


def spans(function: Function, module: Module, scope: Scope) -> Iterator[Span]:
    """Yield the stretches that a function times."""
    clocks = clocks_in(function, scope)
    seen: set[ast.Call] = set()
    for begin, end in (*_subtracted(function, module, clocks), *_collected(function, module, clocks)):
        if end not in seen:
            seen.add(end)
            loop = loop_of(end, module) if begin is end else None
            held = sorted(calls(loop if loop is not None else function), key=lambda c: (c.lineno, c.col_offset))
            between = [c for c in held if c not in clocks and begin.lineno < c.lineno <= end.lineno]
            if loop is not None:  # from one turn to the next
                between = [c for c in held if c.lineno > end.lineno] + [c for c in held if c.lineno < end.lineno]
            yield Span(begin, end, tuple(between))


def around_yield(function: Function, module: Module, scope: Scope) -> Iterator[Span]:
    """Yield the end of what a context manager times that is written as a generator, and the calls after its `yield`."""
    if not any(tail_of(d) in CONTEXTS for d in function.decorator_list):
        return
    gives = [n.lineno for n in inner(function, ast.Yield) if isinstance(n, ast.Yield)]
    clocks = clocks_in(function, scope)
    for begin, end in (*_subtracted(function, module, clocks), *_collected(function, module, clocks)):
        if len(gives) == 1 and begin.lineno < gives[0] < end.lineno:
            after = (c for c in calls(function) if c not in clocks and gives[0] < c.lineno <= end.lineno)
            yield Span(begin, end, tuple(after))


def _subtracted(function: Function, module: Module, clocks: list[ast.Call]) -> Iterator[tuple[ast.Call, ast.Call]]:
    """Yield the readings of which the one is taken from the other: `clock() - began`, `row["end"] - row["begin"]`."""
    for node in inner(function, ast.BinOp):
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)):
            continue
        ends = [c for c in clocks if c is node.left] or [c for c in clocks if text_of(node.left) in _targets(c, module)]
        ends = [c for c in ends if c.lineno <= node.lineno][-1:] or ends[:1]
        begins = (
            [c for c in clocks if text_of(node.right) in _targets(c, module) and c.lineno < ends[0].lineno]
            if ends
            else []
        )
        if begins:
            yield begins[-1], ends[0]


def _collected(function: Function, module: Module, clocks: list[ast.Call]) -> Iterator[tuple[ast.Call, ast.Call]]:
    """Yield the readings that are kept one after the other, where differences are taken later."""
    stamps = [clock for clock in clocks if _is_kept(clock, function, module)]
    if not stamps or not kept(module.tree, _differs):
        return
    for begin, end in itertools.pairwise(clocks):
        if begin in stamps and end in stamps and begin.lineno < end.lineno:
            yield begin, end
    for stamp in stamps:
        loop = loop_of(stamp, module)
        if loop is not None and not any(c is not stamp and loop in module.ancestors(c) for c in clocks):
            held = _holder(stamp, module)
            if held is not None and any(text_of(held) in text for text in kept(function, _differences)):
                yield stamp, stamp


def _is_kept(clock: ast.Call, function: Function, module: Module) -> bool:
    """Return whether a reading goes into a list or a mapping, itself or by its variable."""
    if _holder(clock, module) is not None or isinstance(module.parents.get(clock), ast.List | ast.Tuple):
        return True
    for name in _targets(clock, module):
        read = [n for n in inner(function, ast.Name) if isinstance(n, ast.Name) and n.id == name]
        into = [module.parents.get(n) for n in read if isinstance(n.ctx, ast.Load)]
        if any(isinstance(p, ast.Tuple | ast.List | ast.Dict) or _adds(p) for p in into):
            return not any(isinstance(p, ast.BinOp) for p in into)
    return False


def _holder(clock: ast.Call, module: Module) -> ast.expr | None:
    """Return the list or mapping that a reading is put into."""
    parent = module.parents.get(clock)
    if isinstance(parent, ast.Call) and _adds(parent) and isinstance(parent.func, ast.Attribute):
        return parent.func.value
    target = parent.targets[0] if isinstance(parent, ast.Assign) else None
    return target.value if isinstance(target, ast.Subscript) else None


def _adds(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and tail_of(node.func) in KEEPS


def _targets(clock: ast.Call, module: Module) -> set[str]:
    """Return the texts of what a reading is assigned to."""
    parent = module.parents.get(clock)
    targets = parent.targets if isinstance(parent, ast.Assign) else []
    return {text_of(t) for t in targets if isinstance(t, ast.Name | ast.Attribute | ast.Subscript)}


def _differs(tree: ast.AST) -> bool:
    """Return whether a file takes differences at all."""
    return any(
        (isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub))
        or (isinstance(n, ast.Call) and DIFFERS.search(tail_of(n.func)) is not None)
        for n in walk(tree)
    )


def _differences(function: Function) -> tuple[str, ...]:
    """Return the texts of the differences in a function, and of what goes through two lists side by side."""
    return tuple(
        text_of(n) for n in walk(function)
        if (isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub))
        or (isinstance(n, ast.Call) and (tail_of(n.func) in {"zip", "pairwise"} or DIFFERS.search(tail_of(n.func))))
    )  # fmt: skip
