"""Generators that feed a training: what they do with each batch runs with each step."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.reading.code import LOOPS, accelerated, callee, calls, function_of, loop_of
from gates.scan.analyses.training.hot import is_training, root_of
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

PASSING = frozenset({"enumerate", "zip", "tqdm", "trange", "iter", "islice", "cycle", "chain"})
MAX_HOPS = 4


def feeds_training(project: Project, module: Module, node: ast.AST) -> bool:
    """Return whether a node runs with each batch that a generator of the program yields to a loop which trains."""
    root = root_of(project, module, node)
    if not isinstance(root, LOOPS) or function_of(root, module) not in project.once(_feeding):
        return False
    return any(loop_of(given, module) is root for given in inner(root, ast.Yield)) and accelerated(module)


def _feeding(project: Project) -> Iterator[Function]:
    """Yield the generators that loops which train go through, themselves or by others."""
    for module in project.modules.values():
        for kind in LOOPS:
            for loop in module.live.get(kind, ()):
                asked = list(_asked(loop))
                for node in asked if asked and is_training(project, module, loop) else ():
                    yield from _behind(project, node, project.scope_at(node, module), MAX_HOPS)


def _asked(loop: ast.AST) -> Iterator[ast.expr]:
    """Yield what a loop goes through, or takes the next of with each turn."""
    if isinstance(loop, ast.For | ast.AsyncFor):
        yield loop.iter
    else:
        yield from (call.args[0] for call in calls(loop) if tail_of(call.func) == "next" and call.args)


def _behind(project: Project, node: ast.expr, scope: Scope, hops: int) -> Iterator[Function]:
    """Yield the generators that an iterable comes from."""
    if not hops:
        return
    target = callee(project, scope.module, node) if isinstance(node, ast.Call) else None
    owner = scope.class_of(node) if target is None else None
    method = project.method(owner, "__iter__") if owner is not None else None
    target = method[0] if method is not None else target
    if target is not None:
        yield target
        there = project.scope_of(target, scope.module)
        given = (n.value for n in inner(target, ast.YieldFrom) if isinstance(n, ast.YieldFrom))
        for inside in (*given, *(n.iter for n in inner(target, ast.For) if isinstance(n, ast.For))):
            yield from _behind(project, inside, there, hops - 1)
    elif isinstance(node, ast.Call) and tail_of(node.func) in PASSING:
        for arg in node.args:
            yield from _behind(project, arg, scope, hops - 1)
    elif (made := scope.through(node)) is not None:
        yield from _behind(project, *made, hops - 1)
