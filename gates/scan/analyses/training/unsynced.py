"""Ranks that do not share their gradients where an accumulation ends, and do where it goes on."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.reading.code import FUNCTIONS, keyword
from gates.scan.analyses.training import windows
from gates.scan.analyses.training.boundaries import Boundary
from gates.scan.program.module import Module
from gates.scan.program.project import Project

ALONE = ("no_sync", "no_backward_sync")


def unsynced(project: Project, module: Module) -> Iterator[tuple[ast.AST, Boundary]]:
    """Yield the conditions under which ranks keep their gradients to themselves that hold where a window ends."""
    for call in (c for name in ALONE for c in module.calls.get(name, ())):
        enabled = keyword(call, "enabled")
        asked: list[tuple[ast.AST, ast.expr, bool]] = [(call, enabled, True)] if enabled is not None else []
        inside: ast.AST = call
        for around in module.ancestors(call):
            if isinstance(around, ast.IfExp | ast.If) and inside is not around.test:
                is_body = inside is around.body or (isinstance(around, ast.If) and inside in around.body)
                asked.append((around, around.test, is_body))
            if isinstance(around, FUNCTIONS):
                break
            inside = around
        for node, test, holds in asked:
            end = windows.boundary(project, module, test)
            if end is not None and end.is_gathering and end.holds is holds:
                yield node, end
                break
