"""Parameters that are put back to float32 one by one, after their model was turned into another type."""

import ast
import re

from gates.scan.analyses.precision.precision import type_named
from gates.scan.analyses.reading.code import callee, calls, keyword
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project

UPCASTS = re.compile(r"(?i)upcast|cast_training|(^|_)(float|fp)_?32(_|$)")


def is_recast(project: Project, body: ast.AST, module: Module, since: int, names: set[str]) -> bool:
    """Return whether code sets parameters to float32, itself or in what it hands them or their model to."""
    if any(_is_set_whole(project, n, module) for n in inner(body, ast.Assign) if getattr(n, "lineno", 0) > since):
        return True
    return any(
        _upcasts(project, call, module)
        for call in calls(body)
        if call.lineno > since and any(text_of(arg) in names for arg in call.args)
    )


def to_whole(project: Project, call: ast.Call, module: Module) -> bool:
    """Return whether a call turns something into float32: `p.to(torch.float32)`."""
    named = keyword(call, "dtype")
    given = [*call.args, *([named] if named is not None else [])] if tail_of(call.func) == "to" else []
    return any(type_named(arg, project.scope_at(call, module)) == "torch.float32" for arg in given)


def _upcasts(project: Project, call: ast.Call, module: Module) -> bool:
    target = callee(project, module, call)
    there = project.scope_of(target, module).module if target is not None else module
    sets = inner(target, ast.Assign) if target is not None else ()
    return UPCASTS.search(tail_of(call.func)) is not None or any(_is_set_whole(project, n, there) for n in sets)


def _is_set_whole(project: Project, node: ast.AST, module: Module) -> bool:
    """Return whether a statement is `p.data = p.data.float()`."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    of_data = any(tail_of(target) == "data" and "grad" not in text_of(target) for target in targets)
    made = (n for n in walk(node) if isinstance(n, ast.Call)) if of_data else ()
    return any(tail_of(call.func) == "float" or to_whole(project, call, module) for call in made)
