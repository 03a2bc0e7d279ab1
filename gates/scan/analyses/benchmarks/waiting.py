"""What waits for a device, and the work that it may still be at where a clock is started."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.benchmarks.spans import Span
from gates.scan.analyses.reading.code import callee, calls, constant, loop_of
from gates.scan.analyses.reading.origins import Origins
from gates.scan.analyses.reading.targets import Targets
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import text_of, walk
from gates.scan.program.project import Project

WAITS = {"synchronize", "item", "elapsed_time", "tolist", "numpy", "cpu", "wait_for_everyone", "barrier"}
FOR_DEBUGGING = re.compile(r"(?i)(^|[._(])(debug|verbose)\w*($|[ )])")


def queued(project: Project, module: Module, function: Function, span: Span, timed: list[ast.Call]) -> ast.Call | None:
    """Return a call of the very work that is timed which nothing waits for before the clock is started: a warm-up."""
    names, begin = {text_of(c.func) for c in timed}, span.begin
    loop = loop_of(begin, module)
    if loop is not None and (loop.end_lineno or 0) < span.end.lineno:  # started in one of the turns: `if i == warm_up`
        turn = list(calls(loop))
        early = [c for c in turn if text_of(c.func) in names]
        return early[0] if early and not any(waits(project, module, c) for c in turn) else None
    held = sorted((c for c in calls(function) if c.lineno <= begin.lineno), key=lambda c: (c.lineno, c.col_offset))
    early = [c for c in held if text_of(c.func) in names and c.lineno < begin.lineno]
    if not early:
        return None
    around = {a for a in module.ancestors(early[-1]) if isinstance(a, ast.If)}
    if not around <= set(module.ancestors(begin)):
        return None  # not done each time
    since = (c for c in held if c.lineno >= early[-1].lineno)
    return None if any(waits(project, module, c) for c in since) else early[-1]


def waits(project: Project, module: Module, call: ast.Call, depth: int = 3) -> bool:
    """Return whether a call waits for the device, itself or in what it calls, and not for debugging alone."""
    if any(isinstance(a, ast.If) and FOR_DEBUGGING.search(text_of(a.test)) for a in module.ancestors(call)):
        return False
    if tail_of(call.func) in WAITS or re.search(r"(?i)sync|wait", tail_of(call.func)) or _reads(call):
        return True
    target = callee(project, module, call) if depth else None
    if target is None:
        return depth > 0 and _is_handed_wait(project, module, call, depth)
    there = project.scope_of(target, module).module
    return any(waits(project, there, c, depth - 1) for c in calls(target))


def _reads(call: ast.Call) -> bool:
    """Return whether a call may fetch a value from the device: `float(loss)`, `out.to("cpu")`."""
    if isinstance(call.func, ast.Name) and call.func.id in {"float", "bool"}:
        return any(isinstance(arg, ast.Name | ast.Call | ast.Subscript) for arg in call.args)
    return tail_of(call.func) == "to" and any(constant(arg) == "cpu" for arg in call.args)


def _is_handed_wait(project: Project, module: Module, call: ast.Call, depth: int) -> bool:
    """Return whether what a variable holds waits for the device when it is called: a function that was handed over."""
    scope = project.scope_at(call, module)
    if not isinstance(call.func, ast.Name | ast.Attribute) or scope.dotted(call.func) is not None:
        return False
    targets = Targets(project, project.once(origins_of)[0])
    for one in targets.behind(call.func, scope):
        there = project.scope_of(one, module).module
        held = calls(one) if not isinstance(one, ast.Lambda) else [n for n in walk(one) if isinstance(n, ast.Call)]
        if any(waits(project, there, c, depth - 1) for c in held):
            return True
    return False


def origins_of(project: Project) -> Iterator[Origins]:
    """Yield where the objects of a program come from."""
    yield Origins(project)
