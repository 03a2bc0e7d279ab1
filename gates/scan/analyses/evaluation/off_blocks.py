"""Evaluations in a block whose context of the program puts their model off: `with resting(net): ...`."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.evaluation.evaluating import BATCHES, READS, Evaluation
from gates.scan.analyses.evaluation.rested import GRADIENTS, callers
from gates.scan.analyses.reading.code import LOOPS, callee, constant, functions
from gates.scan.analyses.training.forwards import trains
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project


def in_blocks(project: Project) -> Iterator[Evaluation]:
    """Yield the loops over batches that only run, in such a block, the model which it puts into evaluation mode."""
    for module in project.modules.values():
        for function in functions(module) if ast.With in module.live else ():
            if trains(function) or GRADIENTS.search(text_of(function)) or _is_trained_on(project, function):
                continue
            for block in inner(function, ast.With):
                models = {text_of(model) for model in _put_off(project, module, block)}
                yield from _loops(module, function, block, models) if models else ()


def _loops(module: Module, function: Function, block: ast.AST, models: set[str]) -> Iterator[Evaluation]:
    for loop in inner(block, *LOOPS):
        made = [c for c in inner(loop, ast.Call) if isinstance(c, ast.Call)]
        runs = [c for c in made if text_of(c.func) in models and (c.args or c.keywords)]
        is_read = any(tail_of(c.func) in READS for c in made) or any(True for _ in inner(loop, ast.Yield))
        over = text_of(loop.iter) if isinstance(loop, ast.For) else ""
        if runs and is_read and BATCHES.search(over):
            yield Evaluation(module, function, loop, min(runs, key=lambda c: c.lineno), named=False)
            return


def _put_off(project: Project, module: Module, block: ast.AST) -> Iterator[ast.expr]:
    """Yield the models that the contexts of a block put into evaluation mode before it begins."""
    for item in block.items if isinstance(block, ast.With) else ():
        call = item.context_expr
        target = callee(project, module, call) if isinstance(call, ast.Call) else None
        if target is None or not any("contextmanager" in text_of(mark) for mark in target.decorator_list):
            continue
        begin = min((n.lineno for n in inner(target, ast.Yield) if isinstance(n, ast.Yield)), default=0)
        for made in inner(target, ast.Call):
            if isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.lineno < begin:
                model = _handed(made.func.value, call, target)
                if model is not None and _is_off(made, call, target):
                    yield model


def _handed(node: ast.expr, call: ast.expr, target: Function) -> ast.expr | None:
    """Return what a call hands a function under a name."""
    if not isinstance(node, ast.Name) or not isinstance(call, ast.Call):
        return None
    return argument(call, target, node.id, bound=False)


def _is_off(made: ast.Call, call: ast.expr, target: Function) -> bool:
    """Return whether a call of a context puts a model into evaluation mode, by what the context is handed."""
    if tail_of(made.func) == "eval":
        return not made.args
    given = [*made.args, *(k.value for k in made.keywords)]
    if tail_of(made.func) != "train" or len(given) != 1:
        return False
    return constant(_handed(given[0], call, target) or given[0]) is False


def _is_trained_on(project: Project, function: Function) -> bool:
    """Return whether a training goes over what a function yields."""
    for call, there in callers(project, function):
        for around in there.ancestors(call):
            if isinstance(around, ast.For) and any(n is call for n in walk(around.iter)) and trains(around):
                return True
    return False
