"""Training that goes on in evaluation mode after an evaluation."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses._code import Loop, broken, callee, calls, function_of, is_backward
from gates.scan.analyses._evaluating import callers
from gates.scan.module import Function, Module, tail_of
from gates.scan.nodes import text_of
from gates.scan.project import ClassInfo, Project
from gates.scan.site import Site

WORDS = ("eval", "train")
DEPTH = 4
STILL = re.compile(
    r"(?i)ema|teacher|averag|\bavg|_ref|ref_|target|frozen|vae|text_enc|inception|lpips|best|swa|pretrained"
)


def look(project: Project) -> Iterator[Site]:
    """Yield each `eval()` in a loop that trains and never calls `train()`."""
    for module in project.modules.values():
        for call in (*module.calls.get("eval", []), *filter(_is_off, module.calls.get("train", []))):
            function = function_of(call, module)
            if not isinstance(call.func, ast.Attribute) or function is None:
                continue
            if call.func.attr == "eval" and call.args:
                continue
            if STILL.search(text_of(call.func.value)):
                continue
            if any(tail_of(c.func) == "train" and not _is_off(c) and c.lineno > call.lineno for c in calls(function)):
                continue
            found = [loops for loops in _loops(project, module, call, function, 2) if loops]
            if found and all(_trains_on(project, there, loops) for loops, there in found):
                yield broken(module, call, f"{text_of(call)} is never followed by train(), and the training goes on")
                for around, there in _called(project, module, function, found):
                    yield broken(there, around, f"{text_of(around.func)}() leaves the model in evaluation mode")


def _is_off(call: ast.Call) -> bool:
    """Return whether a call of `train` turns it off: `model.train(False)`, `model.train(mode=False)`."""
    given = [*call.args, *(k.value for k in call.keywords if k.arg == "mode")]
    return bool(given) and isinstance(given[0], ast.Constant) and given[0].value is False


def _loops(
    project: Project, module: Module, node: ast.AST, function: Function, depth: int
) -> Iterator[tuple[list[Loop], Module]]:
    """Yield the loops around a call, from the inside out, or those around the calls of its function."""
    found: list[Loop] = []
    for around in module.ancestors(node):
        if isinstance(around, ast.For | ast.AsyncFor | ast.While):
            found.append(around)
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            break
    if found:
        yield found, module
        return
    owner = project.scope_of(function, module).owner
    is_object = owner is not None and function.name == "__call__"
    sites = _callers_of_object(project, owner) if owner is not None and is_object else callers(project, function)
    for call, there in sites if depth else ():
        outer = function_of(call, there)
        if callee(project, there, call) in {function, None} and outer is not None:
            yield from _loops(project, there, call, outer, depth - 1)


def _callers_of_object(project: Project, owner: ClassInfo) -> list[tuple[ast.Call, Module]]:
    """Return the calls of what is named after a class, or one that it extends: `hook(...)`, of an `EvalHook`."""
    ends = [info.node.name.lower() for info in (owner, *project.ancestors_of(owner))]
    found = [
        pair for name, pairs in project.named.items()
        if len(name) > 3 and name == name.lower() and any(end.endswith(name.replace("_", "")) for end in ends)
        for pair in pairs if isinstance(pair[0].func, ast.Name | ast.Attribute)
    ]  # fmt: skip
    found += [
        (c, m) for m in project.modules.values() if owner.node.name in m.words
        for pairs in m.calls.values() for c in pairs
        if isinstance(c.func, ast.Name | ast.Attribute) and (c, m) not in found
        and project.types.of(c.func, project.scope_at(c, m)) == owner.name
    ]  # fmt: skip
    unknown = [(c, m) for c, m in found if project.types.of(c.func, project.scope_at(c, m)) in {None, owner.name}]
    return [(c, m) for c, m in unknown if not project.is_module(c.func, project.scope_at(c, m))][:20]


def _called(
    project: Project, module: Module, function: Function, found: list[tuple[list[Loop], Module]]
) -> Iterator[tuple[ast.Call, Module]]:
    """Yield the calls of a function within the loops that train."""
    for loops, there in found:
        if there is not module or function_of(loops[0], there) is not function:
            for call in calls(loops[-1]):
                if callee(project, there, call) is function:
                    yield call, there


def _trains_on(project: Project, module: Module, loops: list[Loop]) -> bool:
    """Return whether the innermost loop that trains never goes back to training mode."""
    for loop in loops:
        backward, back = _runs(project, module, loop)
        if backward:
            return not back
    return False


def _runs(project: Project, module: Module, loop: Loop) -> tuple[bool, bool]:
    """Return whether a loop runs backward passes, and whether it ever goes back to training mode."""
    seen: set[ast.AST] = set()
    backward = back = False
    todo: list[tuple[ast.AST, Module, int]] = [(loop, module, DEPTH)]
    while todo:
        node, there, depth = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        for call in calls(node):
            back = back or (tail_of(call.func) == "train" and not _is_off(call))
            backward = backward or is_backward(call)
            target = callee(project, there, call) if depth else None
            if target is not None:
                todo.append((target, project.scope_of(target, there).module, depth - 1))
    return backward, back
