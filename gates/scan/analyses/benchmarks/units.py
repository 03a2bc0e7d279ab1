"""What a measured value counts, a time or a rate: by what it is called, and by what it was made of."""

import ast
import re
from collections.abc import Iterator
from typing import Literal

from gates.scan.analyses.benchmarks.benching import CLOCKS, RATE, is_baseline, is_candidate, words
from gates.scan.analyses.benchmarks.waiting import origins_of
from gates.scan.analyses.reading.code import callee, constant, function_of, tail_text
from gates.scan.analyses.reading.flow import set_before
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project

Unit = Literal["time", "rate"]
TIME = re.compile(
    r"(?i)(^|[^a-z])(ms|us|ns|sec|secs|seconds?|times?|timed|elapsed|latenc(y|ies)|durations?|dt|timer|wall|clock)([^a-z]|$)"
)
COUNTED = re.compile(
    r"(?i)(^|[^a-z])(toks?|tokens|imgs?|images|samples|items|examples|frames|seqs|sequences|steps|batches|words)_s(ec)?$"
)  # a rate that leaves out the "per"
SECONDS = re.compile(
    r"(?i)(^|[_ ])(step|iter|iteration|epoch|batch|run|train|forward|backward|fwd|bwd|wall|total|median|mean|avg|best|"
    r"p50|p95|eager|compiled|baseline|base|reference|ref|candidate|cand|new|old|before|after|plain|amp|fp32|fp16|bf16)_s$"
)
OF_ARM = re.compile(r"(^|[_ ])t_(\w+)$")  # `t_fp32`
HOPS = 6


def unit_by_name(text: str) -> Unit | None:
    """Return what a value of a name counts; `None` where the name does not tell."""
    if RATE.search(text) or RATE.search(words(text)) or COUNTED.search(text):
        return "rate"
    of_arm = OF_ARM.search(text)
    if of_arm is not None and (is_baseline(of_arm[2]) or is_candidate(of_arm[2])):
        return "time"
    return "time" if TIME.search(words(text)) or SECONDS.search(text) else None


def unit(project: Project, module: Module, node: ast.expr, hops: int = HOPS) -> Unit | None:
    """Return what a value counts; `None` where nothing tells, or not all that tells agrees."""
    named = unit_by_name(tail_text(node)) if not isinstance(node, ast.BinOp) else None
    if named is not None or not hops:
        return named
    found = {unit_ for unit_ in _made_of(project, module, node, hops - 1) if unit_ is not None}
    return found.pop() if len(found) == 1 else None


def _made_of(project: Project, module: Module, node: ast.expr, hops: int) -> Iterator[Unit | None]:
    if isinstance(node, ast.BinOp):
        yield _of_operation(project, module, node, hops)
    elif isinstance(node, ast.Call):
        yield from _of_call(project, module, node, hops)
    elif isinstance(node, ast.Name):
        yield from _of_name(project, module, node, hops)
    elif isinstance(node, ast.Subscript) and isinstance(constant(node.slice), int):
        yield from _of_part(project, module, node, hops)
    elif isinstance(node, ast.Subscript | ast.Attribute | ast.IfExp):
        inside = node.body if isinstance(node, ast.IfExp) else node.value
        yield unit(project, module, inside, hops)


def _of_name(project: Project, module: Module, node: ast.Name, hops: int) -> Iterator[Unit | None]:
    """Yield the units of what a variable is set to, and of what callers pass for a parameter."""
    function = function_of(node, module)
    before = set_before(function or module.tree, node.id, node.lineno)
    for value, _ in before:
        is_part = _is_taken_apart(value, module)
        yield from _of_part(project, module, node, hops) if is_part else (unit(project, module, value, hops),)
    if before:
        yield from _listed_as(node, function or module.tree)
    elif function is not None:
        bound = project.scope_of(function, module).owner is not None
        for call, there in project.named.get(function.name, [])[:5]:
            passed = argument(call, function, node.id, bound=bound)
            yield unit(project, there, passed, hops) if passed is not None else None


def _is_taken_apart(value: ast.expr, module: Module) -> bool:
    """Return whether a name is set to a part of a value: of `loss, speed = run()`."""
    parent = module.parents.get(value)
    return isinstance(parent, ast.Assign) and parent.value is value and isinstance(parent.targets[0], ast.Tuple)


def _of_part(project: Project, module: Module, node: ast.expr, hops: int) -> Iterator[Unit | None]:
    """Yield the units of what may stand at a place of a tuple, through what it was kept in and returned by."""
    for origin in project.once(origins_of)[0].of(node, project.scope_at(node, module)):
        if isinstance(origin.node, ast.BinOp | ast.Call):
            yield unit(project, origin.module, origin.node, hops)
        else:
            yield unit_by_name(tail_text(origin.node))


def _of_operation(project: Project, module: Module, node: ast.BinOp, hops: int) -> Unit | None:
    """Return the unit of a sum, a product or a quotient: what is divided by a time is a rate."""
    left, right = unit(project, module, node.left, hops), unit(project, module, node.right, hops)
    if isinstance(node.op, ast.Div):
        if right == "time":
            return "rate" if left is None else None
        return "time" if right == "rate" and left is None else left if right is None else None
    return left or right


def _of_call(project: Project, module: Module, node: ast.Call, hops: int) -> Iterator[Unit | None]:
    """Yield the unit of a call: of a clock, of what a function of the program returns, of what is averaged."""
    if tail_of(node.func) in CLOCKS | {"elapsed_time"}:
        yield "time"
        return
    target = callee(project, module, node)
    if target is not None:
        there = project.scope_of(target, module).module
        for returned in inner(target, ast.Return):
            if isinstance(returned, ast.Return) and returned.value is not None:
                yield unit(project, there, returned.value, hops)
    elif node.args:
        yield unit(project, module, node.args[0], hops)
        if tail_of(node.func) in {"sum", "mean", "fsum", "median"} and isinstance(node.args[0], ast.Attribute):
            yield from _of_listed(project, module, node.args[0], hops)


def _of_listed(project: Project, module: Module, held: ast.Attribute, hops: int) -> Iterator[Unit | None]:
    """Yield the units of what a class appends to a list of its own: `self.spans.append(clock() - self.mark)`."""
    scope = project.scope_at(held, module)
    if scope.owner is None or not isinstance(held.value, ast.Name) or held.value.id != scope.self_name:
        return
    for call in (each for method in scope.owner.methods.values() for each in inner(method, ast.Call)):
        if isinstance(call, ast.Call) and call.args and text_of(call.func) == f"{text_of(held)}.append":
            yield unit(project, module, call.args[0], hops)


def _listed_as(node: ast.Name, body: ast.AST) -> Iterator[Unit | None]:
    """Yield the units that a variable is reported in: `{"fp32_ips": slow}`."""
    for listed in inner(body, ast.Dict):
        for key, value in zip(listed.keys, listed.values, strict=True) if isinstance(listed, ast.Dict) else ():
            if isinstance(value, ast.Name) and value.id == node.id and isinstance(key, ast.Constant):
                yield unit_by_name(str(key.value))
