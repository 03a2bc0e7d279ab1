"""The device waited for with each step."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.benchmarks.benching import CLOCKS, is_benchmark, is_called_benchmark
from gates.scan.analyses.benchmarks.work import is_work
from gates.scan.analyses.reading.code import broken, calls, class_of, function_of, loop_of
from gates.scan.analyses.training.batches import runs_each_batch
from gates.scan.analyses.training.feeding import feeds_training
from gates.scan.analyses.training.hot import helper_of, hot_calls, is_of_peak, measures_memory, places_of, steps
from gates.scan.program.known import OPTIMIZER, is_called
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.site import Site

WORDS = ("synchronize*",)
LOADER = re.compile(r"(?i)load|batch|(^|[_.(])(dl|train)\b|data")
STEPS = {"backward", "step", "zero_grad", "scale", "unscale_", "update"}
READS = CLOCKS | {"record", "elapsed_time"}
KEEPS = {"append", "extend", "appendleft", "add", "insert"}


def _is_of_each_step(call: ast.Call, module: Module) -> bool:
    """Return whether a training waits for its device to tell how long each step took, and keeps none of the times."""
    loop, function = loop_of(call, module), function_of(call, module)
    if not isinstance(loop, ast.For) or function is None or is_called_benchmark(call, module):
        return False
    if not LOADER.search(text_of(loop.iter)):
        return False
    times = {
        n.id for a in inner(loop, ast.Assign) if isinstance(a, ast.Assign) and _is_difference(a.value)
        for t in a.targets for n in walk(t) if isinstance(n, ast.Name)
    }  # fmt: skip
    kept = [
        part for part in (*inner(loop, ast.AugAssign), *inner(function, ast.Return), *calls(loop))
        if not isinstance(part, ast.Call) or tail_of(part.func) in KEEPS
    ]  # fmt: skip
    sets = (a for a in inner(loop, ast.Assign) if isinstance(a, ast.Assign))
    kept += [a for a in sets if isinstance(a.targets[0], ast.Subscript)]
    return not any(
        _is_difference(n) or (isinstance(n, ast.Name) and n.id in times) for part in kept for n in walk(part)
    )


def _is_timed(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a clock is read before or after a wait, without a part of the step between the two."""
    around = loop_of(call, module) or function_of(call, module)
    if around is None or not is_benchmark(call, module):
        return False
    told = sorted(calls(around), key=lambda each: (each.lineno, each.col_offset))
    at = told.index(call) if call in told else len(told)
    sides = told[at + 1 :], told[:at][::-1]
    near = ([c for c in side if tail_of(c.func) in READS or _is_step(project, module, c)][:1] for side in sides)
    return any(tail_of(c.func) in READS for first in near for c in first)


def _is_step(project: Project, module: Module, call: ast.Call) -> bool:
    tail = tail_of(call.func)
    return (tail in STEPS and not (call.args and tail == "update")) or is_work(project, module, call)


def _is_of_timer(call: ast.Call, module: Module) -> bool:
    """Return whether a method of an object that reads events of the device waits for these."""
    owner = class_of(call, module)
    return (
        owner is not None
        and loop_of(call, module) is None
        and any(isinstance(n, ast.Attribute) and n.attr == "elapsed_time" for n in walk(owner))
    )


def _is_of_feed(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a generator of batches waits for the whole device, not for a stream of its own."""
    named = project.scope_at(call, module).dotted(call.func) or ""
    return named.startswith("torch.") and feeds_training(project, module, call)


def _is_difference(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)


def _is_of_optimizer(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether an optimizer of Horovod brings its gradients together, before they are unscaled or clipped."""
    if not isinstance(call.func, ast.Attribute):
        return False
    value, scope = call.func.value, project.scope_at(call, module)
    return project.types.is_a(project.types.of(value, scope), OPTIMIZER) or is_called(tail_of(value), OPTIMIZER)


def look(project: Project) -> Iterator[Site]:
    """Yield each `synchronize()` in the hot path, but for that of a benchmark."""
    for module in project.modules.values():
        for call in hot_calls(project, module, {"synchronize"}):
            if _is_of_optimizer(project, module, call):
                continue
            helper = helper_of(project, module, call)
            if helper is None:
                is_measured = is_called_benchmark(call, module) or _is_timed(project, module, call)
                is_measured = is_measured and not _is_of_each_step(call, module)
                is_measured = is_measured or is_of_peak(module, call) or _is_of_timer(call, module)
            else:
                is_measured = helper in steps(project).timed or measures_memory(helper)
            if not is_measured:
                for there, at in places_of(project, module, call, helper):
                    way = [("it runs", module, call)] if at is not call else []
                    yield broken(there, at, "the host waits for the device with each step", *way)
        for call in module.calls.get("synchronize", ()):
            is_each = runs_each_batch(project, module, call) or _is_of_feed(project, module, call)
            if is_each and not is_benchmark(call, module):
                yield broken(module, call, "the host waits for the device with each batch")
