"""The terms that losses are made of, and which variables keep them with the graph of the backward pass."""

import ast
import re
from collections.abc import Container, Iterator

from gates.scan.analyses.reading.code import callee, calls, module_of
from gates.scan.analyses.reading.flow import is_forward
from gates.scan.analyses.training.graphs import CUT, HOPS, STARTS, begun_at, is_ungraded, starts, stops
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project

INDICES = frozenset({"argmax", "argmin", "argsort", "round", "floor", "ceil", "sign", "eq", "len"})
LOSS = re.compile(r"(?i)(loss|crit|criterion)(_?fn|_?func|_?f)?$")
TERM = re.compile(r"(?i)(^|_)loss$|^loss_")
COUNTS = re.compile(r"(?i)^n$|^n_|^num|count|len|size|tokens|weight|scale|acc|hits|correct|^_")


def parts(project: Project, module: Module, body: ast.AST) -> set[str]:
    """Return the names of results and of terms that the losses of a body are made of, itself."""
    wanted = starts(body) | _terms(body)
    other = starts(body)
    made = [n for n in inner(body, ast.Assign) if isinstance(n, ast.Assign)] if wanted else []
    for node in sorted(made, key=lambda n: -n.lineno):
        if _names(node) & wanted:
            wanted |= set(_operands(node.value))
    found: set[str] = set()
    for node in sorted(made, key=lambda n: n.lineno):
        is_kept = _is_result(project, module, node) or _is_loss(module, node)
        kept = _names(node) if is_kept else _made_on(project, module, node, found)
        found |= kept
        other |= _names(node) - kept
    held = summed(body) if wanted else set()
    for loop in inner(body, ast.For) if held else ():
        over = loop.iter if isinstance(loop, ast.For) else None
        of = over.func.value if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) else over
        if isinstance(of, ast.Name) and of.id in held and isinstance(loop, ast.For):
            last = loop.target.elts[-1] if isinstance(loop.target, ast.Tuple) else loop.target
            is_key = isinstance(over, ast.Name) and not isinstance(loop.target, ast.Tuple)
            wanted.add("" if is_key else tail_of(last))
            found.add(tail_of(last))
    return {name for name in found & wanted if not COUNTS.search(name)} - other


def _names(node: ast.Assign) -> set[str]:
    """Return the variables that an assignment sets."""
    return {n.id for target in node.targets for n in walk(target) if isinstance(n, ast.Name)}


def _terms(body: ast.AST) -> set[str]:
    """Return the names that the losses are reckoned of where backward passes start: of `(a + w * b).backward()`."""
    begun = [c for c in calls(body) if STARTS.search(tail_of(c.func)) and isinstance(c.func, ast.Attribute)]
    values = [part for call in begun for part in (call.func.value, *call.args)]  # type: ignore[attr-defined]  # a method
    scaled = [arg for v in values if isinstance(v, ast.Call) and tail_of(v.func) == "scale" for arg in v.args[:1]]
    return {name for value in (*values, *scaled) if isinstance(value, ast.BinOp) for name in _operands(value)}


def summed(body: ast.AST, begun: Container[str] | None = None) -> set[str]:
    """Return the names of the lists and mappings of which a body sums up a loss that backward passes begin at."""
    begun = starts(body) if begun is None else begun
    found = {text_of(value.value) for value in begun_at(body) if isinstance(value, ast.Subscript)}
    for node in inner(body, ast.Assign):
        if isinstance(node, ast.Assign) and any(tail_of(target) in begun for target in node.targets):
            for part in walk(node.value):
                over = part.func.value if isinstance(part, ast.Call) and tail_of(part.func) == "values" else None  # type: ignore[attr-defined]  # a method
                over = part.value if isinstance(part, ast.Subscript) else over
                over = (
                    part.args[0] if isinstance(part, ast.Call) and tail_of(part.func) == "sum" and part.args else over
                )
                found |= {over.id} if isinstance(over, ast.Name) else set()
    return found


def _operands(value: ast.expr) -> Iterator[str]:
    """Yield the names that a value has a gradient by."""
    if isinstance(value, ast.Name):
        yield value.id
    elif isinstance(value, ast.BinOp):
        yield from _operands(value.left)
        yield from _operands(value.right) if not isinstance(value.op, ast.Div | ast.FloorDiv | ast.Pow) else ()
    elif isinstance(value, ast.UnaryOp):
        yield from _operands(value.operand)
    elif isinstance(value, ast.Call) and tail_of(value.func) not in CUT:
        yield from _operands(value.func.value) if isinstance(value.func, ast.Attribute) else ()
        for arg in value.args:
            yield from _operands(arg)


def _is_result(project: Project, module: Module, node: ast.Assign) -> bool:
    """Return whether an assignment keeps what a model, or a loss function, gives with its graph."""
    call = node.value
    if not isinstance(call, ast.Call) or is_ungraded(node, module):
        return False
    named_as = project.scope_at(call, module).dotted(call.func) or ""
    is_loss = LOSS.search(tail_of(call.func)) is not None or named_as.startswith("torch.nn.functional.")
    return (is_loss and bool(call.args)) or is_forward(project, module, call)


def _is_loss(module: Module, node: ast.Assign) -> bool:
    """Return whether an assignment makes what is called a loss of other values, and does not cut it off from them."""
    made, target = node.value, node.targets[0]
    if (
        not isinstance(target, ast.Name)
        or not TERM.search(target.id)
        or not isinstance(made, ast.Call | ast.BinOp | ast.UnaryOp)
    ):
        return False
    cut = any(isinstance(part, ast.Call) and tail_of(part.func) in CUT for part in _chain(made))
    return not cut and not is_ungraded(node, module) and any(_operands(made))


def _chain(node: ast.expr) -> Iterator[ast.expr]:
    """Yield an expression and those that its methods are called on: of `a.mean().item()`, `a.mean()`, too."""
    while True:
        node = node.operand if isinstance(node, ast.UnaryOp) else node
        yield node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return


def _made_on(project: Project, module: Module, node: ast.Assign, results: Container[str]) -> set[str]:
    """Return the variables that keep what a function of the program makes, with its graph, of what models gave."""
    call = node.value
    if not isinstance(call, ast.Call) or is_ungraded(node, module):
        return set()
    handed = any(isinstance(arg, ast.Name) and arg.id in results for arg in call.args)
    target = callee(project, module, call) if handed else None
    if target is None or any(stops(decorator) for decorator in target.decorator_list):
        return set()
    kept = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else node.targets[:1]
    there = module_of(project, target, module)
    found = {each.id for each in kept if isinstance(each, ast.Name)}
    for result in inner(target, ast.Return):
        value = result.value if isinstance(result, ast.Return) else None
        parts = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(kept) else [value] * len(kept)
        plain = {tail_of(name) for name, part in zip(kept, parts, strict=True) if not _has_graph(part, target, there)}
        found -= plain
    return found


def _has_graph(value: ast.expr | None, function: Function, module: Module, hops: int = HOPS) -> bool:
    """Return whether what a function returns is differentiable, as far as it is written there."""
    if value is None or isinstance(value, ast.Constant) or is_ungraded(value, module):
        return False
    for part in walk(value):
        if isinstance(part, ast.Compare) or (isinstance(part, ast.Call) and tail_of(part.func) in CUT | INDICES):
            return False
    names = [n.id for n in walk(value) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)] if hops else []
    made = [n for n in inner(function, ast.Assign) if isinstance(n, ast.Assign) and _names(n) & set(names)]
    return all(_has_graph(n.value, function, module, hops - 1) for n in made)
