"""Checkpoints that hold the optimizer and not its scaler."""

import ast
import re
from collections.abc import Iterable, Iterator

from gates.scan.analyses.precision.at_hand import has_scaler, makes_keeper
from gates.scan.analyses.precision.hosts import has_idle_keeper
from gates.scan.analyses.precision.keepers import (
    NAMED,
    asked_name,
    asks_scaler,
    deals,
    holds,
    holds_it,
    is_keeping,
    is_passing,
    keeping_below,
    keeps,
    names_scaler,
)
from gates.scan.analyses.precision.parts import Part, by_name, saved_together, taken
from gates.scan.analyses.precision.precision import is_scaler
from gates.scan.analyses.precision.registering import unregistered
from gates.scan.analyses.precision.resuming import SAVE, asked_in_loops, is_for, loads_unsaved, saves_unloaded
from gates.scan.analyses.precision.stores import handed_over, is_given_later, kept_beside, with_scaler
from gates.scan.analyses.precision.unhanded import unhanded
from gates.scan.analyses.precision.unkept import unkept, unloaded
from gates.scan.analyses.reading.code import broken, calls, class_of, functions
from gates.scan.analyses.reading.flow import runs
from gates.scan.program.classes import ClassInfo
from gates.scan.program.known import SCALER
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import text_of, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.site import Site

WORDS = ("state_dict*",)
OPTIMIZER = re.compile(r"(?i)opt")
MIXED = re.compile(r"(?i)scaler|^amp|amp$|fp16|precision|backend|strategy")
Body = Function | ast.Module
MAX_CALLERS = 20


def look(project: Project) -> Iterator[Site]:
    """Yield each place that saves or loads an optimizer's state, and nothing of the scaler that is at hand there.

    A file that saves too little can load no more: it is told of once.
    """
    for module in project.modules.values():
        if "state_dict" in module.calls or "load_state_dict" in module.calls:
            saved = list(_saving(project, module))
            yield from saved or _loading(project, module)
            yield from unhanded(project, module)
    yield from unregistered(project)
    for info in project.classes.values():
        yield from unkept(project, info)
        yield from unloaded(project, info)


def _saving(project: Project, module: Module) -> Iterator[Site]:
    """Yield each place of a file that saves an optimizer's state without its scaler's."""
    yield from _asking(project, module, "state_dict", "saved")
    for body in functions(module):
        yield from _together(project, module, body, "state_dict", "saved")
        yield from _handed(project, module, body, "state_dict", "saved")


def _loading(project: Project, module: Module) -> Iterator[Site]:
    """Yield each place of a file that loads an optimizer's state without its scaler's."""
    yield from _asking(project, module, "load_state_dict", "loaded")
    for body in functions(module):
        yield from _together(project, module, body, "load_state_dict", "loaded")
        yield from _handed(project, module, body, "load_state_dict", "loaded")


def _asking(project: Project, module: Module, verb: str, word: str) -> Iterator[Site]:
    for body in (*functions(module), module.tree):
        call = _lacking(project, module, body, verb)
        if call is not None:
            said, heir = f"the optimizer is {word}, its scaler is not", _filled_in(project, module, body)
            way = ((f"the optimizer is {word} in", module, call),) if heir is not None else ()
            yield broken(*(heir or (module, _first(call, module))), said, *way)


def _filled_in(project: Project, module: Module, body: Body) -> tuple[Module, ast.stmt] | None:
    """Return where the one class with a scaler does more than its base in the same method, and leaves that out, too."""
    owner = project.scope_of(body, module).owner
    if owner is None or isinstance(body, ast.Module):
        return None
    heirs = [info for info in keeping_below(project, owner) if body.name in info.methods]
    found = [(info.scope.module, info.methods[body.name]) for info in heirs]
    if len(found) != 1:
        return None
    there, method = found[0]
    return there, next((s for s in method.body if "super()" in text_of(s)), method)


def _first(call: ast.Call, module: Module) -> ast.AST:
    """Return the first of the states that are written out together, where one of them is the optimizer's."""
    around = module.parents.get(call)
    beside = around.values if isinstance(around, ast.Dict) else [call]
    return next(v for v in beside if isinstance(v, ast.Call) and tail_of(v.func) == tail_of(call.func))


def _together(project: Project, module: Module, body: Function, verb: str, word: str) -> Iterator[Site]:
    """Yield where the optimizer stands in a list of all that is saved in one loop, and the scaler does not."""
    scope = project.scope_of(body, module)
    for parts in saved_together(project, module, body, verb):
        optimizers = [(node, there) for name, node, there in parts if OPTIMIZER.search(name)]
        scaled = any(
            NAMED.search(name) or names_scaler(project, name) or _is_kept_scaler(project, node, there)
            for name, node, there in parts
        )
        if not optimizers or len(parts) < 2 or scaled:
            continue
        node, there = optimizers[-1]
        if _elsewhere(project, module, body, verb) or any(_names_scaler(each, verb) for each in (scope, there)):
            continue
        if scope.owner is not None and (_added(project, scope.owner, verb) or _listed_below(project, scope.owner)):
            continue
        lister = there.function
        owner = there.owner
        if isinstance(lister, ast.FunctionDef | ast.AsyncFunctionDef) and owner and _added_to(project, owner, lister):
            continue
        held = [c for c in calls(body) if tail_of(c.func) == verb]
        is_there = has_scaler(project, body, scope) or _is_with_scaler(project, held, scope, verb)
        if (
            is_there
            or any(holds_it(project, n, where) for _, n, where in parts)
            or _is_hosted(project, held, scope, parts)
        ):
            yield broken(there.module, node, f"the optimizer is {word}, its scaler is not")


def _handed(project: Project, module: Module, body: Function, verb: str, word: str) -> Iterator[Site]:
    """Yield where the optimizer, and not the scaler that is at hand, is given to what saves all that it is given.

    Or to what loads that.
    """
    for call, scope, parts in handed_over(project, module, body, verb):
        if len(parts) < 2 or not any(OPTIMIZER.search(name) for name, _ in parts):
            continue
        if any(MIXED.search(name) or is_scaler(n, scope) or is_keeping(project, n, scope) for name, n in parts):
            continue
        around = scope.function if not isinstance(scope.function, ast.Lambda) else None
        is_there = has_scaler(project, around or scope.module.tree, scope) or makes_keeper(project, scope)
        if not is_there or is_given_later(project, call, scope):
            continue
        if not any(deals(project, m, m.tree, verb) for m in (scope.module, module)):
            yield broken(scope.module, call, f"the optimizer is handed over to be {word}, its scaler is not")


def _is_hosted(project: Project, asked: Iterable[ast.Call], scope: Scope, parts: Iterable[Part] = ()) -> bool:
    """Return whether the objects asked are parts of one that keeps a scaler, whose state nobody asks for."""
    body = scope.function or scope.module.tree
    held = [taken(body, call.func.value) for call in asked if isinstance(call.func, ast.Attribute)]
    names = frozenset(name for name, _, _ in parts)
    return any(has_idle_keeper(project, node, scope, names if by_name(node) else frozenset()) for node in held)


def _is_kept_scaler(project: Project, node: ast.expr, scope: Scope) -> bool:
    return project.types.is_a(project.types.of(node, scope), SCALER) is True or is_passing(project, node, scope)


def _added_to(project: Project, owner: ClassInfo, lister: Function) -> bool:
    """Return whether each class that keeps a scaler names it where it lists once more what is saved."""
    keeping = keeping_below(project, owner)
    found = [info.methods.get(lister.name) for info in keeping]
    return bool(found) and all(m is not None and NAMED.search(text_of(m)) for m in found)


def _listed_below(project: Project, owner: ClassInfo) -> bool:
    """Return whether each class that extends this one and keeps a scaler names it in a list of its own."""
    keeping = keeping_below(project, owner)
    return bool(keeping) and all(any(_lists_scaler(project, i) for i in project.order_of(info)) for info in keeping)


def _names_scaler(scope: Scope, verb: str) -> bool:
    """Return whether a function, or the class that it is a method of, adds a scaler by its name to what is listed.

    What stands in a method that only saves is no part of what is loaded.
    """
    family = scope.project.order_of(scope.owner) if scope.owner is not None else []
    places = [(scope.function, scope.module), *((info.node, info.scope.module) for info in family)]
    texts = ((n, m) for place, m in places if place for n in walk(place) if isinstance(n, ast.Constant))
    known = ((n, m) for n, m in texts if names_scaler(scope.project, n.value))
    named = (m.parents.get(n) for n, m in known if verb == SAVE or not is_for(n, m, SAVE))
    return any(not (isinstance(p, ast.Call) and tail_of(p.func) in {"getattr", "hasattr"}) for p in named)


def _lists_scaler(project: Project, info: ClassInfo) -> bool:
    values = (n.value for n in walk(info.node) if isinstance(n, ast.Assign | ast.AugAssign) and n.value is not None)
    listed = (each for value in values if not isinstance(value, ast.Constant) for each in walk(value))
    return any(isinstance(each, ast.Constant) and names_scaler(project, each.value) for each in listed)


def _lacking(project: Project, module: Module, body: Body, verb: str) -> ast.Call | None:
    """Return the last call of a body for an optimizer's state, where that of a scaler is left out."""
    scope = project.scope_of(body, module)
    found = [c for c in calls(body) if tail_of(c.func) == verb and isinstance(c.func, ast.Attribute)]
    optimizers = [c for c in found if OPTIMIZER.search(asked_name(c)) and _is_stored(c, module, verb)]
    if not optimizers or len({asked_name(c) for c in found}) < 2 or any(asks_scaler(project, c, scope) for c in found):
        return None
    if _elsewhere(project, module, body, verb) or (scope.owner is not None and _added(project, scope.owner, verb)):
        return None
    is_held = any(holds(project, c, scope) for c in optimizers) and not deals(project, module, module.tree, verb)
    is_there = is_held or has_scaler(project, body, scope)
    is_there = is_there or _kept_back(project, body, optimizers, verb)
    is_there = is_there or _is_with_scaler(project, optimizers, scope, verb) or _is_hosted(project, optimizers, scope)
    is_there = is_there or (verb == SAVE and any(_is_beside(project, c, scope) for c in optimizers))
    is_half = loads_unsaved if verb == SAVE else saves_unloaded
    return optimizers[-1] if is_there or is_half(project, module) else None


def _is_beside(project: Project, call: ast.Call, scope: Scope) -> bool:
    """Return whether the object whose optimizer is asked keeps something with a scaler, whose state nobody asks."""
    held = call.func.value if isinstance(call.func, ast.Attribute) else call
    return any(
        "state_dict" in info.methods
        and deals(project, info.scope.module, info.methods["state_dict"], "state_dict")
        and keeps(project, info, extended=False)
        for info in kept_beside(project, held, scope, "state_dict")
    )


def _is_with_scaler(project: Project, asked: Iterable[ast.Call], scope: Scope, verb: str) -> bool:
    """Return whether what holds the objects asked was given a scaler too, whose state nobody there deals with."""
    there = [m for call in asked for m in with_scaler(project, call, scope)]
    return bool(there) and not any(deals(project, m, m.tree, verb) for m in there)


def _kept_back(project: Project, body: Body, optimizers: list[ast.Call], verb: str) -> bool:
    """Return whether a caller that hands over the optimizer has a scaler, and deals with its state nowhere."""
    if isinstance(body, ast.Module):
        return False
    objects = (c.func.value for c in optimizers if isinstance(c.func, ast.Attribute))
    asked = {node.id for node in objects if isinstance(node, ast.Name)}
    if not asked & {arg.arg for arg in (*body.args.posonlyargs, *body.args.args, *body.args.kwonlyargs)}:
        return False
    for call, module in project.named.get(body.name, [])[:MAX_CALLERS]:
        if body not in runs(project, module, call) or _hands_more(project, call, module):
            continue
        scope = project.scope_at(call, module)
        around = scope.function if not isinstance(scope.function, ast.Lambda) else None
        if has_scaler(project, around or module.tree, scope) and not deals(project, module, module.tree, verb):
            return True
    return False


def _hands_more(project: Project, call: ast.Call, module: Module) -> bool:
    """Return whether a call may hand over a scaler, or its state."""
    if any(isinstance(arg, ast.Starred) for arg in call.args) or any(k.arg is None for k in call.keywords):
        return True
    scope = project.scope_at(call, module)
    given = (n for arg in (*call.args, *(k.value for k in call.keywords)) for n in walk(arg))
    return any(isinstance(n, ast.Name | ast.Attribute) and is_scaler(n, scope) for n in given)


def _is_stored(call: ast.Call, module: Module, verb: str) -> bool:
    """Return whether a state is put into a dictionary or a file."""
    if verb == "load_state_dict":
        return True
    return any(isinstance(a, ast.Dict | ast.Call | ast.Assign | ast.keyword) for a in list(module.ancestors(call))[:2])


def _added(project: Project, owner: ClassInfo, verb: str) -> bool:
    """Return whether each class that extends this one and keeps a scaler deals with its state itself."""
    keeping = keeping_below(project, owner)
    families = [{info, *project.ancestors_of(info)} - {owner} for info in keeping]
    return bool(keeping) and all(
        any(deals(project, each.scope.module, each.node, verb) for each in family) for family in families
    )


def _elsewhere(project: Project, module: Module, body: Body, verb: str) -> bool:
    """Return whether the scaler's state is dealt with by another function that this one's file has for it."""
    owner = class_of(body, module) if isinstance(body, ast.FunctionDef | ast.AsyncFunctionDef) else None
    passing = [i.methods[verb] for i in project.classes.values() if i.scope.module is module and verb in i.methods]
    if deals(project, module, owner or module.tree, verb, () if owner else passing):
        return True
    if any(names_scaler(project, name) for name in asked_in_loops(project, module, verb)):
        return True
    text = text_of(body) if not isinstance(body, ast.Module) else ""
    return re.search(rf"(?i)scaler_state|amp\.{verb}", text) is not None
