"""Reads of device values by the host with each step: each waits for all that the device has to do."""

import ast
from collections.abc import Iterator

from gates.scan.analyses._code import accelerated, broken, is_backward
from gates.scan.analyses._hot import hot_calls, is_hot
from gates.scan.module import Module, tail_of
from gates.scan.nodes import inner, text_of
from gates.scan.project import Project
from gates.scan.site import Site

READS = {"item", "tolist", "cpu", "numpy"}
WORDS = ("backward", "step")


def look(project: Project) -> Iterator[Site]:
    """Yield each line of the hot path with `.item()`, `.cpu()`, `float(loss)` or `print(loss)`."""
    for module in project.modules.values():
        if "backward" not in module.calls and "step" not in module.calls:
            continue
        losses = _losses(module)
        said: set[int] = set()
        for call in hot_calls(project, module, READS | {"float", "print"}):
            if call.lineno not in said and _reads(call, losses):
                said.add(call.lineno)
                yield broken(module, call, f"{text_of(call)} waits for the device with each step")
        for compare in _compared(module, losses) if accelerated(module) else ():
            if compare.lineno not in said and is_hot(project, module, compare):
                said.add(compare.lineno)
                yield broken(module, compare, f"{text_of(compare)} waits for the device with each step")


def _compared(module: Module, losses: set[str]) -> Iterator[ast.Compare]:
    """Yield the comparisons of a loss with a number that the host branches on."""
    for node in module.live.get(ast.Compare, []):
        if not (isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)):
            continue
        branch = module.parents.get(node)
        while isinstance(branch, ast.BoolOp | ast.UnaryOp):
            branch = module.parents.get(branch)
        if isinstance(branch, ast.If | ast.While | ast.IfExp | ast.Assert) and any(
            isinstance(side, ast.Name) and side.id in losses for side in (node.left, *node.comparators)
        ):
            yield node


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
