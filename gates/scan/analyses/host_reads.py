"""Reads of device values by the host with each step: each waits for all that the device has to do."""

import ast
from collections.abc import Iterator

from gates.scan.analyses._code import accelerated, broken, is_backward
from gates.scan.analyses._hot import helper_of, hot_calls, is_hot, steps
from gates.scan.analyses._on_device import READS, is_on_device
from gates.scan.module import Function, Module, tail_of
from gates.scan.nodes import inner, text_of
from gates.scan.project import Project
from gates.scan.site import Site

WORDS = ("backward*", "step")
MAKES = {"float", "int", "bool", "print", "str"}


def look(project: Project) -> Iterator[Site]:
    """Yield each line of the hot path with `.item()`, `.cpu()`, `float(loss)` or `print(loss)`."""
    for module in project.modules.values():
        if "backward" not in module.calls and "step" not in module.calls:
            continue
        losses = _losses(module)
        said: set[int] = set()
        for call in hot_calls(project, module, {*READS, "float", "print"}):
            if call.lineno not in said and _reads(call, losses) and helper_of(project, module, call) is None:
                said.add(call.lineno)
                yield broken(module, call, f"{text_of(call)} waits for the device with each step")
        for compare in _compared(module, losses) if accelerated(module) else ():
            if compare.lineno not in said and is_hot(project, module, compare):
                said.add(compare.lineno)
                yield broken(module, compare, f"{text_of(compare)} waits for the device with each step")
    yield from _in_helpers(project)


def _in_helpers(project: Project) -> Iterator[Site]:
    """Yield the reads in what a step runs, of values that are known to come from the device."""
    known = steps(project)
    for function in list(known.sites):
        if function in known.timed or not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        scope = project.scope_of(function, next(iter(project.modules.values())))
        said: set[int] = set()
        for node, value in _read_in(function, scope.module):
            if node.lineno in said or helper_of(project, scope.module, node) is not function:
                continue
            if is_on_device(project, known.origins, value, scope):
                said.add(node.lineno)
                yield broken(scope.module, node, f"{text_of(node)} waits for the device with each step")


def _read_in(function: Function, module: Module) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what reads a value, and the value, in the order of the source."""
    found: list[tuple[ast.expr, ast.expr]] = []
    for node in inner(function, ast.Call, ast.Compare, ast.FormattedValue):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READS:
            found += [(node, node.func.value)] if not _of_data(node) else []
        elif isinstance(node, ast.Call) and tail_of(node.func) in MAKES:
            found += [(node, arg) for arg in node.args]
        elif isinstance(node, ast.Compare) and _is_branched_on(node, module):
            found += [(node, side) for side in (node.left, *node.comparators)]
        elif isinstance(node, ast.FormattedValue):
            found.append((node.value, node.value))
    return iter(sorted(found, key=lambda pair: pair[0].lineno))


def _compared(module: Module, losses: set[str]) -> Iterator[ast.Compare]:
    """Yield the comparisons of a loss with a number that the host branches on."""
    for node in module.live.get(ast.Compare, []):
        if (
            isinstance(node, ast.Compare)
            and _is_branched_on(node, module)
            and any(isinstance(side, ast.Name) and side.id in losses for side in (node.left, *node.comparators))
        ):
            yield node


def _is_branched_on(node: ast.Compare, module: Module) -> bool:
    """Return whether the host takes one way or another by which of two values is larger."""
    if not isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        return False
    branch = module.parents.get(node)
    while isinstance(branch, ast.BoolOp | ast.UnaryOp):
        branch = module.parents.get(branch)
    return isinstance(branch, ast.If | ast.While | ast.IfExp | ast.Assert)


def _reads(call: ast.Call, losses: set[str]) -> bool:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in READS and not call.args and not _of_data(call)
    return any(isinstance(arg, ast.Name) and arg.id in losses for arg in call.args)


def _of_data(call: ast.Call) -> bool:
    """Return whether what is read is no result of the device: the shape of something, an array of the host."""
    text = text_of(call.func)
    return "shape" in text or "np." in text or "numpy" in text.rpartition(".")[0]


def _losses(module: Module) -> set[str]:
    """Return the names that a backward pass starts from."""
    found: set[str] = set()
    for call in module.calls.get("backward", []):
        if is_backward(call):
            found |= {n.id for n in inner(call, ast.Name) if isinstance(n, ast.Name) and tail_of(n) not in {"self"}}
    return {name for name in found if "loss" in name.lower()}
