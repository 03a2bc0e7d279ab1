"""Evaluations that stand in the function that trains, and go over what it has just trained on."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.evaluation.evaluating import HELD, TRAIN
from gates.scan.analyses.evaluation.splits import split_name
from gates.scan.analyses.reading.code import broken, calls, is_backward
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, walk
from gates.scan.site import Site

HANDED_ON = frozenset({"prepare", "setup", "setup_dataloaders", "len", "print", "info"})


def evaluated_in_place(module: Module, function: Function) -> Iterator[Site]:
    """Yield each loop over the training loader after `eval()`, where one that is held back is never gone over."""
    loops = [n for n in inner(function, ast.For) if isinstance(n, ast.For)]
    trained = {split_name(loop.iter, module) for loop in loops if _trains(loop)}
    if not trained or not _has_unused(module, function):
        return
    for loop in loops:
        name = split_name(loop.iter, module)
        if name in trained and TRAIN.search(name) and not _trains(loop) and _is_after_eval(loop, module):
            yield broken(module, loop, f"an evaluation goes over {name}, which is trained on")


def _trains(loop: ast.For) -> bool:
    return any(is_backward(call) for call in calls(loop))


def _is_after_eval(loop: ast.For, module: Module) -> bool:
    """Return whether a model is put into evaluation just before, in the same block."""
    around = module.parents[loop]
    block = next((b for _, b in ast.iter_fields(around) if isinstance(b, list) and loop in b), [])
    before = block[: block.index(loop)] if block else []
    modes = [tail_of(c.func) for s in before for c in calls(s) if tail_of(c.func) in {"eval", "train"} and not c.args]
    return modes[-1:] == ["eval"]


def _has_unused(module: Module, function: Function) -> bool:
    """Return whether a function has a loader that is held back, and uses none such."""
    names = [n for n in walk(function) if isinstance(n, ast.Name) and HELD.search(n.id) and not TRAIN.search(n.id)]
    bound = {n.id for n in names if isinstance(n.ctx, ast.Store) and "load" in n.id.lower()}
    return bool(bound) and not any(isinstance(n.ctx, ast.Load) and not _is_handed_on(n, module) for n in names)


def _is_handed_on(name: ast.Name, module: Module) -> bool:
    """Return whether a loader is but prepared by a framework, or measured."""
    call = module.parents.get(name)
    return isinstance(call, ast.Call) and tail_of(call.func) in HANDED_ON
