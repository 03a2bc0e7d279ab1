"""Batches that are put together from rows which Python makes, or moves to the device, one by one."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.reading.code import LOOPS, broken, callee, constant, function_of, module_of
from gates.scan.analyses.reading.fields import is_field_of_rows
from gates.scan.analyses.reading.flow import is_forward
from gates.scan.analyses.reading.origins import COMPREHENSIONS, Origins
from gates.scan.analyses.settings.cpu_only import only_on_cpu
from gates.scan.analyses.settings.settings import setting
from gates.scan.analyses.training.batches import is_number_of, is_stored
from gates.scan.analyses.training.picks import TENSORS, picked
from gates.scan.analyses.training.rows import (
    DEVICE,
    MAX_HOPS,
    WRAPS,
    Rows,
    is_across,
    is_padded,
    is_read,
    is_same_each_turn,
    is_there,
    is_window,
    moves,
    rows_of,
)
from gates.scan.program.known import MODULE
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.site import Site

JOINS = frozenset({"stack", "vstack", "hstack", "cat", "concat", "pad_sequence", "default_collate"})
WORDS = tuple(sorted(JOINS | TENSORS))
SINGLE = re.compile(r"unsqueeze|\[None|from_numpy|tensor\(")  # of one row, so that many of them make a batch
NO_BATCH = re.compile(  # brought together, and no batch
    r"(?i)norm|grad|loss|param|weight|metric|mark|flag|model|outputs?\b|hidden_states|logits"
)
OF_WEIGHTS = re.compile(r"(?i)(^|_)(bias|weight|param|grad|norm|metric)(e?s)?$|(^|_)loss(es)?$")
DECODES = re.compile(r"(?i)dataset|(^|_)ds(_|$)")  # what may make each row anew
REDUCES = frozenset({"mean", "sum", "norm", "max", "min", "prod", "var", "std", "all", "any", "median"})
AS_IS = frozenset({"to", "cuda", "float", "long", "half", "unsqueeze", "contiguous", "clone", "detach"})  # a row's
MADE = ("torch.from_numpy", "torch.tensor", "torch.as_tensor")
MESSAGE = "the batch is stacked from rows that Python makes one by one"


def look(project: Project) -> Iterator[Site]:
    """Yield each batch that is stacked of rows which are made, or moved, one by one."""
    for module in project.modules.values() if not only_on_cpu(project) else ():
        for place in dict.fromkeys((*_stacked(project, module), *picked(project, module))):
            yield broken(module, place, MESSAGE)


def _stacked(project: Project, module: Module) -> Iterator[ast.AST]:
    """Yield where rows are stacked that are made, or moved, one by one."""
    for call in (call for tail in sorted(JOINS & module.calls.keys()) for call in module.calls[tail]):
        if not call.args or not (project.scope_at(call, module).dotted(call.func) or "").startswith("torch."):
            continue
        if _is_reduced(call, module) or is_across(call) or OF_WEIGHTS.search(tail_of(call.args[0])):
            continue
        found = (rows for rows in rows_of(call, call.args[0], module) if not NO_BATCH.search(rows.over))
        slow = next((rows for rows in found if _is_slow(project, module, call, rows)), None)
        if slow is not None:
            yield slow.place


def _is_slow(project: Project, module: Module, call: ast.Call, rows: Rows) -> bool:
    if _is_only_joined(call, module) and _is_picked(project, module, rows):
        return not (_is_few(rows, project.scope_at(call, module)) or _runs_once(project, module, call, MAX_HOPS))
    if tail_of(call.func) in {"cat", "concat"} and not SINGLE.search(rows.shown):
        return False
    if _is_few(rows, project.scope_at(call, module)) and _runs_once(project, module, call, MAX_HOPS):
        return False  # an example, made once
    if is_window(rows) and _is_pinned(call, module):
        return False  # the usual way to draw spans of one long text
    if is_same_each_turn(rows) or is_there(project, module, rows.each, rows.turns):
        return False
    if _is_moved(project, module, rows.each, MAX_HOPS):
        return True
    if is_padded(rows.each) or tail_of(call.func) == "pad_sequence":
        return False
    base = _base(rows.each)
    if isinstance(base, ast.Call) and is_forward(project, module, base):
        return False
    is_made = isinstance(rows.each, ast.Call) and project.scope_at(call, module).dotted(rows.each.func) in MADE[:2]
    is_plain = rows.place is call and (is_made or not isinstance(base, ast.Call) or _is_torch(base.func))
    if is_made and tail_of(call.func) == "stack" and is_read(rows.each):
        return True
    is_plain = is_plain or (rows.place is call and isinstance(base, ast.Call) and tail_of(base.func) == "getattr")
    is_moved = _is_moved_later(call, module, by_name=is_plain) or _is_sent(project, module, call, rows)
    is_moved = is_moved or (is_plain and _is_moved_by_turns(call, module))
    return rows.place is call and is_moved


def _is_only_joined(call: ast.Call, module: Module) -> bool:
    """Return whether a list of rows is asked for nothing but to be joined."""
    name = call.args[0].id if isinstance(call.args[0], ast.Name) else ""
    body = function_of(call, module) or module.tree
    used = [n for n in inner(body, ast.Name) if isinstance(n, ast.Name) and n.id == name and name]
    added = (module.parents.get(n) for n in used)
    adds = sum(isinstance(n, ast.Attribute) and n.attr == "append" for n in added)
    return sum(isinstance(n.ctx, ast.Load) for n in used) - adds <= 1


def _is_picked(project: Project, module: Module, rows: Rows) -> bool:
    """Return whether each row is one of a tensor that could be asked for all of them at once: `frames[i]`."""
    node = _numbered(rows)
    if node is None:
        return False
    scope = project.scope_at(rows.turns[0].over, module)
    is_forward_pass = scope.self_class is not None and project.types.is_a(scope.self_class.node.name, MODULE) is True
    if is_forward_pass:
        return False
    return is_stored(project, module, node.value) or is_field_of_rows(project, module, node.value, rows.turns[0].over)


def _numbered(rows: Rows) -> ast.Subscript | None:
    """Return what picks each row by its number out of one thing that holds all of them."""
    node = rows.each
    while isinstance(node, ast.Call | ast.Subscript):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in AS_IS:
            node = node.func.value
        elif isinstance(node, ast.Subscript) and constant(node.slice) is None and isinstance(node.slice, ast.Constant):
            node = node.value
        else:
            break
    if not isinstance(node, ast.Subscript) or len(rows.turns) != 1:
        return None
    turning = {n.id for n in walk(rows.turns[0].target) if isinstance(n, ast.Name)}
    of_turn = any(isinstance(n, ast.Name) and n.id in turning for n in walk(node.value))
    return node if is_number_of(node.slice, turning) and not of_turn else None


def _is_sent(project: Project, module: Module, call: ast.Call, rows: Rows) -> bool:
    """Return whether rows of one store, which are picked by numbers that are drawn, are pinned as a batch."""
    node, over = _numbered(rows), rows.turns[0].over if rows.turns else None
    if node is None or not isinstance(node.value, ast.Name | ast.Attribute) or not _is_pinned(call, module):
        return False
    is_all = isinstance(over, ast.Call) and tail_of(over.func) in {"range", "enumerate"}
    if is_all or DECODES.search(tail_of(node.value)):
        return False
    return not Origins(project).classes(node.value, project.scope_at(call, module))


def _is_few(rows: Rows, scope: Scope) -> bool:
    """Return whether so many rows as the program says itself are taken: `range(4)`, `(0, 1)`, `data[:4]`."""
    return bool(rows.turns) and all(_is_counted(turn.over, scope) for turn in rows.turns)


def _is_counted(over: ast.expr, scope: Scope) -> bool:
    if isinstance(over, ast.Tuple | ast.List):
        return all(isinstance(each, ast.Constant) for each in over.elts)
    if isinstance(over, ast.Subscript) and isinstance(over.slice, ast.Slice):
        upper = over.slice.upper
        return upper is not None and isinstance(setting(upper, scope), int)
    if not isinstance(over, ast.Call) or not over.args:
        return False
    if tail_of(over.func) in WRAPS | {"enumerate"}:
        return _is_counted(over.args[0], scope)
    bounds = {"range": over.args, "islice": over.args[1:]}.get(tail_of(over.func), [])
    return bool(bounds) and all(isinstance(setting(bound, scope), int) for bound in bounds)


def _runs_once(project: Project, module: Module, node: ast.AST, hops: int) -> bool:
    """Return whether code stands in no loop, nor does any call of the function around it."""
    for around in module.ancestors(node):
        if isinstance(around, (*LOOPS, ast.Lambda)):
            return False
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            found = project.named.get(around.name, [])
            return bool(hops and found) and all(_runs_once(project, m, c, hops - 1) for c, m in found if c is not node)
    return True


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


def _is_pinned(call: ast.Call, module: Module) -> bool:
    """Return whether a batch is put in pinned memory, itself or by its name."""
    parent = module.parents.get(call)
    if isinstance(parent, ast.Attribute):
        return parent.attr == "pin_memory"
    kept = text_of(parent.targets[0]) if isinstance(parent, ast.Assign) else ""
    asked = (c.func for c in inner(function_of(call, module) or module.tree, ast.Call) if isinstance(c, ast.Call))
    return any(isinstance(f, ast.Attribute) and f.attr == "pin_memory" and text_of(f.value) == kept for f in asked)


def _is_moved_later(call: ast.Call, module: Module, *, by_name: bool) -> bool:
    """Return whether a batch is moved to the device where it is made, itself or by its name."""
    parent, node = module.parents.get(call), call
    while isinstance(parent, ast.Attribute) and isinstance(module.parents.get(parent), ast.Call):
        node = module.parents[parent]  # type: ignore[assignment]  # it is a call
        if moves(node):
            return True
        parent = module.parents.get(node)
    target = parent.targets[0] if isinstance(parent, ast.Assign) else None
    name = target.id if isinstance(target, ast.Name) else ""
    later = (c for c in inner(function_of(call, module) or module.tree, ast.Call) if isinstance(c, ast.Call))
    return (
        by_name
        and bool(name)
        and any(moves(c) and isinstance(c.func, ast.Attribute) and text_of(c.func.value) == name for c in later)
    )


def _is_moved_by_turns(call: ast.Call, module: Module) -> bool:
    """Return whether each of the batches that a comprehension makes is moved as another one goes through them."""
    listed = module.parents.get(call)
    if not isinstance(listed, COMPREHENSIONS):
        return False
    kept = module.parents.get(listed)
    names = {text_of(target) for target in kept.targets} if isinstance(kept, ast.Assign) else set()
    for node in inner(function_of(call, module) or module.tree, *COMPREHENSIONS):
        for each in getattr(node, "generators", ()):
            views = isinstance(each.iter, ast.Call) and isinstance(each.iter.func, ast.Attribute) and not each.iter.args
            over = each.iter.func.value if views else each.iter
            turned = {n.id for n in walk(each.target) if isinstance(n, ast.Name)}
            if (over is listed or text_of(over) in names) and any(_moves_one(c, turned) for c in inner(node, ast.Call)):
                return True
    return False


def _moves_one(call: ast.AST, names: set[str]) -> bool:
    """Return whether a call moves one of some variables to the device."""
    func = call.func if isinstance(call, ast.Call) and moves(call) else None
    return isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in names
