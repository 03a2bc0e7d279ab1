"""What works on a device: by its name, as an operation of a library, or in what it calls."""

import ast
import re

from gates.scan.analyses.benchmarks.benching import BENCH, is_called_benchmark
from gates.scan.analyses.reading.code import callee, calls, function_of, is_backward, loop_of
from gates.scan.analyses.reading.flow import MAKES, is_forward
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.project import Project

WORK = re.compile(
    r"(?i)model|net\b|forward|train|step|backward|run|infer|loop|epoch|generate|work|func|fn\b|matmul|call"
)
IDLE = re.compile(r"^_*(is|has|can|should)_|(Error|Exception|Warning)$")
HOST = re.compile(r"(?i)^(tok|enc)$|tokeniz|dataset|transforms?$|collate|parse|preprocess|augment")
OPERATION = re.compile(
    r"torch\.(nn\.functional|ops|linalg|fft|autograd|nn\.attention\.flex_attention)\.|xformers\.ops\.|flash_attn\w*\.|"
    r"torch\.(mm|bmm|mv|matmul|addmm|baddbmm|einsum|tensordot|conv(_transpose)?[123]d|softmax|sort|topk|cumsum|_scaled_mm)$"
)
OF_DATA = frozenset({"pad", "one_hot", "interpolate", "normalize", "grid_sample", "affine_grid"})
CUDA = re.compile(r"cuda|GradScaler|autocast")
MAX_HOPS = 2


def on_device(module: Module) -> bool:
    """Return whether a file knows of a device."""
    names = (n.attr for n in module.live.get(ast.Attribute, []) if isinstance(n, ast.Attribute))
    texts = (
        n.value for n in module.live.get(ast.Constant, []) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    )
    return any(CUDA.search(name) for name in names) or any(text.startswith("cuda") for text in texts)


def is_work(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call is work by its name, or an operation of a library."""
    tail = tail_of(call.func)
    if WORK.search(tail) is not None and not MAKES.search(tail) and not IDLE.search(tail):
        return True
    return _is_operation(project, module, call)


def works(project: Project, module: Module, call: ast.Call, depth: int = MAX_HOPS) -> bool:
    """Return whether a call is work, runs what its function was handed, or a helper of it does."""
    if HOST.search(tail_of(call.func)):
        return False
    is_plain = is_work(project, module, call) if depth == MAX_HOPS else is_forward(project, module, call)
    if is_plain or tail_of(call.func) == "backward":
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
    if _is_operation(project, module, call):
        return True
    target = callee(project, module, call) if depth else None
    there = project.scope_of(target, module).module if target is not None else module
    return target is not None and any(works(project, there, c, depth - 1) for c in calls(target))


def reaches_device(project: Project, module: Module, call: ast.Call, depth: int = MAX_HOPS) -> bool:
    """Return whether what a call runs has a forward or backward pass, or an operation, in a file of a device."""
    target = callee(project, module, call) if depth and not HOST.search(tail_of(call.func)) else None
    if target is None:
        return False
    there = project.scope_of(target, module).module
    if on_device(there) and any(is_pass(project, there, c) for c in calls(target)):
        return True
    return any(reaches_device(project, there, c, depth - 1) for c in calls(target))


def is_pass(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call is a forward or backward pass, or an operation of a library."""
    return is_backward(call) or is_forward(project, module, call) or _is_operation(project, module, call)


def _is_operation(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call is an operation on tensors of a library, but for those that data are prepared by."""
    if tail_of(call.func) in OF_DATA or not isinstance(call.func, ast.Name | ast.Attribute):
        return False
    return OPERATION.match(project.scope_at(call, module).dotted(call.func) or "") is not None


def _handed(function: Function) -> set[str]:
    return {arg.arg for arg in (*function.args.args, *function.args.kwonlyargs)}
