"""Times of work on a device, read before the device is done."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses._benching import is_benchmark
from gates.scan.analyses._code import broken, callee, calls, class_of, functions
from gates.scan.module import Function, Module, tail_of
from gates.scan.nodes import inner, text_of, walk
from gates.scan.project import Project
from gates.scan.site import Site

WORDS = ("perf_counter", "monotonic", "time.time", "time()", "perf_counter_ns", "monotonic_ns")
CLOCKS = {
    "time.time",
    "time.perf_counter",
    "time.monotonic",
    "time.perf_counter_ns",
    "time.monotonic_ns",
    "timeit.default_timer",
}
WAITS = {"synchronize", "item", "elapsed_time", "tolist", "numpy", "cpu", "wait_for_everyone", "barrier"}
WORK = re.compile(
    r"(?i)model|net\b|forward|train|step|backward|run|infer|loop|epoch|generate|work|func|fn\b|matmul|call"
)
CUDA = re.compile(r"cuda|GradScaler|autocast")


def look(project: Project) -> Iterator[Site]:
    """Yield each reading of the clock at the end of a timed region that nothing waited in."""
    for module in project.modules.values():
        if not any(
            tail in module.calls for tail in ("perf_counter", "monotonic", "time", "default_timer", "perf_counter_ns")
        ):
            continue
        for function in functions(module):
            if is_benchmark(function, module) and _on_device(module):
                yield from _regions(project, module, function)
                yield from _since_attribute(project, module, function)


def _on_device(module: Module) -> bool:
    names = (n.attr for n in module.live.get(ast.Attribute, []) if isinstance(n, ast.Attribute))
    texts = (
        n.value for n in module.live.get(ast.Constant, []) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    )
    return any(CUDA.search(name) for name in names) or any(text.startswith("cuda") for text in texts)


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
        work = [c for c in region if _is_work(c)]
        if work and not any(_waits(project, module, c, 3) for c in region if c.lineno >= work[-1].lineno or c in work):
            yield broken(module, end, f"the clock is read while the device still works ({text_of(work[-1].func)})")


def _since_attribute(project: Project, module: Module, function: Function) -> Iterator[Site]:
    """Find the end of a time that another method began, where that one waits for the device and this one does not."""
    scope = project.scope_of(function, module)
    owner = class_of(function, module)
    methods = [n for n in walk(owner) if n is not function] if owner is not None else []
    for node in inner(function, ast.BinOp) if methods else ():
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and isinstance(node.right, ast.Attribute)):
            continue
        end = node.left if isinstance(node.left, ast.Call) and scope.dotted(node.left.func) in CLOCKS else None
        if end is None or not any(_begins(method, node.right.attr, project, module) for method in methods):
            continue
        if not any(_waits(project, module, c, 3) for c in calls(function) if c.lineno <= end.lineno):
            yield broken(module, end, "the clock is read while the device may still work; where it starts, it waits")


def _begins(method: ast.AST, name: str, project: Project, module: Module) -> bool:
    """Return whether a method waits for the device and then keeps the time in an attribute."""
    if not isinstance(method, ast.FunctionDef):
        return False
    scope = project.scope_of(method, module)
    sets = [n for n in inner(method, ast.Assign) if isinstance(n, ast.Assign) and tail_of(n.targets[0]) == name]
    clocked = [n for n in sets if isinstance(n.value, ast.Call) and scope.dotted(n.value.func) in CLOCKS]
    return bool(clocked) and any(_waits(project, module, c, 3) for c in calls(method) if c.lineno <= clocked[-1].lineno)


def _assigned(call: ast.Call, module: Module) -> set[str]:
    parent = module.parents.get(call)
    targets = parent.targets if isinstance(parent, ast.Assign) else []
    return {t.id for t in targets if isinstance(t, ast.Name)}


def _names(node: ast.expr) -> set[str]:
    return {node.id} if isinstance(node, ast.Name) else set()


def _is_work(call: ast.Call) -> bool:
    return WORK.search(tail_of(call.func)) is not None


def _waits(project: Project, module: Module, call: ast.Call, depth: int) -> bool:
    """Return whether a call waits for the device, itself or in what it calls."""
    if tail_of(call.func) in WAITS or re.search(r"(?i)sync|wait", tail_of(call.func)):
        return True
    target = callee(project, module, call) if depth else None
    if target is None:
        return False
    there = project.scope_of(target, module).module
    return any(_waits(project, there, c, depth - 1) for c in calls(target))
