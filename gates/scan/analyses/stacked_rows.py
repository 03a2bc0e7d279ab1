"""Batches that are put together from rows which Python makes, or moves to the device, one by one."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gates.scan.analyses._code import broken, callee, function_of, module_of
from gates.scan.analyses._flow import is_forward
from gates.scan.analyses._origins import COMPREHENSIONS
from gates.scan.module import Module, tail_of
from gates.scan.nodes import inner, text_of, walk
from gates.scan.project import Project
from gates.scan.site import Site

WORDS = ("stack", "vstack", "hstack", "cat", "concat", "pad_sequence", "default_collate")
JOINS = frozenset(WORDS)
SINGLE = re.compile(r"unsqueeze|\[None|from_numpy|tensor\(")  # of one row, so that many of them make a batch
DEVICE = re.compile(r"(?i)dev|cuda|gpu|rank")
NO_BATCH = re.compile(r"(?i)norm|grad|loss|param|weight|metric|mark|flag|model")  # brought together, and no batch
REDUCES = frozenset({"mean", "sum", "norm", "max", "min", "prod", "var", "std", "all", "any", "median"})
WRAPS = frozenset({"list", "tuple", "sorted"})
MADE = ("torch.from_numpy", "torch.tensor", "torch.as_tensor")
MESSAGE = "the batch is stacked from rows that Python makes one by one"
MAX_HOPS = 3


@dataclass(frozen=True)
class Rows:
    """The rows of a batch: what each is made by, what it goes over, and where."""

    place: ast.AST
    each: ast.expr
    over: str
    shown: str


def look(project: Project) -> Iterator[Site]:
    """Yield each batch that is stacked of rows which are made, or moved, one by one."""
    for module in project.modules.values():
        for call in (call for tail in sorted(JOINS & module.calls.keys()) for call in module.calls[tail]):
            if not call.args or not (project.scope_at(call, module).dotted(call.func) or "").startswith("torch."):
                continue
            if _is_reduced(call, module):
                continue
            found = (rows for rows in _rows(call, call.args[0], module) if not NO_BATCH.search(rows.over))
            slow = next((rows for rows in found if _is_slow(project, module, call, rows)), None)
            if slow is not None:
                yield broken(module, slow.place, MESSAGE)


def _is_slow(project: Project, module: Module, call: ast.Call, rows: Rows) -> bool:
    if tail_of(call.func) in {"cat", "concat"} and not SINGLE.search(rows.shown):
        return False
    if _is_moved(project, module, rows.each, MAX_HOPS):
        return True
    base = _base(rows.each)
    if isinstance(base, ast.Call) and is_forward(project, module, base):
        return False
    is_made = isinstance(rows.each, ast.Call) and project.scope_at(call, module).dotted(rows.each.func) in MADE[:2]
    is_plain = rows.place is call and (is_made or not isinstance(base, ast.Call) or _is_torch(base.func))
    if is_made and tail_of(call.func) == "stack":
        return True
    return rows.place is call and _is_moved_later(call, module, by_name=is_plain)


def _rows(call: ast.Call, node: ast.expr, module: Module, hops: int = MAX_HOPS) -> Iterator[Rows]:
    """Yield the rows of a list: as it is written out, as it was set before, or as a loop adds to it."""
    if isinstance(node, COMPREHENSIONS) and not isinstance(node, ast.DictComp):
        yield Rows(call, node.elt, " ".join(text_of(g.iter) for g in node.generators), text_of(node.elt))
    elif isinstance(node, ast.Call) and tail_of(node.func) in WRAPS and node.args and hops:
        yield from _rows(call, node.args[0], module, hops - 1)
    elif isinstance(node, ast.Call) and tail_of(node.func) == "map":
        turned = node.args[0].body if len(node.args) > 1 and isinstance(node.args[0], ast.Lambda) else None
        yield from [Rows(call, turned, text_of(node.args[1]), text_of(turned))] if turned is not None else []
    elif isinstance(node, ast.Name) and hops:
        yield from _named(call, node.id, module, hops)


def _named(call: ast.Call, name: str, module: Module, hops: int) -> Iterator[Rows]:
    body = function_of(call, module) or module.tree
    for made in inner(body, ast.Assign):
        if not isinstance(made, ast.Assign) or made.lineno > call.lineno or isinstance(made.value, ast.Name):
            continue
        if any(isinstance(target, ast.Name) and target.id == name for target in made.targets):
            yield from _rows(call, made.value, module, hops - 1)
    for loop in inner(body, ast.For):
        if not isinstance(loop, ast.For) or loop.lineno > call.lineno or any(n is call for n in walk(loop)):
            continue
        for added in inner(loop, ast.Call):
            is_added = isinstance(added, ast.Call) and isinstance(added.func, ast.Attribute) and len(added.args) == 1
            if is_added and added.func.attr == "append" and text_of(added.func.value) == name:  # type: ignore[attr-defined]
                for each in _before(added.args[0], loop):  # type: ignore[attr-defined]  # a call
                    yield Rows(added, each, text_of(loop.iter), text_of(added.args[0]))  # type: ignore[attr-defined]


def _before(node: ast.expr, loop: ast.For) -> list[ast.expr]:
    """Return what a variable is set to in a loop."""
    sets = [n for n in inner(loop, ast.Assign) if isinstance(n, ast.Assign) and text_of(n.targets[0]) == text_of(node)]
    return [n.value for n in sets] if isinstance(node, ast.Name) and sets else [node]


def _is_moved(project: Project, module: Module, node: ast.expr, hops: int) -> bool:
    """Return whether a row is moved to the device by itself, not within what it is an argument of."""
    moved = False
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.BinOp):
            node = node.right if isinstance(node.left, ast.Constant) else node.left
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not _is_torch(node.func):
            given = [*node.args, *(k.value for k in node.keywords)]
            moved = moved or node.func.attr == "cuda"
            moved = moved or (node.func.attr == "to" and any(DEVICE.search(text_of(a)) for a in given))
            node = node.func.value
        else:
            break
    if not isinstance(node, ast.Call):
        return moved
    if is_forward(project, module, node):
        return False
    if _is_torch(node.func) and tail_of(node.func) not in {"tensor", "as_tensor", "from_numpy", "load"}:
        return False  # it makes the row there is nothing else of
    onto = [k.value for k in node.keywords if k.arg == "device"]
    if moved or (_is_torch(node.func) and any(DEVICE.search(text_of(value)) for value in onto)):
        return True
    made = project.scope_at(node, module).through(node.func) if hops else None
    if made is not None and isinstance(made[0], ast.Lambda):
        return _is_moved(project, made[1].module, made[0].body, hops - 1)
    target = callee(project, module, node) if hops else None
    there = module_of(project, target, module) if target is not None else module
    given = [n.value for n in inner(target, ast.Return) if isinstance(n, ast.Return) and n.value] if target else []
    return any(_is_moved(project, there, value, hops - 1) for value in given)


def _is_torch(func: ast.expr) -> bool:
    of = func.value if isinstance(func, ast.Attribute) else None
    return isinstance(of, ast.Name) and of.id in {"torch", "np", "F"}


def _base(node: ast.expr) -> ast.expr:
    """Return what the methods in a row are called on."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
        node = node.func.value
    return node


def _is_reduced(call: ast.Call, module: Module) -> bool:
    """Return whether the rows are brought together only to be reckoned with."""
    parent = module.parents.get(call)
    by_call = isinstance(parent, ast.Call) and parent.func is not call and tail_of(parent.func) in REDUCES
    return by_call or (isinstance(parent, ast.Attribute) and parent.attr in REDUCES)


def _is_moved_later(call: ast.Call, module: Module, *, by_name: bool) -> bool:
    """Return whether a batch is moved to the device where it is made, itself or by its name."""
    parent, node = module.parents.get(call), call
    while isinstance(parent, ast.Attribute) and isinstance(module.parents.get(parent), ast.Call):
        node = module.parents[parent]  # type: ignore[assignment]  # it is a call
        if _moves(node):
            return True
        parent = module.parents.get(node)
    target = parent.targets[0] if isinstance(parent, ast.Assign) else None
    name = target.id if isinstance(target, ast.Name) else ""
    later = (c for c in inner(function_of(call, module) or module.tree, ast.Call) if isinstance(c, ast.Call))
    return (
        by_name
        and bool(name)
        and any(_moves(c) and isinstance(c.func, ast.Attribute) and text_of(c.func.value) == name for c in later)
    )


def _moves(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute):
        return False
    given = [*call.args, *(k.value for k in call.keywords)]
    return call.func.attr == "cuda" or (call.func.attr == "to" and any(DEVICE.search(text_of(a)) for a in given))
