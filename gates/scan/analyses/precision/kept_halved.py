"""Models that are kept in float16 and put into training mode, whoever makes their optimizer, beside a scaler."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.precision.casts import casts
from gates.scan.analyses.precision.precision import HALF, scalers
from gates.scan.analyses.reading.code import FUNCTIONS, MODEL, class_of, function_of, statement_of
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import text_of, walk
from gates.scan.program.project import Project

BACK = frozenset({"float", "bfloat16"})


def kept_halved(project: Project) -> Iterator[tuple[ast.Call, Module]]:
    """Yield the halvings, always done, of what its class or its function puts into training mode and never turns back.

    A scaler is made in its file, or in that of a class which its own extends.
    """
    for module in project.modules.values():
        for call in casts(project, module, HALF) if "train" in project.named else ():
            statement = statement_of(call, module)
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            targets = [_root(call)] if isinstance(statement, ast.Expr) else targets  # of a module, it is done in place
            model = next((t for t in targets if MODEL.search(tail_of(t))), None)
            if model is None or not MODEL.search(tail_of(_root(call))) or _is_chosen(statement, module):
                continue
            around = class_of(call, module) if isinstance(model, ast.Attribute) else function_of(call, module)
            if around is None or not _is_scaled(project, module, call):
                continue
            asked = [c for c in walk(around) if isinstance(c, ast.Call) and isinstance(c.func, ast.Attribute)]
            own = [c for c in asked if text_of(c.func.value) == text_of(model)]  # type: ignore[attr-defined]  # a method
            trains = any(tail_of(c.func) == "train" and not c.args and not c.keywords for c in own)
            if trains and not any(tail_of(c.func) in BACK for c in own):
                yield call, module


def _root(node: ast.expr) -> ast.expr:
    """Return what is halved, through the methods before it: of `model.to(device).half()`, `model`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return node


def _is_chosen(statement: ast.stmt | None, module: Module) -> bool:
    """Return whether a statement runs under a condition."""
    for around in module.ancestors(statement) if statement is not None else ():
        if isinstance(around, FUNCTIONS):
            return False
        if isinstance(around, ast.If | ast.Try | ast.Match | ast.For | ast.While):
            return True
    return False


def _is_scaled(project: Project, module: Module, call: ast.Call) -> bool:
    owner = project.scope_at(call, module).self_class
    files = [module, *(info.scope.module for info in (project.order_of(owner) if owner is not None else ()))]
    return any(True for each in files for _ in scalers(project, each))
