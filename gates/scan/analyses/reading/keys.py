"""Which keys a dictionary has that a function of the program returns or yields; `None` where reading cannot tell."""

import ast
from collections.abc import Iterable

from gates.scan.analyses.reading.code import callee, constant, function_of, named
from gates.scan.analyses.reading.held import leaves_alone
from gates.scan.analyses.reading.only_read import only_reads
from gates.scan.analyses.reading.texts import HOLE, Reader
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, kept
from gates.scan.program.project import Project

Keys = frozenset[str]
HOPS = 4
ADDS = frozenset({"setdefault", "update"})
MAKES = frozenset({"dict", "OrderedDict"})
PLAIN = frozenset({"no_grad", "inference_mode", "enable_grad", "staticmethod", "autocast", "record_function"})
GIVES_ANY = frozenset({"defaultdict", "Counter"})


def keys_of(project: Project, module: Module, node: ast.expr) -> Keys | None:
    """Return the keys of the dictionary that an expression is where it stands."""
    return _of(project, module, function_of(node, module) or module.tree, node, HOPS)


def keys_returned(project: Project, function: Function, module: Module, index: int | None = None) -> Keys | None:
    """Return the keys of all that a function returns, or of what it returns at a place of a tuple."""
    if isinstance(function, ast.AsyncFunctionDef) or any(True for _ in inner(function, ast.Yield, ast.YieldFrom)):
        return None
    values = [n.value for n in inner(function, ast.Return) if isinstance(n, ast.Return) and n.value is not None]
    return _of_all(project, module, function, values, index, HOPS)


def is_decorated(function: Function) -> bool:
    """Return whether a decorator may give something else than what a function returns."""
    return any(tail_of(d.func if isinstance(d, ast.Call) else d) not in PLAIN for d in function.decorator_list)


def keys_yielded(project: Project, function: Function, module: Module) -> Keys | None:
    """Return the keys of all that a generator yields."""
    if any(True for _ in inner(function, ast.YieldFrom)):
        return None
    values = [n.value for n in inner(function, ast.Yield) if isinstance(n, ast.Yield) and n.value is not None]
    return _of_all(project, module, function, values, None, HOPS)


def _of_all(
    project: Project, module: Module, function: ast.AST, values: Iterable[ast.expr], index: int | None, hops: int
) -> Keys | None:
    found: set[str] = set()
    seen = False
    for value in values:
        if constant(value) is None and isinstance(value, ast.Constant):
            continue
        part = value
        if index is not None:
            if not isinstance(value, ast.Tuple) or index >= len(value.elts):
                return None
            part = value.elts[index]
        keys = _of(project, module, function, part, hops)
        if keys is None:
            return None
        found |= keys
        seen = True
    return frozenset(found) if seen else None


def _of(project: Project, module: Module, function: ast.AST, node: ast.expr, hops: int) -> Keys | None:
    """Return the keys of an expression."""
    if isinstance(node, ast.Dict):
        return _written(project, module, function, node, hops)
    if isinstance(node, ast.IfExp):
        return _of_all(project, module, function, (node.body, node.orelse), None, hops)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = [_of(project, module, function, side, hops) for side in (node.left, node.right)]
        return None if None in sides else frozenset().union(*(side for side in sides if side is not None))
    if isinstance(node, ast.Name) and hops:
        return _grown(project, module, function, node.id, hops - 1)
    if isinstance(node, ast.DictComp):
        return _texts(project, module, node.key, hops)
    return _made(project, module, function, node, hops) if isinstance(node, ast.Call) else None


def _made(project: Project, module: Module, function: ast.AST, node: ast.Call, hops: int) -> Keys | None:
    """Return the keys of what a call makes a dictionary of, or returns."""
    if tail_of(node.func) in GIVES_ANY:
        return frozenset({HOLE})
    if tail_of(node.func) in MAKES:
        return _joined(project, module, function, node, hops)
    if isinstance(node.func, ast.Attribute) and node.func.attr == "copy" and not node.args:
        return _of(project, module, function, node.func.value, hops)
    if (fields := _of_fields(project, module, node)) is not None:
        return fields
    return _called(project, module, function, node, hops)


def _called(
    project: Project, module: Module, function: ast.AST, node: ast.Call, hops: int, index: int | None = None
) -> Keys | None:
    """Return the keys of what a call returns, or of what it returns at a place of a tuple."""
    target = callee(project, module, node) if hops else None
    return _of_call(project, module, function, node, target, hops, index) if target is not None else None


def _of_call(
    project: Project, module: Module, function: ast.AST, node: ast.Call, target: Function, hops: int, index: int | None
) -> Keys | None:
    """Return the keys of all that a call may return: of a method, what each class gives that puts its own there."""
    found: set[str] = set()
    seen = False
    for run in _all_run(project, module, node, target):
        if run is None:
            return None
        values = [n.value for n in inner(run, ast.Return) if isinstance(n, ast.Return) and n.value is not None]
        if not values and run is target:
            continue  # left to the classes below
        if run is function or is_decorated(run):
            return None
        keys = _of_all(project, project.scope_of(run, module).module, run, values, index, hops - 1)
        if keys is None:
            return None
        found |= keys
        seen = True
    return frozenset(found) if seen else None


def _all_run(project: Project, module: Module, node: ast.Call, target: Function) -> list[Function | None]:
    """Return the function that a call runs and those in its place in the classes below; `None` for one not known."""
    owner = project.scope_of(target, module).owner
    if owner is None or not isinstance(node.func, ast.Attribute) or _is_above(project, module, node.func.value):
        return [target]
    below = list(project.below(owner))
    if any(target.name in info.attributes for info in (owner, *below)):
        return [None]
    found = (project.method(info, target.name) for info in below)
    return list(dict.fromkeys((target, *(each and each[0] for each in found))))


def _is_above(project: Project, module: Module, node: ast.expr) -> bool:
    """Return whether a method is asked of one class, whatever class the object is of: `super()`, `Base`, `Base()`."""
    made = node.func if isinstance(node, ast.Call) else node
    return tail_of(made) == "super" or (project.scope_at(node, module).dotted(made) or "") in project.classes


def _of_fields(project: Project, module: Module, node: ast.Call) -> Keys | None:
    """Return the fields of a data class that is turned into a dictionary, or those that a typed one is made with."""
    scope = project.scope_at(node, module)
    if tail_of(node.func) == "asdict" and len(node.args) == 1:
        info = project.classes.get(project.types.of(node.args[0], scope) or "")
        return _fields(project, info) if info is not None else None
    info = project.classes.get(scope.dotted(node.func) or "")
    if info is None or not any((base or "").endswith("TypedDict") for base in info.bases) or node.args:
        return None
    return frozenset(k.arg for k in node.keywords if k.arg) if all(k.arg for k in node.keywords) else None


def _fields(project: Project, info: ClassInfo) -> Keys | None:
    """Return the fields of a data class and of those that it extends; `None` where one of them is not known."""
    order = project.order_of(info)
    if info.twice or any(base not in project.classes for each in order for base in each.bases if base != "object"):
        return None
    listed = (n.target for each in order for n in each.node.body if isinstance(n, ast.AnnAssign))
    return frozenset(tail_of(target) for target in listed)


def _written(project: Project, module: Module, function: ast.AST, node: ast.Dict, hops: int) -> Keys | None:
    found: set[str] = set()
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            inside = _of(project, module, function, value, hops)
            if inside is None:
                return None
            found |= inside
        else:
            texts = _texts(project, module, key, hops)
            if texts is None:
                return None
            found |= texts
    return frozenset(found)


def _texts(project: Project, module: Module, key: ast.expr, hops: int) -> Keys | None:
    """Return the texts that a key may be, with holes for what is not known; `None` where nothing of it is."""
    return _reader(project, hops).of(key, module)


def _reader(project: Project, hops: int) -> Reader:
    """Return what reads texts, those that loops over dictionaries go over included."""

    def keyed(there: Module, node: ast.expr) -> Keys | None:
        found = _of(project, there, function_of(node, there) or there.tree, node, hops - 1) if hops > 0 else None
        return found - {HOLE} if found is not None else None

    return Reader(project, keyed)


def _grown(project: Project, module: Module, function: ast.AST, name: str, hops: int) -> Keys | None:
    """Return the keys of a variable that begins as a dictionary and is given more, key by key."""
    found: set[str] = set()
    read: list[ast.expr] = []
    begun = 0
    for node in kept(function, named).get(name, ()):
        if isinstance(node, ast.arg):
            return None
        if not isinstance(node, ast.Name) or node not in module.parents:
            continue
        parent = module.parents[node]
        read += [parent.slice] if isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Load) else []
        more = _of_use(project, module, function, node, hops)
        if more is None:
            return None
        begun += isinstance(node.ctx, ast.Store)
        found |= more
    for key in read if HOLE in found else ():
        texts = _texts(project, module, key, hops)
        if texts is None:
            return None
        found |= texts
    return frozenset(found) if begun else None


def _of_use(project: Project, module: Module, function: ast.AST, node: ast.Name, hops: int) -> Keys | None:
    """Return the keys that one use of a variable puts into it; `None` for a use that may put in any."""
    parent = module.parents[node]
    if isinstance(node.ctx, ast.Store):
        if isinstance(parent, ast.Tuple):
            return _unpacked(project, module, function, node, parent, hops)
        plain = isinstance(parent, ast.Assign | ast.AnnAssign) and parent.value is not None
        is_whole = plain and (isinstance(parent, ast.AnnAssign) or node in getattr(parent, "targets", ()))
        return _of(project, module, function, parent.value, hops) if is_whole and parent.value is not None else None  # type: ignore[attr-defined]
    if isinstance(parent, ast.Subscript) and parent.value is node:
        if isinstance(parent.ctx, ast.Load):
            return frozenset()
        return _texts(project, module, parent.slice, hops) if isinstance(parent.ctx, ast.Store) else None
    call = module.parents.get(parent)
    if isinstance(parent, ast.Attribute) and isinstance(call, ast.Call) and parent.attr in ADDS:
        if parent.attr == "setdefault":
            return _texts(project, module, call.args[0], hops) if call.args else None
        return _joined(project, module, function, call, hops)
    is_left = isinstance(parent, ast.Return | ast.Yield | ast.Tuple) or only_reads(parent, node, module)
    return frozenset() if is_left or leaves_alone(project, module, node) else None


def _joined(project: Project, module: Module, function: ast.AST, call: ast.Call, hops: int) -> Keys | None:
    """Return the keys that a call gives a dictionary by what it is passed: `dict(row, epoch=1)`, `row.update(more)`."""
    wholes = [*call.args, *(k.value for k in call.keywords if k.arg is None)]
    given = [
        _of(project, module, function, whole, hops) or _reader(project, hops).elements(whole, [0], module)
        for whole in wholes
    ]
    by_name = frozenset(k.arg for k in call.keywords if k.arg)
    return by_name.union(*(keys for keys in given if keys is not None)) if None not in given else None


def _unpacked(
    project: Project, module: Module, function: ast.AST, name: ast.Name, parts: ast.Tuple, hops: int
) -> Keys | None:
    """Return the keys of a variable that is one of several that a call returns: `loss, figures = self.step(batch)`."""
    around = module.parents.get(parts)
    value = around.value if isinstance(around, ast.Assign) else None
    if not isinstance(value, ast.Call) or any(isinstance(part, ast.Starred) for part in parts.elts):
        return None
    return _called(project, module, function, value, hops, parts.elts.index(name))
