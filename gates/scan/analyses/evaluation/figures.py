"""Forward passes of which a function keeps figures alone: what has no gradient, indices, comparisons, numbers."""

import ast

from gates.scan.analyses.evaluation.switches import turns_off
from gates.scan.analyses.reading import flow
from gates.scan.analyses.reading.code import constant, statement_of
from gates.scan.analyses.training.forwards import trains
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project

NUMBERS = frozenset({"item", "tolist", "float"})
CASTS = frozenset({"int", "float", "bool"})
PICKS = frozenset({"argmax", "argmin", "argsort", "item", "tolist", "numpy", "detach", "detach_", "long", "int", "bool",
                   "eq", "ne", "gt", "ge", "lt", "le", "size", "dim"})  # fmt: skip
DRAWN = frozenset({"rand", "randn", "randint", "zeros", "ones", "empty", "full", "arange", "rand_like", "randn_like"})
PICKED = frozenset({"indices", "data", "shape", "dtype", "device"})
RANKS = frozenset({"max", "min", "topk", "sort"})
PASSES = (
    frozenset({"softmax", "log_softmax", "sigmoid", "exp", "squeeze", "unsqueeze", "flatten", "sum", "mean"}) | RANKS
)


def is_told(project: Project, function: Function, forward: ast.Call, *, figures: bool) -> bool:
    """Return whether a function puts the model of a forward pass off, and keeps `figures` alone, or returns numbers."""
    tails = {tail_of(c.func) for c in inner(function, ast.Call) if isinstance(c, ast.Call)}
    if not _is_put_off(function, forward) or trains(function) or "requires_grad_" in tails:
        return False
    return _returns_numbers(function) or (
        figures and "requires_grad" not in text_of(function) and not _freezes(project)
    )


def is_made_up(function: Function, forward: ast.Call) -> bool:
    """Return whether a model is only tried on numbers that are drawn or written: `x = torch.rand(2, 3); net(x)`."""
    if not forward.args:
        return False
    given = forward.args[0]
    made = [v for v, _ in flow.set_before(function, given.id, given.lineno)] if isinstance(given, ast.Name) else [given]
    return bool(made) and all(map(_is_drawn, made))


def _is_drawn(value: ast.expr) -> bool:
    """Return whether a call draws or writes numbers, or puts what such a one gives elsewhere: `rand(2, 3).cuda()`."""
    while isinstance(value, ast.Call) and tail_of(value.func) not in DRAWN:
        if not isinstance(value.func, ast.Attribute):
            return False
        value = value.func.value
    return isinstance(value, ast.Call)


def _is_put_off(function: Function, forward: ast.Call) -> bool:
    """Return whether a function puts the model of a forward pass into evaluation mode before."""
    model, made = text_of(forward.func), (c for c in inner(function, ast.Call) if isinstance(c, ast.Call))
    before = [c for c in made if c.lineno < forward.lineno and text_of(c.func) in {f"{model}.eval", f"{model}.train"}]
    return bool(before) and turns_off(max(before, key=lambda c: c.lineno))


def _returns_numbers(function: Function) -> bool:
    """Return whether a function returns numbers that the host has read."""
    given = [n.value for n in inner(function, ast.Return) if isinstance(n, ast.Return) and n.value is not None]
    given += [v for n in given if isinstance(n, ast.Name) for v, _ in flow.set_before(function, n.id, n.lineno)]
    return any(isinstance(c, ast.Call) and tail_of(c.func) in NUMBERS for value in given for c in walk(value))


def _freezes(project: Project) -> bool:
    """Return whether a program may make models whose forward passes have no graph anyway."""
    called = (c for m in project.modules.values() for c in m.calls.get("requires_grad_", ()))
    if any(c.args or c.keywords for c in called):
        return True
    fields = (n for m in project.modules.values() for n in m.live.get(ast.Attribute, ()))
    return any(isinstance(n, ast.Attribute) and n.attr == "requires_grad" for n in fields)


def is_figured(module: Module, function: Function, node: ast.expr) -> bool:
    """Return whether all that a function does with a value leaves nothing that has a gradient."""
    return _is_figured(module, function, node, set())


def _is_figured(module: Module, function: Function, node: ast.expr, seen: set[ast.AST]) -> bool:
    """Return the same; what is `seen` has been asked of already."""
    while True:
        around = module.parents.get(node)
        if isinstance(around, ast.Compare) or (isinstance(around, ast.Attribute | ast.Call) and _picks(around, node)):
            return True
        if isinstance(around, ast.Subscript) and around.value is node and _is_ranks(node):
            if constant(around.slice) == 1:
                return True
        elif isinstance(around, ast.Assign):
            if around in seen:
                return True
            seen.add(around)
            return _is_held_so(module, function, around, seen)
        if not isinstance(around, ast.expr) or not _passes(around, node):
            return False
        node = around


def _picks(around: ast.Attribute | ast.Call, node: ast.expr) -> bool:
    """Return whether an attribute, or a function that is handed a value, has no gradient: `out.shape`, `int(out)`."""
    if isinstance(around, ast.Attribute):
        return around.attr in PICKED
    if around.func is node:
        return isinstance(node, ast.Attribute) and node.attr in PICKS
    is_cast = isinstance(around.func, ast.Name) and around.func.id in CASTS
    return is_cast or (isinstance(around.func, ast.Attribute) and around.func.attr in PICKS)


def _passes(around: ast.expr, node: ast.expr) -> bool:
    """Return whether an expression only carries a value on: `out[mask]`, `out.cpu()`, `softmax(out, 1)`, `out / 2`."""
    if isinstance(around, ast.Call):
        return around.func is node or tail_of(around.func) in PASSES
    if isinstance(around, ast.Subscript):
        return around.value is node
    return isinstance(around, ast.Attribute | ast.BinOp | ast.UnaryOp)


def _is_held_so(module: Module, function: Function, held: ast.Assign, seen: set[ast.AST]) -> bool:
    """Return whether all that becomes of the variables that are set to a value, or to its parts, has no gradient."""
    targets = held.targets[0].elts if isinstance(held.targets[0], ast.Tuple) else held.targets[:1]
    if _is_ranks(held.value) and len(targets) > 1:
        targets = targets[:1]  # the others are indices
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    loads = [n for n in walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in names]
    later = [n for n in loads if n.lineno >= held.lineno and statement_of(n, module) is not held]
    is_known = len(held.targets) == 1 and len(names) == len(targets)
    is_used = bool(later) or _is_ranks(held.value)
    return is_known and is_used and all(_is_figured(module, function, n, seen) for n in later)


def _is_ranks(node: ast.expr) -> bool:
    """Return whether a call gives values with their indices: `out.max(1)`, `torch.topk(out, 5)`."""
    return isinstance(node, ast.Call) and tail_of(node.func) in RANKS
