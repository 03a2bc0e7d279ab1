"""Which keys the batches of loaders have: what their data sets, or the functions that put batches together, return."""

import ast

from gates.scan.analyses.reading.code import callee, keyword
from gates.scan.analyses.reading.keys import Keys, keys_returned
from gates.scan.analyses.reading.origins import Origins
from gates.scan.program.known import LOADER
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

MOVES = frozenset({"to", "cuda", "send_to_device", "move_to_device", "to_device", "move"})
WRAPS = frozenset({"tqdm", "iter", "enumerate", "prepare", "setup_dataloaders", "cycle", "track", "islice", "zip"})
Made = tuple[Keys, Function, Module]


def keys_of_batches(project: Project, module: Module, node: ast.expr) -> Made | None:
    """Return the keys of all batches that a variable may be, and what makes them; `None` where one is not known."""
    if not isinstance(node, ast.Name):
        return None
    makers: dict[Function, Module] = {}
    if not _follow(project, node, project.scope_at(node, module), makers, set()) or not makers:
        return None
    found = [keys_returned(project, function, there) for function, there in makers.items()]
    if any(keys is None for keys in found):
        return None
    first = next(iter(makers.items()))
    return frozenset[str]().union(*(keys for keys in found if keys is not None)), *first


def _follow(
    project: Project, node: ast.expr, scope: Scope, makers: dict[Function, Module], moved: set[ast.expr]
) -> bool:
    """Note what makes the batches that an expression may be; return whether all of it is known."""
    for made, where, path in Origins(project).ways(node, scope):
        if isinstance(made, ast.Name | ast.Attribute | ast.IfExp) or made in moved or _passes_on(project, made, where):
            continue
        if path == ():
            moved.add(made)
            same = _moved(made)
            if same is None or not _follow(project, same, where, makers, moved):
                return False
        elif isinstance(made, ast.Call) and (
            project.types.of(made, where) != LOADER or not _note(project, made, where, makers)
        ):
            return False
    return True


def _passes_on(project: Project, node: ast.expr, scope: Scope) -> bool:
    """Return whether a call gives the elements of what it is handed, or returns what is followed by itself."""
    if not isinstance(node, ast.Call):
        return False
    target = callee(project, scope.module, node)
    if target is not None:
        return not any(True for _ in inner(target, ast.Yield, ast.YieldFrom))
    return tail_of(node.func) in WRAPS


def _moved(node: ast.expr) -> ast.expr | None:
    """Return the batch that an expression only moves to a device: `{k: v.to(device) for k, v in batch.items()}`."""
    if isinstance(node, ast.DictComp) and len(node.generators) == 1 and not node.generators[0].ifs:
        over, target = node.generators[0].iter, node.generators[0].target
        key = target.elts[0] if isinstance(target, ast.Tuple) else None
        is_same = isinstance(key, ast.Name) and isinstance(node.key, ast.Name) and key.id == node.key.id
        if is_same and isinstance(over, ast.Call) and tail_of(over.func) == "items":
            return over.func.value if isinstance(over.func, ast.Attribute) else None
    if isinstance(node, ast.Call) and tail_of(node.func) in MOVES:
        of = node.func.value if isinstance(node.func, ast.Attribute) and tail_of(node.func) in {"to", "cuda"} else None
        return of or (node.args[0] if node.args else None)
    return None


def _note(project: Project, loader: ast.Call, scope: Scope, makers: dict[Function, Module]) -> bool:
    """Note what makes the batches of a loader; return whether that is known."""
    if any(k.arg is None and not _is_plain(k.value, scope) for k in loader.keywords) or not loader.args:
        return False
    collate = keyword(loader, "collate_fn")
    if collate is not None:
        named = scope.dotted(collate) if isinstance(collate, ast.Name | ast.Attribute) else None
        found = project.functions.get(named or "") or _own(project, collate, scope)
        if found is not None:
            makers[found[0]] = found[1]
        return found is not None
    owners = Origins(project).classes(loader.args[0], scope)
    for owner in owners:
        method = project.method(owner, "__getitem__")
        if method is None:
            return False
        makers[method[0]] = method[1]
    return len(owners) == 1


def _own(project: Project, collate: ast.expr, scope: Scope) -> tuple[Function, Module] | None:
    """Return the method that an object of the program puts batches together with, where no other class has its own."""
    owner = scope.class_of(collate.value) if isinstance(collate, ast.Attribute) else None
    if owner is None or not isinstance(collate, ast.Attribute) or project.method_names[collate.attr] != 1:
        return None
    found = [*project.by_method.get(collate.attr, ())]
    return (found[0].methods[collate.attr], found[0].scope.module) if collate.attr in found[0].methods else None


def _is_plain(options: ast.expr, scope: Scope) -> bool:
    """Return whether options are written out that say nothing of how a batch is put together."""
    behind = scope.through(options) if isinstance(options, ast.Name) else None
    made = behind[0] if behind is not None else options
    if isinstance(made, ast.Call) and tail_of(made.func) == "dict" and not made.args:
        return all(k.arg not in {None, "collate_fn", "sampler", "batch_sampler"} for k in made.keywords)
    if isinstance(made, ast.Dict):
        keys = [k.value if isinstance(k, ast.Constant) else None for k in made.keys]
        return all(isinstance(k, str) and k != "collate_fn" for k in keys)
    return False
