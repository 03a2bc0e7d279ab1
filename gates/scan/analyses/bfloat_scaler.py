"""Scalers for bfloat16, which needs none."""

import ast
from collections.abc import Iterator

from gates.scan.analyses._code import broken, keyword, nodes
from gates.scan.analyses._evaluating import NAMED, NO_GRAD
from gates.scan.analyses._precision import BRAIN, context_of, dtype_of, is_on, scalers
from gates.scan.module import Module
from gates.scan.nodes import text_of
from gates.scan.project import Project
from gates.scan.site import Site

WORDS = ("bfloat16",)


def look(project: Project) -> Iterator[Site]:
    """Yield each dynamic scaler in the function, class or file whose autocast contexts are all in bfloat16."""
    for module in project.modules.values():
        found = [(call, scope) for call, scope in scalers(project, module)]
        if not found:
            continue
        contexts = [
            (made, node)
            for node in nodes(module, ast.With)
            if isinstance(node, ast.With)
            for item in node.items
            if (made := context_of(item, project.scope_at(item.context_expr, module))) is not None
        ]
        trained = [(made, node) for made, node in contexts if not _evaluates(node, module)]
        types = {dtype_of(*made) for made, _ in trained}
        if types != {BRAIN}:
            continue
        for call, _ in found:
            if is_on(call) or _same(call, [made[0] for made, _ in trained]):
                yield broken(module, call, "a dynamic loss scale is used with bfloat16, which needs none")


def _evaluates(node: ast.AST, module: Module) -> bool:
    """Return whether a block runs without gradients, or in a function that evaluates."""
    for around in (node, *module.ancestors(node)):
        if isinstance(around, ast.With) and any(NO_GRAD.search(text_of(i.context_expr)) for i in around.items):
            return True
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            off = any(NO_GRAD.search(text_of(d)) for d in around.decorator_list)
            return off or NAMED.search(around.name) is not None
    return False


def _same(call: ast.Call, contexts: list[ast.Call]) -> bool:
    enabled = keyword(call, "enabled")
    others = [keyword(c, "enabled") for c in contexts]
    return enabled is not None and any(o is not None and text_of(o) == text_of(enabled) for o in others)
