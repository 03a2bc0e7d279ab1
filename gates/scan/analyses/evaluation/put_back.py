"""Models that are put back into training after an evaluation which they were never taken out of it for."""

import ast
from collections.abc import Iterator
from functools import partial

from gates.scan.analyses.reading.code import callee, calls, function_of
from gates.scan.analyses.training.forwards import NO_GRAD
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import text_of
from gates.scan.program.project import Project


def only_put_back(project: Project) -> Iterator[tuple[Module, ast.Call]]:
    """Yield the forward passes without gradients before `net.train()` in a block that has no `net.eval()` before."""
    for module in project.modules.values():
        for call in module.calls.get("train", ()):
            statement = module.parents.get(call)
            is_bare = isinstance(call.func, ast.Attribute) and not call.args and not call.keywords
            if not is_bare or not isinstance(statement, ast.Expr):
                continue
            forward = _forward_before(project, text_of(call.func.value), statement, module)  # type: ignore[attr-defined]  # a method
            if forward is not None:
                yield module, forward


def _forward_before(project: Project, model: str, statement: ast.Expr, module: Module) -> ast.Call | None:
    """Return the model's forward pass in the block without gradients just before a statement."""
    around = module.parents[statement]
    block = next((b for _, b in ast.iter_fields(around) if isinstance(b, list) and statement in b), [])
    before = block[: block.index(statement)] if block else []
    last = before[-1] if before else None
    if not isinstance(last, ast.With) or not any(NO_GRAD.search(text_of(i.context_expr)) for i in last.items):
        return None
    body = function_of(statement, module)
    modes = [c for c in calls(body) if tail_of(c.func) in {"eval", "requires_grad_"}] if body is not None else []
    is_taken_out = any(isinstance(c.func, ast.Attribute) and text_of(c.func.value) == model for c in modes)
    if (
        is_taken_out
        or any(c.args for c in _modes_of(model, body))
        or any(map(partial(_evaluates, project, module), before))
    ):
        return None
    return next((c for c in calls(last) if text_of(c.func) == model), None)


def _evaluates(project: Project, module: Module, statement: ast.stmt) -> bool:
    """Return whether a statement puts something into evaluation itself, or by a function that it calls."""
    for call in calls(statement):
        target = callee(project, module, call)
        told = (
            [tail_of(call.func), *(tail_of(c.func) for c in calls(target))]
            if target is not None
            else [tail_of(call.func)]
        )
        if {"eval", "train"} & set(told):
            return True
    return False


def _modes_of(model: str, body: ast.AST | None) -> Iterator[ast.Call]:
    """Yield the calls that set the mode of a model: `net.train(False)`."""
    for call in calls(body) if body is not None else ():
        is_own = isinstance(call.func, ast.Attribute) and text_of(call.func.value) == model
        if is_own and tail_of(call.func) == "train":
            yield call
