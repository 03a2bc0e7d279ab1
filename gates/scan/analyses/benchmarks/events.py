"""Times between two events of a device, asked for before the device has come to them."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.benchmarks.waiting import waits
from gates.scan.analyses.reading.code import broken, calls, class_of, function_of
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import text_of, walk
from gates.scan.program.project import Project
from gates.scan.site import Site


def by_events(project: Project, module: Module) -> Iterator[Site]:
    """Yield each time between two events of the device that is asked for before the device has come to them."""
    for call in module.calls.get("elapsed_time", ()) if "Event" in module.calls else ():
        function = function_of(call, module)
        held = [c for c in calls(function) if c is not call and c.lineno <= call.lineno] if function else []
        recorded = [c for c in held if tail_of(c.func) == "record"]
        given = {text_of(arg) for arg in call.args}
        own = [c for c in recorded if _of(c) in given]
        if not own and "Event" not in {tail_of(c.func) for c in held}:
            if function is not None and _is_of_another_method(project, module, function, call, held):
                yield broken(module, call, "the time between two events is read while the device still works")
            continue
        last = max((c.lineno for c in own or recorded), default=None)
        done = (c for c in held if last is not None and c.lineno >= last)
        if last is not None and not any(_waits(project, module, c) for c in done):
            yield broken(module, call, "the time between two events is read while the device still works")


def _is_of_another_method(
    project: Project, module: Module, function: Function, call: ast.Call, held: list[ast.Call]
) -> bool:
    """Return whether another method of a class records the event that a time ends with, and nobody waits after it."""
    owner, given = class_of(function, module), {text_of(arg) for arg in call.args if isinstance(arg, ast.Attribute)}
    methods = [n for n in walk(owner) if isinstance(n, ast.FunctionDef)] if owner is not None else []
    recording = [m for m in methods if any(tail_of(c.func) == "record" and _of(c) in given for c in calls(m))]
    if owner is None or len(recording) != 1 or function in recording:
        return False
    own = [*held, *(c for m in methods if m is not function for c in calls(m))]
    if any(_waits(project, module, c) for c in own):
        return False
    used = project.named.get(owner.name, [])
    around = [(function_of(made, there) or there.tree, there) for made, there in used]
    return bool(used) and not any(_waits(project, there, c) for body, there in around for c in calls(body))


def _waits(project: Project, module: Module, call: ast.Call) -> bool:
    return tail_of(call.func) == "query" or waits(project, module, call)


def _of(call: ast.Call) -> str:
    return text_of(call.func.value) if isinstance(call.func, ast.Attribute) else ""
