"""Training steps with manual optimization that never clear their gradients."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses._code import broken, calls, class_of
from gates.scan.analyses._frameworks import framed
from gates.scan.module import tail_of
from gates.scan.nodes import walk
from gates.scan.project import Project
from gates.scan.site import Site

WORDS = ("automatic_optimization*",)


def look(project: Project) -> Iterator[Site]:
    """Yield the first step of each Lightning module that steps by hand and nowhere clears."""
    for found in project.once(framed):
        owner = class_of(found.function, found.module)
        if found.framework != "Lightning" or owner is None:
            continue
        steps = [c for c in calls(found.function) if tail_of(c.func) == "step" and _is_optimizer(c)]
        if steps and not any(isinstance(n, ast.Attribute) and n.attr in {"zero_grad", "grad"} for n in walk(owner)):
            yield broken(found.module, min(steps, key=lambda c: c.lineno), "no optimizer's gradients are ever cleared")


def _is_optimizer(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and re.search("(?i)opt", tail_of(call.func.value)) is not None
