"""Exceptions of a training step or of a tracker that nobody hears of."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses._code import broken, calls, nodes, tail_text
from gates.scan.module import tail_of
from gates.scan.nodes import text_of, walk
from gates.scan.project import Project
from gates.scan.site import Site

WORDS = ("except",)
WIDE = {"Exception", "BaseException", "RuntimeError"}
OBJECT = re.compile(r"(?i)scaler|wandb|tracker|mlflow|tensorboard|\brun\b|writer|comet|neptune|aim_run")
STEP = {"backward", "unscale_", "update"}


def look(project: Project) -> Iterator[Site]:
    """Yield each wide `except` that says nothing, around calls of a scaler or a tracker."""
    for module in project.modules.values():
        for node in nodes(module, ast.Try):
            if not isinstance(node, ast.Try):
                continue
            about = _about(node)
            for handler in node.handlers:
                if about and _is_wide(handler) and _is_silent(handler):
                    yield broken(module, handler, f"what goes wrong in {about} is not told to anybody")


def _about(node: ast.Try) -> str | None:
    """Return the call of a scaler, an optimizer or a tracker in what is tried."""
    for statement in node.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            return None
        for call in calls(statement):
            if not isinstance(call.func, ast.Attribute):
                continue
            if any(isinstance(node, ast.Call) for node in walk(call.func.value)):
                continue
            owner = tail_text(call.func.value)
            optimizer = call.func.attr == "step" and re.search(r"(?i)opt|scaler", owner)
            if call.func.attr == "backward" or optimizer or (OBJECT.search(owner) and call.func.attr not in QUIET):
                return f"{text_of(call.func)}()"
    return None


QUIET = {"finish", "close", "end", "teardown", "get"}


def _is_wide(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(tail_of(kind) in WIDE for kind in kinds)


def _is_silent(handler: ast.ExceptHandler) -> bool:
    """Return whether nothing in a handler says, keeps or passes on what happened."""
    for statement in handler.body:
        if isinstance(statement, ast.Pass | ast.Continue | ast.Break):
            continue
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        if isinstance(statement, ast.Return) and (statement.value is None or isinstance(statement.value, ast.Constant)):
            continue
        return False
    return True
