"""Whether an evaluation runs in evaluation mode, by its own or by its callers' doing."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.evaluation.evaluating import Evaluation
from gates.scan.analyses.evaluation.rested import callers
from gates.scan.analyses.evaluation.switches import SETS, is_restored, remembers, turns_off
from gates.scan.analyses.reading.code import MODEL, Comprehension, callee, function_of, functions, statement_of
from gates.scan.analyses.reading.outward import may_be
from gates.scan.analyses.training.forwards import INFERS, trains
from gates.scan.program.known import MODULE
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import PREPARES
from gates.scan.ways.hooks import hooks_of

DEPTH = 3
WRAPS = frozenset({"compile", "DataParallel", "DistributedDataParallel"})
READY = re.compile(
    r"^(from_pretrained|from_checkpoint|load_from_checkpoint|pipeline|"
    r"(load|restore|import)_(\w+_)?(model|net|network|encoder|checkpoint|ckpt|detector|policy|weights)(_\w+)?)$"
)


def is_set_back(project: Project, found: Evaluation, function: Function) -> bool:
    """Return whether a model is put back into training mode before the evaluation begins, and stays so."""
    model, begin = model_of(found), getattr(found.loop, "lineno", 0)
    around = {function, *found.module.ancestors(found.loop)}
    before = [c for c in inner(function, ast.Call) if isinstance(c, ast.Call) and c.lineno < begin]
    on = [
        c.lineno for c in before
        if text_of(c.func) == f"{text_of(model)}.train" and not turns_off(c)
        and found.module.parents.get(statement_of(c, found.module) or c) in around
    ]  # fmt: skip
    later = [c for c in before if on and c.lineno > max(on)]
    later += [c for c in inner(found.loop, ast.Call) if isinstance(c, ast.Call)]
    return bool(on) and not any(_may_set(project, found.module, c) for c in later)


def _may_set(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call puts models into evaluation mode, or runs what does."""
    if turns_off(call) and not is_restored(call, module):
        return True
    if SETS.search(text_of(call.func)) and forgets(project, module, call) is None:
        return True
    target = callee(project, module, call)
    return target is not None and _sets(project, project.scope_of(target, module).module, target, 1)


def model_of(found: Evaluation) -> ast.expr:
    """Return the model that a forward pass runs: what is called, what is handed on, or whose method is called."""
    func, call = found.forward.func, found.forward
    if MODEL.search(tail_of(func)):
        return func
    given = [a for a in (*call.args, *(k.value for k in call.keywords)) if MODEL.search(tail_of(a))]
    if given and INFERS.search(tail_of(func)):
        return given[0]
    return func.value if isinstance(func, ast.Attribute) and tail_of(func.value) != "self" else func


def is_made_here(found: Evaluation) -> bool:
    """Return whether the model is made, and maybe put into evaluation mode, by what reading cannot follow."""
    func = model_of(found)
    if not isinstance(func, ast.Name) or found.function is None:
        return False
    made = [n.value for n in inner(found.function, ast.Assign) if isinstance(n, ast.Assign) and _binds(n, func.id)]
    return any(isinstance(value, ast.Call) and not _wraps(value, func.id) for value in made)


def _wraps(call: ast.Call, name: str) -> bool:
    """Return whether a call only wraps the model of a name: `DataParallel(model)`."""
    return tail_of(call.func) in WRAPS | PREPARES and name in map(text_of, call.args)


def _binds(node: ast.Assign, name: str) -> bool:
    return any(isinstance(t, ast.Name) and t.id == name for target in node.targets for t in walk(target))


def is_set(
    project: Project, module: Module, function: Function | ast.Module, depth: int, model: ast.expr | None,
    site: ast.Call | None = None,
) -> bool:  # fmt: skip
    """Return whether a function, a helper that it calls, or all that call it put their model into evaluation mode.

    Of a caller, which calls at its site, that counts which it may have done by then.
    """
    own, hops = (model, 0) if depth < DEPTH else (None, 2)
    if _sets(project, module, function, hops, own, site) or _is_made_ready(project, module, function, own):
        return True
    if not isinstance(function, ast.Module) and _is_decorated(project, module, function):
        return True
    sites = callers(project, function) if depth and not isinstance(function, ast.Module) else []
    bound = project.scope_of(function, module).owner is not None if sites else False
    for call, there in sites:
        outer, passed = function_of(call, there), _passed(call, function, model, bound=bound)  # type: ignore[arg-type]
        if outer is None and not _is_off_somewhere(there, function, own):
            return False
        if outer is not None and not is_set(project, there, outer, depth - 1, passed, call):
            return False
    return bool(sites)


def _passed(call: ast.Call, function: Function, model: ast.expr | None, *, bound: bool) -> ast.expr | None:
    """Return what a call hands to a function for its model; of a field of its object, that; `None` if not known."""
    if isinstance(model, ast.Attribute) and text_of(model.value) == "self":
        return model if text_of(call.func).startswith("self.") else None
    given = argument(call, function, model.id, bound=bound) if isinstance(model, ast.Name) else None
    return given if isinstance(given, ast.Name | ast.Attribute) and MODEL.search(tail_of(given)) else None


def _is_other(module: Module, body: ast.AST, node: ast.expr, model: ast.expr | None) -> bool:
    """Return whether a model that is made, or put into evaluation mode, is surely another one."""
    around = statement_of(node, module)
    if isinstance(around, ast.Assign) and node in walk(around.value):
        node = around.targets[0]
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    if model is None or any(isinstance(a, Comprehension) for a in module.ancestors(node)):  # one of several
        return False
    spaces = [body] if isinstance(node, ast.Name) and isinstance(model, ast.Name) else functions(module)
    return not any(may_be(space, node, model) for space in spaces)


def _is_off_somewhere(module: Module, function: ast.AST, model: ast.expr | None) -> bool:
    """Return whether a file puts any model into evaluation mode but for those that a function knows as other ones."""
    known = {text_of(n) for n in inner(function, ast.Name)}
    found = [c.func.value for c in module.calls.get("eval", ()) if isinstance(c.func, ast.Attribute)]
    told = [n for n in found if text_of(n) in known or function_of(n, module) is function]
    return len(told) < len(found) or any(not _is_other(module, function, n, model) for n in told)


def _is_made_ready(project: Project, module: Module, function: ast.AST, model: ast.expr | None) -> bool:
    """Return whether a function has its model from what puts it into evaluation mode, or may: a loader of others."""
    ran = [c for c in inner(function, ast.Call) if isinstance(c, ast.Call)]
    tails = {tail_of(c.func) for c in ran if isinstance(c.func, ast.Attribute) or callee(project, module, c) is None}
    for node in inner(function, ast.Assign, ast.Return):
        value = node.value if isinstance(node, ast.Assign | ast.Return) else None
        made = [c for c in walk(value) if isinstance(c, ast.Call)] if value is not None else []
        if isinstance(node, ast.Assign) and _is_other(module, function, node.targets[0], model):
            continue
        for call in made if isinstance(node, ast.Assign) else ():
            target = callee(project, module, call)
            is_ready = target is None and READY.search(tail_of(call.func)) and not tails & {"train", "backward"}
            if is_ready and not _is_put_on(project, module, function, node):  # type: ignore[arg-type]  # an assignment
                return True
            there = project.scope_of(target, module).module if target is not None else module
            if target is not None and _sets(project, there, target, 0) and _returns(target):
                return True
    return False


def _is_put_on(project: Project, module: Module, function: ast.AST, made: ast.Assign) -> bool:
    """Return whether a helper puts a model, which it is handed after it was made, into training mode, or trains it."""
    later = [c for c in inner(function, ast.Call) if isinstance(c, ast.Call) and c.lineno > made.lineno]
    given = {c: [*c.args, *(k.value for k in c.keywords)] for c in later}
    names = {c: [a for a in given[c] if isinstance(a, ast.Name | ast.Attribute)] for c in later}
    handed = [c for c in later if any(may_be(function, a, made.targets[0]) for a in names[c])]
    kept = {text_of(s.targets[0]) for c in handed if isinstance(s := statement_of(c, module), ast.Assign)}
    handed += [c for c in later if isinstance(c.func, ast.Attribute) and text_of(c.func.value) in kept]
    for target in (t for c in handed if (t := callee(project, module, c)) is not None):
        made_on = [c for c in inner(target, ast.Call) if isinstance(c, ast.Call) and tail_of(c.func) == "train"]
        on = not all(map(turns_off, made_on))
        if (on or trains(target)) and not _sets(project, project.scope_of(target, module).module, target, 1):
            return True
    return False


def _returns(function: Function) -> bool:
    """Return whether a function returns what it puts into evaluation mode."""
    off = {text_of(c.func.value) for c in inner(function, ast.Call)
           if isinstance(c, ast.Call) and turns_off(c) and isinstance(c.func, ast.Attribute)}  # fmt: skip
    values = [n.value for n in inner(function, ast.Return) if isinstance(n, ast.Return) and n.value is not None]
    return any(text_of(part) in off for value in values for part in walk(value)) or any(
        isinstance(part, ast.Call) and turns_off(part) for value in values for part in walk(value)
    )


def _sets(
    project: Project, module: Module, function: ast.AST, hops: int, model: ast.expr | None = None,
    site: ast.Call | None = None,
) -> bool:  # fmt: skip
    made = [c for c in inner(function, ast.Call) if isinstance(c, ast.Call) and _may_precede(module, c, site)]
    off = [c for c in made if turns_off(c) and not is_restored(c, module) and not _is_training(project, module, c)]
    others = [c for c in off if isinstance(c.func, ast.Attribute) and _is_other(module, function, c.func.value, model)]
    if len(others) < len(off):
        return True
    made = [call for call in made if not any(other in walk(call) for other in others)]
    named = [call for call in made if SETS.search(text_of(call.func)) and forgets(project, module, call) is None]
    if any(callee(project, module, call) is None for call in named):
        return True
    for call in made if hops > 0 else named if hops > -DEPTH else ():
        for target in _run(project, module, call):
            there = project.scope_of(target, module).module
            if target is not function and _sets(project, there, target, hops - 1):
                return True
    return False


def _may_precede(module: Module, call: ast.Call, site: ast.Call | None) -> bool:
    """Return whether a call may have been made before that of a site: it stands above it, or in a loop around it."""
    if site is None or call.lineno <= site.lineno:
        return True
    loops = {a for a in module.ancestors(site) if isinstance(a, ast.For | ast.AsyncFor | ast.While)}
    return any(a in loops for a in module.ancestors(call))


def _is_training(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call is of a method that trains: `loops.train(batches)` of a class that is no model.

    One that hands a mode on, `self.net.train(mode)`, is none.
    """
    target = callee(project, module, call) if tail_of(call.func) == "train" else None
    owner = project.scope_of(target, module).owner if target is not None else None
    if target is None or owner is None or project.types.is_a(owner.name, MODULE) is not False:
        return False
    return not any(isinstance(c, ast.Call) and turns_off(c) for c in inner(target, ast.Call))


def _run(project: Project, module: Module, call: ast.Call) -> Iterator[Function]:
    """Yield the functions of the program that a call runs: of hooks that it fires, and on entering a context, too."""
    target = callee(project, module, call)
    if target is not None:
        yield target
    yield from (each.function for each in project.once(hooks_of)[0].fired_by.get(call, ()))
    if isinstance(module.parents.get(call), ast.withitem):
        owner = project.classes.get(project.types.of(call, project.scope_at(call, module)) or "")
        entering = project.method(owner, "__enter__") if owner is not None else None
        if entering is not None:
            yield entering[0]


def _is_decorated(project: Project, module: Module, function: Function) -> bool:
    """Return whether a decorator of a function puts models into evaluation mode."""
    for decorator in function.decorator_list:
        made = decorator.func if isinstance(decorator, ast.Call) else decorator
        own = project.functions.get(project.scope_at(decorator, module).dotted(made) or "")
        if own is None and SETS.search(text_of(made)):
            return True
        inside = [c for c in walk(own[0]) if isinstance(c, ast.Call)] if own is not None else []
        if own is not None and any(turns_off(c) and not is_restored(c, own[1]) for c in inside):
            return True
    return False


def forgets(project: Project, module: Module, call: ast.Call) -> tuple[Module, ast.AST] | None:
    """Return where a context of the program, which a call makes, should put models into evaluation mode but does not.

    It puts them back into training mode at its end, and nothing that it does before puts them off.
    """
    target = callee(project, module, call)
    around = module.parents.get(call)
    if not isinstance(around, ast.withitem):
        return None
    owner = project.classes.get(project.types.of(call, project.scope_at(call, module)) or "")
    found = [project.method(owner, name) for name in ("__init__", "__enter__", "__exit__")] if owner is not None else []
    parts = [(each[0], each[1]) for each in found if each is not None]
    if target is not None and owner is None:
        parts = [(target, project.scope_of(target, module).module)]
    fields = (n for part, _ in parts for n in inner(part, ast.Attribute))
    back = any(isinstance(n, ast.Attribute) and n.attr == "train" for n in fields)
    if not back or any(_sets(project, there, part, 1) or _sets_flag(part) for part, there in parts):
        return None
    reads = [(there, read) for part, there in parts for read in remembers(part)]
    return reads[0] if reads else (parts[0][1], parts[0][0])


def _sets_flag(function: ast.AST) -> bool:
    """Return whether a function sets the mode of a model by hand: `part.training = False`."""
    fields = (n for n in inner(function, ast.Attribute) if isinstance(n, ast.Attribute) and n.attr == "training")
    return any(isinstance(n.ctx, ast.Store) for n in fields)
