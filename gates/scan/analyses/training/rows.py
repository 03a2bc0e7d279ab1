"""The rows that a batch is put together from: where the code lists them, and what tells that they are no batch."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gates.scan.analyses.reading.asides import is_aside
from gates.scan.analyses.reading.code import MODEL, function_of
from gates.scan.analyses.reading.flow import is_forward, set_before
from gates.scan.analyses.reading.origins import COMPREHENSIONS
from gates.scan.analyses.training.forwards import RUNS_MODEL
from gates.scan.program.known import MODULE
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

DEVICE = re.compile(r"(?i)dev|cuda|gpu|rank")
WRAPS = frozenset({"list", "tuple", "sorted"})
PADS = re.compile(r"(?i)(^|_)pad(ded|ding)?(_|$)")
FILLS = re.compile(r"^(new_)?(zeros|ones|full|empty)(_like)?$")
JOINS_PARTS = frozenset({"cat", "concat", "concatenate", "hstack", "vstack"})
SAME_ARRAY = frozenset({"array", "asarray", "ascontiguousarray", "copy", "astype", "contiguous", "float", "long"})
MAX_HOPS = 3
MAX_SETS = 6


@dataclass(frozen=True)
class Turn:
    """A loop's variables, and what it goes over."""

    target: ast.expr
    over: ast.expr


@dataclass(frozen=True)
class Rows:
    """The rows of a batch: what each is made by, the loops that make them, what these go over, and where."""

    place: ast.AST
    each: ast.expr
    turns: tuple[Turn, ...]
    over: str
    shown: str
    stored: frozenset[str] = frozenset()  # what the loop sets besides


def rows_of(call: ast.Call, node: ast.expr, module: Module, hops: int = MAX_HOPS) -> Iterator[Rows]:
    """Yield the rows of a list: as it is written out, as it was set before, or as a loop adds to it."""
    if isinstance(node, COMPREHENSIONS) and not isinstance(node, ast.DictComp):
        over = " ".join(text_of(g.iter) for g in node.generators)
        yield Rows(call, node.elt, turns_of(node), over, text_of(node.elt))
    elif isinstance(node, ast.Call) and tail_of(node.func) in WRAPS and node.args and hops:
        yield from rows_of(call, node.args[0], module, hops - 1)
    elif isinstance(node, ast.Call) and tail_of(node.func) == "map" and len(node.args) > 1:
        turned = node.args[0]
        if isinstance(turned, ast.Lambda):
            names = (ast.Name(a.arg, ast.Store()) for a in turned.args.args)
            turns = tuple(Turn(name, over) for name, over in zip(names, node.args[1:], strict=False))
            yield Rows(call, turned.body, turns, text_of(node.args[1]), text_of(turned.body))
    elif isinstance(node, ast.Name) and hops:
        yield from _named(call, node.id, module, hops)


def turns_of(node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> tuple[Turn, ...]:
    """Return the loops of a comprehension."""
    return tuple(Turn(g.target, g.iter) for g in node.generators)


def is_window(rows: Rows) -> bool:
    """Return whether each row is a span of one array, from where the loop says: `torch.from_numpy(data[i : i + n])`."""
    node = rows.each
    while isinstance(node, ast.Call):
        is_method = isinstance(node.func, ast.Attribute) and node.func.attr in SAME_ARRAY and bool(_names(node.func))
        of_data = is_method and tail_of(node.func.value) not in {"np", "torch"}  # type: ignore[attr-defined]
        node = node.func.value if of_data else node.args[0] if node.args else ast.Constant(None)  # type: ignore[attr-defined]
    span = node.slice if isinstance(node, ast.Subscript) else None
    return (
        isinstance(span, ast.Slice)
        and span.lower is not None
        and span.upper is not None
        and any(_names(span.lower) & _names(turn.target) for turn in rows.turns)
    )


def _named(call: ast.Call, name: str, module: Module, hops: int) -> Iterator[Rows]:
    body = function_of(call, module) or module.tree
    for made in inner(body, ast.Assign):
        if not isinstance(made, ast.Assign) or made.lineno > call.lineno or isinstance(made.value, ast.Name):
            continue
        if any(isinstance(target, ast.Name) and target.id == name for target in made.targets):
            yield from rows_of(call, made.value, module, hops - 1) if not is_aside(made, call, module) else ()
    for loop in inner(body, ast.For):
        if not isinstance(loop, ast.For) or loop.lineno > call.lineno or any(n is call for n in walk(loop)):
            continue
        stored = _stored(loop)
        for added in _added(loop, name):
            for each in _before(added.args[0], loop) if not is_aside(added, call, module) else ():
                over = (Turn(loop.target, loop.iter),)
                yield Rows(added, each, over, text_of(loop.iter), text_of(added.args[0]), stored)


def _added(body: ast.AST, name: str) -> Iterator[ast.Call]:
    """Yield the calls that add one thing to a list."""
    for added in inner(body, ast.Call):
        is_method = isinstance(added, ast.Call) and isinstance(added.func, ast.Attribute) and len(added.args) == 1
        if is_method and added.func.attr == "append" and text_of(added.func.value) == name:  # type: ignore[attr-defined]
            yield added  # type: ignore[misc]  # a call


def _stored(node: ast.AST) -> frozenset[str]:
    names = (n for n in inner(node, ast.Name) if isinstance(n, ast.Name))
    return frozenset(n.id for n in names if isinstance(n.ctx, ast.Store))


def _before(node: ast.expr, loop: ast.For) -> list[ast.expr]:
    """Return what a variable is set to in a loop."""
    sets = [n for n in inner(loop, ast.Assign) if isinstance(n, ast.Assign) and text_of(n.targets[0]) == text_of(node)]
    return [n.value for n in sets] if isinstance(node, ast.Name) and sets else [node]


def is_padded(node: ast.expr) -> bool:
    """Return whether a row is brought to the length of the others: rows of several lengths are no one array."""
    for call in (n for n in walk(node) if isinstance(n, ast.Call)):
        if PADS.search(tail_of(call.func)):
            return True
        inside = (n for n in walk(call) if isinstance(n, ast.Call))
        if tail_of(call.func) in JOINS_PARTS and any(FILLS.search(tail_of(n.func)) for n in inside):
            return True
    return False


def is_across(call: ast.Call) -> bool:
    """Return whether things are brought together along another dimension than the first: no rows of a batch."""
    along = [k.value for k in call.keywords if k.arg in {"dim", "axis"}] or call.args[1:2]
    if not along:
        return False
    value = along[0].operand if isinstance(along[0], ast.UnaryOp) else along[0]
    return isinstance(value, ast.Constant) and isinstance(value.value, int) and value.value != 0


def is_same_each_turn(rows: Rows) -> bool:
    """Return whether a row has nothing of the turn that makes it: a mark between others, a filling."""
    turning = {name for turn in rows.turns for name in _names(turn.target)} | rows.stored
    made_of = rows.each.args[0] if isinstance(rows.each, ast.Call) and rows.each.args else None
    return isinstance(made_of, ast.List | ast.Tuple) and not _names(rows.each) & turning


def is_read(made: ast.expr) -> bool:
    """Return whether what makes a row of the host's data also reads it: no array that a list has already."""
    node = made.args[0] if isinstance(made, ast.Call) and made.args else None
    while isinstance(node, ast.Call) and tail_of(node.func) in SAME_ARRAY:
        is_method = isinstance(node.func, ast.Attribute) and tail_of(node.func.value) not in {"np", "numpy"}
        node = node.func.value if is_method else node.args[0] if node.args else None  # type: ignore[attr-defined]
    shapes = (n for n in walk(node) if isinstance(n, ast.Attribute)) if node is not None else ()
    is_written = isinstance(node, ast.Name | ast.List | ast.Tuple | ast.Constant)
    return node is not None and not is_written and all(n.attr not in {"shape", "size"} for n in shapes)


def is_there(project: Project, module: Module, node: ast.expr, turns: tuple[Turn, ...], hops: int = MAX_SETS) -> bool:
    """Return whether rows are parts of what a model returned, or of what lies on the device before."""
    scope = project.scope_at(turns[0].over if turns else node, module)
    root = _root(project, scope, node)
    return root is True or (isinstance(root, ast.expr) and hops > 0 and _comes(project, scope, root, turns, hops))


def _comes(project: Project, scope: Scope, root: ast.expr, turns: tuple[Turn, ...], hops: int) -> bool:
    if isinstance(root, ast.Attribute):
        made = scope.through(root)
        return made is not None and _lies(project, made[1], made[0])
    assert isinstance(root, ast.Name)
    for turn in turns:
        over = _gone_over(turn, root.id)
        if over is not None:
            return _is_set_there(project, scope, over, hops)
    return _is_set_there(project, scope, root, hops)


def _is_set_there(project: Project, scope: Scope, node: ast.expr, hops: int) -> bool:
    """Return whether what an expression names was last set to what lies on the device, or a list of it."""
    if _lies(project, scope, node):
        return True
    root = _root(project, scope, node)
    if isinstance(root, ast.Attribute):
        return _comes(project, scope, root, (), hops)
    if not isinstance(root, ast.Name) or not hops:
        return root is True
    body = scope.function or scope.module.tree
    values = set_before(body, root.id, getattr(node, "lineno", 0))
    if len(values) == 1 and isinstance(values[0][0], ast.List) and not values[0][0].elts:
        added = [c.args[0] for c in _added(body, root.id)]
        return bool(added) and all(_is_set_there(project, scope, value, hops - 1) for value in added)
    return bool(values) and all(_is_value_there(project, scope, value, hops - 1) for value, _ in values)


def _is_value_there(project: Project, scope: Scope, value: ast.expr, hops: int) -> bool:
    if isinstance(value, ast.ListComp | ast.GeneratorExp):
        return _lies(project, scope, value.elt) or is_there(project, scope.module, value.elt, turns_of(value), hops)
    return _is_set_there(project, scope, value, hops)


def _gone_over(turn: Turn, name: str) -> ast.expr | None:
    """Return what a variable of a loop is an element of: of `for i, (u, v) in enumerate(zip(a, b))`, `a` for `u`."""
    target, over = turn.target, turn.over
    while isinstance(over, ast.Call) and over.args and isinstance(over.func, ast.Name):
        elements = target.elts if isinstance(target, ast.Tuple) else []
        at = next((i for i, element in enumerate(elements) if name in _names(element)), 0)
        by = over.func.id
        if by == "zip" and at < len(over.args):
            target, over = elements[at] if elements else target, over.args[at]
        elif by == "enumerate" and len(elements) == 2 and at == 1:
            target, over = elements[1], over.args[0]
        elif by in WRAPS | {"reversed"}:
            over = over.args[0]
        else:
            return None
    return over if name in _names(target) else None


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in walk(node) if isinstance(n, ast.Name)}


def _lies(project: Project, scope: Scope, node: ast.expr) -> bool:
    """Return whether an expression is what a model returned, or is put on the device as a whole."""
    return _root(project, scope, node, told=True) is True


def _root(project: Project, scope: Scope, node: ast.expr, *, told: bool = False) -> ast.expr | bool:
    """Return what an expression is a part of, a name or an attribute; whether it is on the device where that is told.

    Where a row itself is asked for, that it is moved tells nothing of where it was before.
    """
    while True:
        if isinstance(node, ast.BinOp):
            node = node.right if isinstance(node.left, ast.Constant) else node.left
        elif isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and tail_of(node.value) != "self"):
            node = node.value
        elif isinstance(node, ast.Call):
            if _gives(project, scope, node) or (told and _is_put(node)):
                return True
            if not isinstance(node.func, ast.Attribute) or scope.project.is_module(node.func.value, scope):
                return False
            node = node.func.value
        else:
            return node if isinstance(node, ast.Name | ast.Attribute) else False


def _gives(project: Project, scope: Scope, call: ast.Call) -> bool:
    """Return whether a call runs a model, a method of one, or one of several layers."""
    if isinstance(call.func, ast.Subscript):
        held, owner = call.func.value, scope.self_class
        is_own = isinstance(held, ast.Attribute) and tail_of(held.value) == scope.self_name
        return is_own and owner is not None and project.types.is_a(owner.name, MODULE) is True
    if isinstance(call.func, ast.Attribute) and MODEL.search(tail_of(call.func.value)):
        return RUNS_MODEL.search(call.func.attr) is not None or call.func.attr in {"forward", "decode", "sample"}
    return is_forward(project, scope.module, call)


def _is_put(call: ast.Call) -> bool:
    return moves(call) or any(k.arg == "device" and DEVICE.search(text_of(k.value)) for k in call.keywords)


def moves(call: ast.Call) -> bool:
    """Return whether a call moves what it is a method of to the device."""
    if not isinstance(call.func, ast.Attribute):
        return False
    given = [*call.args, *(k.value for k in call.keywords)]
    return call.func.attr == "cuda" or (call.func.attr == "to" and any(DEVICE.search(text_of(a)) for a in given))
