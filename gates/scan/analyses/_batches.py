"""Loops that run a model over batches and take no step: evaluation, inference, embedding."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses._benching import is_benchmark
from gates.scan.analyses._code import LOOPS, accelerated, callee, calls, function_of
from gates.scan.analyses._flow import is_forward
from gates.scan.analyses._hot import is_training, root_of
from gates.scan.analyses._origins import COMPREHENSIONS
from gates.scan.analyses._steps import Steps
from gates.scan.module import Module, tail_of
from gates.scan.nodes import inner, text_of, walk
from gates.scan.project import Project

BATCHES = re.compile(r"(?i)load|batch|(^|[_.(])(dl|it)(\b|_)|data|patch|tile|chunk|crop|window|slice|range|split")
MADE = re.compile(r"\b(rand|randn|randint|zeros|ones|empty|full)(_like)?\(")
MAX_DEPTH = 2


def runs_each_batch(project: Project, module: Module, node: ast.AST) -> bool:
    """Return whether a node runs with each batch of such a loop, there or in what it calls."""
    root = root_of(project, module, node)
    if root is None or is_training(project, module, root):
        return False
    if isinstance(root, LOOPS):
        return accelerated(module) and _is_over_batches(project, module, root)
    is_alone = sum(tail_of(c.func) == "empty_cache" for c in calls(root)) < 2  # else it parts phases that need memory
    return root in project.once(_steps)[0].sites and is_alone


def _steps(project: Project) -> Iterator[Steps]:
    begun = [
        (m, loop) for m in project.modules.values() if accelerated(m)
        for kind in (*LOOPS, *COMPREHENSIONS) for loop in m.live.get(kind, ())
        if not is_training(project, m, loop) and _is_over_batches(project, m, loop)
    ]  # fmt: skip

    def is_free(module: Module, node: ast.AST, root: ast.AST) -> bool:
        return isinstance(root, COMPREHENSIONS) or root_of(project, module, node) is root

    yield Steps(project, iter(begun), is_free)


def _is_over_batches(project: Project, module: Module, loop: ast.AST) -> bool:
    """Return whether a loop hands a part of what it goes over to a model that is made before it."""
    each = loop.generators[0] if isinstance(loop, COMPREHENSIONS) else loop
    if not isinstance(each, ast.For | ast.AsyncFor | ast.comprehension) or not BATCHES.search(text_of(each.iter)):
        return False
    if is_benchmark(function_of(loop, module) or loop, module):
        return False
    names, made = _parts(each.target, loop)
    return any(
        _takes(call, names) and not ({n.id for n in walk(call.func) if isinstance(n, ast.Name)} & made)
        and _forwards(project, module, call, MAX_DEPTH)
        for call in calls(loop)
        if not any(isinstance(a, LOOPS) and a is not loop and _within(a, loop, module) for a in module.ancestors(call))
    )  # fmt: skip


def _within(node: ast.AST, loop: ast.AST, module: Module) -> bool:
    return any(a is loop for a in module.ancestors(node))


def _parts(target: ast.expr, loop: ast.AST) -> tuple[set[str], set[str]]:
    """Return the names of what a turn is given and of what is made of it, and all names that a turn sets."""
    names = {n.id for n in walk(target) if isinstance(n, ast.Name)}
    made = set(names)
    for node in sorted(inner(loop, ast.Assign), key=lambda n: n.lineno):  # type: ignore[attr-defined]
        assert isinstance(node, ast.Assign)
        targets = {n.id for t in node.targets for n in walk(t) if isinstance(n, ast.Name)}
        made |= targets
        if any(isinstance(n, ast.Name) and n.id in names for n in walk(node.value)):
            names |= targets if not MADE.search(text_of(node.value)) else set()
    return names, made


def _takes(call: ast.Call, names: set[str]) -> bool:
    given = (*call.args, *(k.value for k in call.keywords))
    return any(isinstance(n, ast.Name) and n.id in names for arg in given for n in walk(arg))


def _forwards(project: Project, module: Module, call: ast.Call, depth: int) -> bool:
    """Return whether a call is a forward pass, or runs one outside of a loop."""
    if is_forward(project, module, call):
        return True
    target = callee(project, module, call) if depth else None
    if target is None:
        return False
    there = project.scope_of(target, module).module
    looped = {c for loop in inner(target, *LOOPS) for c in calls(loop)}
    return any(c not in looped and _forwards(project, there, c, depth - 1) for c in calls(target))
