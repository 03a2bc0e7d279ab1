"""Times of work on a device, read before the device is done."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses._benching import BENCH, is_benchmark, is_called_benchmark
from gates.scan.analyses._code import broken, callee, calls, class_of, function_of, functions, loop_of
from gates.scan.analyses._flow import is_forward
from gates.scan.analyses._origins import Origins
from gates.scan.analyses._targets import Targets
from gates.scan.analyses._timers import Timed, blocks, stretches
from gates.scan.module import Function, Module, tail_of
from gates.scan.nodes import inner, text_of, walk
from gates.scan.project import ClassInfo, Project
from gates.scan.site import Site

WORDS = ("timeit", "perf_counter", "monotonic", "time.time", "time()", "perf_counter_ns", "monotonic_ns")
CLOCKS = {
    "time.time",
    "time.perf_counter",
    "time.monotonic",
    "time.perf_counter_ns",
    "time.monotonic_ns",
    "timeit.default_timer",
}
TAILS = {name.rpartition(".")[2] for name in CLOCKS}
WAITS = {"synchronize", "item", "elapsed_time", "tolist", "numpy", "cpu", "wait_for_everyone", "barrier"}
WORK = re.compile(
    r"(?i)model|net\b|forward|train|step|backward|run|infer|loop|epoch|generate|work|func|fn\b|matmul|call"
)
BEGINS = {"__enter__", "start", "begin", "tic", "reset", "restart", "__init__"}
ENDS = {"__exit__", "stop", "end", "finish", "toc", "elapsed", "lap", "seconds", "pause"}
MAX_HOPS = 2
CUDA = re.compile(r"cuda|GradScaler|autocast")


def look(project: Project) -> Iterator[Site]:
    """Yield each reading of the clock at the end of a timed region that nothing waited in."""
    for module in project.modules.values():
        yield from _by_library(project, module)
        if not TAILS & module.calls.keys():
            continue
        origins = project.once(_origins)[0]
        for function in functions(module):
            if not any(tail_of(call.func) in TAILS for call in calls(function)):
                continue
            is_known = is_benchmark(function, module) and _on_device(module)
            if is_known:
                yield from _regions(project, module, function)
            elif not _on_device(module) and function.args.args:
                yield from _of_callers(project, module, function, origins)
            yield from _since_attribute(project, module, function, origins)


def _by_library(project: Project, module: Module) -> Iterator[Site]:
    """Yield each `timeit.timeit(lambda: model(x))` of work on a device that nothing waits for."""
    for call in (*module.calls.get("timeit", ()), *module.calls.get("repeat", ())):
        scope = project.scope_at(call, module)
        if scope.dotted(call.func) not in {"timeit.timeit", "timeit.repeat"} or not call.args or not _on_device(module):
            continue
        work = [c for c in walk(call.args[0]) if isinstance(c, ast.Call)]
        timed = isinstance(call.args[0], ast.Lambda) and any(map(_is_work, work)) and is_benchmark(call, module)
        if timed and not any(_waits(project, module, c, 3) for c in work):
            yield broken(module, call, "the clock is read while the device still works")


def _on_device(module: Module) -> bool:
    names = (n.attr for n in module.live.get(ast.Attribute, []) if isinstance(n, ast.Attribute))
    texts = (
        n.value for n in module.live.get(ast.Constant, []) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    )
    return any(CUDA.search(name) for name in names) or any(text.startswith("cuda") for text in texts)


def _of_callers(project: Project, module: Module, function: Function, origins: Origins) -> Iterator[Site]:
    """Yield where a function times what it is handed, where those who hand it something measure a device."""
    handed = {arg.arg for arg in function.args.args}
    if not any(isinstance(c.func, ast.Name) and c.func.id in handed for c in calls(function)):
        return
    for call, there in origins.called(function):
        if _on_device(there) and (is_benchmark(function, module) or is_benchmark(call, there)):
            yield from _regions(project, module, function)
            return


def _origins(project: Project) -> Iterator[Origins]:
    yield Origins(project)


def _regions(project: Project, module: Module, function: Function) -> Iterator[Site]:
    """Yield the ends of the timed regions of a function that end too early."""
    scope = project.scope_of(function, module)
    clocks = [c for c in calls(function) if scope.dotted(c.func) in CLOCKS]
    starts = {name: c.lineno for c in clocks for name in _assigned(c, module)}
    for node in inner(function, ast.BinOp):
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and isinstance(node.right, ast.Name)):
            continue
        start = starts.get(node.right.id)
        ends = [c for c in clocks if c is node.left] or [c for c in clocks if _names(node.left) & _assigned(c, module)]
        if start is None or len(ends) != 1 or ends[0].lineno <= start:
            continue
        end = ends[0]
        region = [c for c in calls(function) if start < c.lineno <= end.lineno and c not in clocks]
        work = [c for c in region if _works(project, module, c)]
        if work and not any(_waits(project, module, c, 3) for c in region if c.lineno >= work[-1].lineno or c in work):
            yield broken(module, end, f"the clock is read while the device still works ({text_of(work[-1].func)})")


def _since_attribute(project: Project, module: Module, function: Function, origins: Origins) -> Iterator[Site]:
    """Find the end of a time that another method began, where nothing waits for the device before it."""
    scope = project.scope_of(function, module)
    owner = class_of(function, module)
    methods = [n for n in walk(owner) if n is not function] if owner is not None else []
    for node in inner(function, ast.BinOp) if methods else ():
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and isinstance(node.right, ast.Attribute)):
            continue
        end = node.left if isinstance(node.left, ast.Call) and scope.dotted(node.left.func) in CLOCKS else None
        begins = [found for m in methods if (found := _begins(m, node.right.attr, project, module)) is not None]
        if end is None or not begins or scope.owner is None:
            continue
        if any(_waits(project, module, c, 3) for c in calls(function) if c.lineno <= end.lineno):
            continue
        used = list(_timed(project, origins, scope.owner, begins, function.name))
        if any(_is_waited_for(project, one) for one in used):
            continue
        is_timer = function.name in ENDS and any(is_sure and m.name in BEGINS for m, is_sure in begins)
        if is_timer or any(_is_measured(one) for one in used):
            yield broken(module, end, "the clock is read while the device may still work")


def _timed(
    project: Project, origins: Origins, owner: ClassInfo, begins: list[tuple[Function, bool]], end: str
) -> Iterator[Timed]:
    """Yield what is timed by a class: by it and by those that extend it."""
    for each in (owner, *project.extending.get(owner.name, ())):
        if end == "__exit__":
            yield from blocks(project, origins, each)
        else:
            for method, _ in begins:
                yield from stretches(project, origins, each, method.name, end)


def _is_waited_for(project: Project, timed: Timed) -> bool:
    """Return whether the code that a timer is around waits for the device itself, at its end."""
    work = [c for c in timed.calls if _is_work(c)]
    return any(
        _waits(project, timed.module, c, 3) for c in timed.calls if not work or c.lineno >= work[-1].lineno or c in work
    )


def _is_measured(timed: Timed) -> bool:
    """Return whether work on a device is timed, by a benchmark."""
    return _on_device(timed.module) and is_benchmark(timed.node, timed.module) and any(map(_is_work, timed.calls))


def _begins(method: ast.AST, name: str, project: Project, module: Module) -> tuple[Function, bool] | None:
    """Return a method that keeps the time in an attribute, and whether it waits for the device before."""
    if not isinstance(method, ast.FunctionDef):
        return None
    scope = project.scope_of(method, module)
    sets = [n for n in inner(method, ast.Assign) if isinstance(n, ast.Assign) and tail_of(n.targets[0]) == name]
    clocked = [n for n in sets if isinstance(n.value, ast.Call) and scope.dotted(n.value.func) in CLOCKS]
    if not clocked:
        return None
    waits = any(_waits(project, module, c, 3) for c in calls(method) if c.lineno <= clocked[-1].lineno)
    return method, waits


def _assigned(call: ast.Call, module: Module) -> set[str]:
    parent = module.parents.get(call)
    targets = parent.targets if isinstance(parent, ast.Assign) else []
    return {t.id for t in targets if isinstance(t, ast.Name)}


def _names(node: ast.expr) -> set[str]:
    return {node.id} if isinstance(node, ast.Name) else set()


def _is_work(call: ast.Call) -> bool:
    return WORK.search(tail_of(call.func)) is not None


def _works(project: Project, module: Module, call: ast.Call, depth: int = MAX_HOPS) -> bool:
    """Return whether a call is work by its name, runs what its function was handed, or a helper of it does."""
    by_name = _is_work(call) if depth == MAX_HOPS else is_forward(project, module, call)
    if by_name or tail_of(call.func) == "backward":
        return True
    around = function_of(call, module)
    is_named = around is not None and isinstance(call.func, ast.Name) and BENCH.search(around.name) is not None
    if depth == MAX_HOPS and not is_named and (loop_of(call, module) is None or not is_called_benchmark(call, module)):
        return False  # what is done once, or in a training, may be anything
    if around is not None and isinstance(call.func, ast.Name) and call.func.id in _handed(around):
        return True
    kept = project.scope_at(call, module).through(call.func) if isinstance(call.func, ast.Attribute) else None
    made = kept[1].function if kept is not None else None
    if kept is not None and isinstance(made, ast.FunctionDef) and isinstance(kept[0], ast.Name):
        return kept[0].id in _handed(made)
    if (project.scope_at(call, module).dotted(call.func) or "").startswith("torch.autograd."):
        return True
    target = callee(project, module, call) if depth else None
    there = project.scope_of(target, module).module if target is not None else module
    return target is not None and any(_works(project, there, c, depth - 1) for c in calls(target))


def _handed(function: Function) -> set[str]:
    return {arg.arg for arg in (*function.args.args, *function.args.kwonlyargs)}


def _waits(project: Project, module: Module, call: ast.Call, depth: int) -> bool:
    """Return whether a call waits for the device, itself or in what it calls."""
    if tail_of(call.func) in WAITS or re.search(r"(?i)sync|wait", tail_of(call.func)):
        return True
    target = callee(project, module, call) if depth else None
    if target is None:
        return depth > 0 and _is_handed_wait(project, module, call, depth)
    there = project.scope_of(target, module).module
    return any(_waits(project, there, c, depth - 1) for c in calls(target))


def _is_handed_wait(project: Project, module: Module, call: ast.Call, depth: int) -> bool:
    """Return whether what a variable holds waits for the device when it is called: a function that was handed over."""
    scope = project.scope_at(call, module)
    if not isinstance(call.func, ast.Name | ast.Attribute) or scope.dotted(call.func) is not None:
        return False
    targets = Targets(project, project.once(_origins)[0])
    for one in targets.behind(call.func, scope):
        there = project.scope_of(one, module).module
        held = calls(one) if not isinstance(one, ast.Lambda) else [n for n in walk(one) if isinstance(n, ast.Call)]
        if any(_waits(project, there, c, depth - 1) for c in held):
            return True
    return False
