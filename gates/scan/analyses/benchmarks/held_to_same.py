"""Trainings of one function that are seeded differently, and whose results are held to be the same."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from gates.scan.analyses.reading.code import broken, calls, constant, functions, is_backward
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, walk
from gates.scan.site import Site

SEEDS = frozenset({"manual_seed", "seed_everything", "set_seed", "manual_seed_all"})
SAME = re.compile(r"^(assert_(all)?close|assert_array_(almost_)?equal|assert_equal)$")
CLOSE = frozenset({"allclose", "equal", "isclose", "array_equal"})


def held_to_same(module: Module) -> Iterator[Site]:
    """Yield the odd seed of trainings of which the results are asserted to be the same."""
    if len(SEEDS & module.calls.keys()) == 0 or "backward" not in module.words:
        return
    for function in functions(module):
        made = sorted((c for c in calls(function) if tail_of(c.func) in SEEDS and c.args), key=lambda c: c.lineno)
        for tail in dict.fromkeys(tail_of(call.func) for call in made):
            sown = [(call, constant(call.args[0])) for call in made if tail_of(call.func) == tail]
            counted = Counter(value for _, value in sown)
            if len(counted) != 2 or any(not isinstance(value, int) for value in counted):
                continue
            odd = next(call for call, value in reversed(sown) if counted[value] == min(counted.values()))
            first = next(value for call, value in sown if call is not odd)
            if _trains_and_asserts(function, sown):
                seeds = f"one training has the seed {first}, the other {constant(odd.args[0])}"
                yield broken(module, odd, f"{seeds}, and their results are held to be the same")
                break


def _trains_and_asserts(function: ast.AST, sown: list[tuple[ast.Call, object]]) -> bool:
    """Return whether each seed is followed by a training and by an assertion of sameness, before the next one."""
    lines = [call.lineno for call, _ in sown]
    back = [call.lineno for call in calls(function) if is_backward(call)]
    same = [node.lineno for node in _sameness(function)]
    ends = [*lines[1:], 10**9]
    spans = list(zip(lines, ends, strict=True))
    return all(any(a <= line < b for line in found) for a, b in spans for found in (back, same))


def _sameness(function: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements that assert that things are the same."""
    for node in inner(function, ast.Expr, ast.Assert):
        asked = {tail_of(each.func) for each in walk(node) if isinstance(each, ast.Call)}
        denied = any(isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.Not) for each in walk(node))
        told = asked & CLOSE if isinstance(node, ast.Assert) else any(map(SAME.search, asked))
        if isinstance(node, ast.stmt) and told and not denied:
            yield node
