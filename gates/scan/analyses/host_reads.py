"""Reads of device values by the host with each step: each waits for all that the device has to do."""

import ast
from collections.abc import Iterator

from gates.scan.analyses._code import broken, inner, is_backward
from gates.scan.analyses._hot import hot_calls
from gates.scan.module import Module, tail_of
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
                yield broken(module, call, f"{ast.unparse(call)} waits for the device with each step")


def _reads(call: ast.Call, losses: set[str]) -> bool:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in READS and not call.args and not _of_data(call)
    return any(isinstance(arg, ast.Name) and arg.id in losses for arg in call.args)


def _of_data(call: ast.Call) -> bool:
    """Return whether what is read is no result of the device: the shape of something, an array of the host."""
    text = ast.unparse(call.func)
    return "shape" in text or "np." in text or "numpy" in text.rpartition(".")[0]


def _losses(module: Module) -> set[str]:
    """Return the names that a backward pass starts from."""
    found: set[str] = set()
    for call in module.calls.get("backward", []):
        if is_backward(call):
            found |= {n.id for n in inner(call, ast.Name) if isinstance(n, ast.Name) and tail_of(n) not in {"self"}}
    return {name for name in found if "loss" in name.lower()}
