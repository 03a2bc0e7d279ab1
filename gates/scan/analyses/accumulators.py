"""Losses kept beyond their step with the graph that made them."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses._code import broken, callee, calls, function_of, functions, loop_of, statement_of
from gates.scan.analyses._hot import is_hot
from gates.scan.module import Module, tail_of
from gates.scan.nodes import inner, text_of, walk
from gates.scan.project import Project
from gates.scan.site import Site
from gates.scan.types import argument

WORDS = ("backward", "training_step", "scaler")
STARTS = re.compile(r"^_*(?!is_|has_|on_|in_|for_|no_|register_)(\w+_)?backward(_pass|_step)?$")
CUT = {"detach", "item", "float", "tolist", "numpy", "cpu", "clone_detached"}


def look(project: Project) -> Iterator[Site]:
    """Yield each `losses.append(loss)` and `total = total + loss` of a loss that a backward pass starts from."""
    for module in project.modules.values():
        if not any("backward" in tail or tail == "scale" for tail in module.calls) and not _lightning(module):
            continue
        for function, losses in _losses(module):
            for node in inner(function, ast.Call, ast.Assign, ast.AugAssign):
                kept = _stored_by(project, module, node) or _kept(node)
                if kept is None or kept[0] not in losses or _is_cut(kept[0], node, module):
                    continue
                name, into = kept
                if _outlives(into, node, module) and _unsummed(into, function) and _is_hot(project, module, node):
                    yield broken(module, node, f"{text_of(into)} keeps {name} with the graph that made it")


def _lightning(module: Module) -> bool:
    return any(
        isinstance(n, ast.FunctionDef) and n.name == "training_step" for n in module.live.get(ast.FunctionDef, [])
    )


def _is_hot(project: Project, module: Module, node: ast.AST) -> bool:
    """Ask whether it runs with each step; where it runs only now and then the graph is kept all the same."""
    function = function_of(node, module)
    return (
        loop_of(node, module) is not None
        or is_hot(project, module, node)
        or (function is not None and function.name == "training_step")
    )


def _losses(module: Module) -> Iterator[tuple[ast.AST, set[str]]]:
    """Yield each function, or the module, with the names from which its backward passes start."""
    for body in (module.tree, *functions(module)):
        found = _starts(body)
        if isinstance(body, ast.FunctionDef) and body.name == "training_step":
            for node in inner(body, ast.Return):
                value = node.value if isinstance(node, ast.Return) else None
                values = value.values if isinstance(value, ast.Dict) else [value] if value is not None else []
                found |= {name for each in values for name in _named(each)}
        if found:
            yield body, found - {"self"}


def _starts(body: ast.AST) -> set[str]:
    """Return the names from which the backward passes of a body start."""
    found: set[str] = set()
    for call in calls(body):
        if STARTS.search(tail_of(call.func)):
            values = [*call.args, *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
            found |= {n for value in values for n in _named(value)}
        elif tail_of(call.func).endswith("scaler") and call.args:
            found |= set(_named(call.args[0]))
    return found


def _made_of(text: str, body: ast.AST) -> set[str]:
    """Return the names that are made of something: by an assignment, or by going over it."""
    found: set[str] = set()
    for node in inner(body, ast.Assign, ast.For):
        value = node.value if isinstance(node, ast.Assign) else node.iter if isinstance(node, ast.For) else None
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.For) else []
        if value is not None and any(isinstance(n, ast.expr) and text_of(n) == text for n in walk(value)):
            found |= {n.id for t in targets for n in walk(t) if isinstance(n, ast.Name)} - {text}
    return found


def _named(value: ast.expr) -> Iterator[str]:
    """Yield the names that a scaled or divided loss is made of."""
    if isinstance(value, ast.Name):
        yield value.id
    elif isinstance(value, ast.Call) and tail_of(value.func) == "scale":
        for arg in value.args:
            yield from _named(arg)
    elif isinstance(value, ast.BinOp):
        right = [name for name in _named(value.right) if "loss" in name.lower()]
        yield from right or _named(value.left)


def _stored_by(project: Project, module: Module, node: ast.AST) -> tuple[str, ast.expr] | None:
    """Return what a call hands to a method that keeps it as it is, and the object that keeps it."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    target = callee(project, module, node)
    owner = project.scope_at(node, module).class_of(node.func.value)
    if target is None or owner is None:
        return None
    for name in (arg.arg for arg in target.args.args[1:]):
        value = argument(node, target, name, bound=True)
        inside = (_kept(n) for n in inner(target, ast.Call, ast.AugAssign))
        stored = any(k is not None and k[0] == name and _of_self(k[1]) for k in inside)
        if isinstance(value, ast.Name) and stored and not _cut_inside(target, name):
            return value.id, node.func.value
    return "", node.func.value


def _of_self(node: ast.expr) -> bool:
    while isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node, ast.Name):
        node = node.value
    return isinstance(node, ast.Name) and node.id == "self"


def _cut_inside(function: ast.AST, name: str) -> bool:
    """Return whether a method detaches an argument under its own name."""
    return any(
        isinstance(n, ast.Assign) and isinstance(n.value, ast.Call) and tail_of(n.value.func) in CUT
        and any(isinstance(t, ast.Name) and t.id == name for t in n.targets)
        for n in inner(function, ast.Assign)
    )  # fmt: skip


def _kept(node: ast.AST) -> tuple[str, ast.expr] | None:
    """Return what a node adds to something, as it is, and to what."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in {"append", "add"} and len(node.args) == 1:
            return _single(node.args[0], node.func.value)
    elif isinstance(node, ast.AugAssign):
        return _single(node.value, node.target) if isinstance(node.op, ast.Add) else None
    elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.BinOp):
        target, sides = text_of(node.targets[0]), (node.value.left, node.value.right)
        for one, other in (sides, sides[::-1]):
            if isinstance(node.value.op, ast.Add) and text_of(one) == target:
                return _single(other, node.targets[0])
    return None


def _single(value: ast.expr, into: ast.expr) -> tuple[str, ast.expr] | None:
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult | ast.Div):
        value = value.left
    return (value.id, into) if isinstance(value, ast.Name) else None


def _is_cut(name: str, node: ast.AST, module: Module) -> bool:
    """Return whether the loss was detached, or made a number, under its own name before."""
    function = function_of(node, module) or module.tree
    for other in inner(function, ast.Assign):
        if (
            isinstance(other, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == name for t in other.targets)
            and isinstance(other.value, ast.Call)
            and tail_of(other.value.func) in CUT
        ):
            return True
    return any(
        isinstance(a, ast.With) and "no_grad" in text_of(a.items[0].context_expr) for a in module.ancestors(node)
    )


def _outlives(into: ast.expr, node: ast.AST, module: Module) -> bool:
    """Return whether what it is added to was made outside of the step's loop."""
    if not isinstance(into, ast.Name):
        return not isinstance(into, ast.Call)
    loop = loop_of(node, module)
    if loop is None:
        function = function_of(node, module)
        stores = (n for n in inner(function or module.tree, ast.Name) if isinstance(n, ast.Name) and n.id == into.id)
        return function is not None and not any(isinstance(n.ctx, ast.Store) for n in stores)
    statement = statement_of(node, module)
    for other in inner(loop, ast.Assign):
        if (
            other is not statement
            and isinstance(other, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == into.id for t in other.targets)
        ):
            return False
    return True


def _unsummed(into: ast.expr, function: ast.AST) -> bool:
    """Return whether no backward pass starts from the sum itself."""
    text = text_of(into)
    if _made_of(text, function) & _starts(function):
        return False
    for call in calls(function):
        if ("backward" in tail_of(call.func) or tail_of(call.func) == "scale") and any(
            text_of(n) == text for n in walk(call) if isinstance(n, ast.expr) and n is not call
        ):
            return False
    return True
