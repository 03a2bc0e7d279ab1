"""Stores that are told one by one what to save and load: an optimizer, and not the scaler that goes with it."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.precision.at_hand import has_scaler, makes_keeper
from gates.scan.analyses.precision.keepers import deals, is_keeping, passing
from gates.scan.analyses.precision.precision import is_scaler
from gates.scan.analyses.precision.stores import is_given_later
from gates.scan.analyses.reading.code import broken, constant
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.program.signatures import parameters
from gates.scan.site import Site

SAVES, LOADS = re.compile(r"(?i)save|checkpoint|dump|state_dict"), re.compile(r"(?i)load|restore|recover|resume")
ADDS = frozenset({"append", "add", "update", "setdefault", "extend"})
OPTIMIZER = re.compile(r"(?i)(^|_)optim(izer)?s?(_|$|\d)|(^|_)opt(_|$|\d)")
MIXED = re.compile(r"(?i)scaler|(^|_)amp|amp$|fp16|precision|backend|strategy")
Told = tuple[str, ast.expr, ast.Call, Scope]


def unregistered(project: Project) -> Iterator[Site]:
    """Yield where an optimizer is registered to be saved, and no scaler is with the same store, though one is there."""
    for info, methods in _stores(project):
        told = [each for method in methods for each in _told(project, info, method)]
        optimizers = [each for each in told if OPTIMIZER.search(each[0]) or OPTIMIZER.search(tail_of(each[1]))]
        if not optimizers or any(_may_be_scaler(project, name, value, scope) for name, value, _, scope in told):
            continue
        for _, _, call, scope in optimizers:
            around = scope.function if isinstance(scope.function, ast.FunctionDef | ast.AsyncFunctionDef) else None
            is_there = has_scaler(project, around or scope.module.tree, scope) or makes_keeper(project, scope)
            if is_there and not is_given_later(project, call, scope) and not project.once(_saves_another_way)[0]:
                yield broken(scope.module, call, "the optimizer is registered to be saved, its scaler is not")


def _saves_another_way(project: Project) -> Iterator[bool]:
    """Yield whether a program asks a scaler for its state itself, but for what passes that on."""
    own = [info.methods["state_dict"] for info in project.once(passing)]
    yield any(deals(project, module, module.tree, "state_dict", own) for module in project.modules.values())


def _stores(project: Project) -> Iterator[tuple[ClassInfo, list[Function]]]:
    """Yield the classes that save and load what their methods are told of one by one, and these methods."""
    for info in project.classes.values():
        names = set(info.methods)
        if not any(SAVES.search(name) for name in names) or not any(LOADS.search(name) for name in names):
            continue
        methods = [m for name, m in info.methods.items() if name != "__init__" and _kept_by(m)]
        methods = methods if any(_is_told_optimizer(project, m.name) for m in methods) else []
        if methods:
            yield info, methods


def _is_told_optimizer(project: Project, name: str) -> bool:
    """Return whether some call by a name has what may be called an optimizer."""
    calls = (call for call, _ in project.named.get(name, ()))
    given = (arg for call in calls for arg in (*call.args, *(k.value for k in call.keywords)))
    return any("opt" in text_of(arg).lower() for arg in given)


def _kept_by(method: Function) -> set[str]:
    """Return the parameters that a method puts into a container of its object."""
    own, *names = parameters(method) or {"": None}
    stars = {star.arg for star in (method.args.vararg, method.args.kwarg) if star is not None}
    found: set[str] = set()
    for node in inner(method, ast.Assign, ast.Call):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.func if isinstance(node, ast.Call) else None
        held = target.value if isinstance(target, ast.Subscript | ast.Attribute) else None
        if not isinstance(held, ast.Attribute) or not isinstance(held.value, ast.Name) or held.value.id != own:
            continue
        if isinstance(node, ast.Call) and tail_of(node.func) not in ADDS:
            continue
        is_set = isinstance(node, ast.Assign) and isinstance(target, ast.Subscript)
        given = [node.value] if is_set and isinstance(node, ast.Assign) else getattr(node, "args", [])
        found |= {each.id for each in given if isinstance(each, ast.Name)}
    return found & {*names, *stars}


def _told(project: Project, info: ClassInfo, method: Function) -> Iterator[Told]:
    """Yield what calls of a method tell a store of, each with what it is called."""
    kept = _kept_by(method)
    for call, module in project.named.get(method.name, ()):
        scope = project.scope_at(call, module)
        if not _runs(project, info, method, call, scope):
            continue
        texts = [str(constant(a)) for a in (*call.args, *(k.value for k in call.keywords)) if _is_text(a)]
        for name in kept:
            value = argument(call, method, name, bound=True)
            yield from _parts(value, texts, call, scope) if value is not None else ()
        stars = {star.arg for star in (method.args.vararg, method.args.kwarg) if star is not None}
        if kept & stars:
            known = set(parameters(method))
            yield from ((str(k.arg or "**"), k.value, call, scope) for k in call.keywords if k.arg not in known)
            yield from ((tail_of(a), a, call, scope) for a in call.args)


def _runs(project: Project, info: ClassInfo, method: Function, call: ast.Call, scope: Scope) -> bool:
    """Return whether a call runs a method of a store, by its class, or as the only method of its name."""
    if not isinstance(call.func, ast.Attribute):
        return False
    target = project.types.function(call, scope)
    if target is not None:
        return target is method
    owners = project.by_method.get(method.name, [])
    is_only = all(each is info or info in project.ancestors_of(each) for each in owners)
    return is_only and method.name not in ADDS and scope.class_of(call.func.value) is None


def _parts(value: ast.expr, texts: list[str], call: ast.Call, scope: Scope) -> Iterator[Told]:
    """Yield what a call tells of by one argument: an object, or each that a table has that is written out."""
    if isinstance(value, ast.Dict):
        for key, part in zip(value.keys, value.values, strict=True):
            yield str(constant(key) or "**" if key is not None else "**"), part, call, scope
    elif isinstance(value, ast.List | ast.Tuple):
        yield from ((tail_of(part), part, call, scope) for part in value.elts)
    elif not _is_text(value):
        yield " ".join(texts) or tail_of(value), value, call, scope


def _is_text(node: ast.expr) -> bool:
    return isinstance(constant(node), str)


def _may_be_scaler(project: Project, name: str, value: ast.expr, scope: Scope) -> bool:
    """Return whether what a store is told of is a scaler, keeps one, or is one of several that nothing tells."""
    if MIXED.search(name) or MIXED.search(tail_of(value)) or is_scaler(value, scope):
        return True
    if isinstance(value, ast.Name) and value.id == scope.self_name and scope.owner is not None:
        return deals(project, scope.module, scope.owner.node, "state_dict")
    if not isinstance(value, ast.Name | ast.Attribute | ast.Call):
        return True
    return name == "**" or _is_looped(value, scope.module) or is_keeping(project, value, scope)


def _is_looped(value: ast.expr, module: Module) -> bool:
    """Return whether a value is the variable of a loop whose parts may be scalers, as far as reading tells."""
    for around in module.ancestors(value):
        if isinstance(around, ast.For):
            names = {n.id for n in ast.walk(around.target) if isinstance(n, ast.Name)}
            if isinstance(value, ast.Name) and value.id in names:
                return True
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
    return False
