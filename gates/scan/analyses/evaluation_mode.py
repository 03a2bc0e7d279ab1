"""Evaluations of a model that stays in training mode."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.evaluation.evaluating import NAMED, WORDS, Evaluation, evaluations
from gates.scan.analyses.evaluation.modes import DEPTH as HOPS
from gates.scan.analyses.evaluation.modes import WRAPS, forgets, is_made_here, is_set, is_set_back, model_of
from gates.scan.analyses.evaluation.phases import half_set, never_off, sets_off
from gates.scan.analyses.evaluation.put_back import only_put_back
from gates.scan.analyses.evaluation.rested import callers, rests
from gates.scan.analyses.evaluation.scores import reckons_score
from gates.scan.analyses.evaluation.sibling_phases import left_out, never_set, put_off_beside
from gates.scan.analyses.evaluation.switches import SETS, is_restored, turns_off
from gates.scan.analyses.evaluation_gradients import places_of
from gates.scan.analyses.reading.code import MODEL, broken, callee, function_of
from gates.scan.analyses.reading.origins import Origin, Origins
from gates.scan.analyses.reading.outward import may_be
from gates.scan.analyses.training.forwards import trains
from gates.scan.paths.statements import is_given_away
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import PREPARES, Scope
from gates.scan.site import Site

__all__ = ["WORDS", "look"]
MESSAGE = "the model is evaluated without eval(): dropout and batch statistics go on"
FEW = 2
BASE = "torch.nn.Module"
HOLDS = frozenset({"Sequential", "ModuleList", "ModuleDict"})
SWITCHED = re.compile(
    r"(?i)drop|batch_?norm|instance_?norm|rrelu|spectral|training|transformer|rnn|lstm|gru|multihead|"
    r"add_module|register_module|setattr"
)
RAW = re.compile(
    r"torch\.nn\.[A-Z]\w*$|torchvision\.models\.([\w.]+\.)?[a-z]\w*$|timm\.(models\.)?create_model$|"
    r"segmentation_models_pytorch\.[A-Z]\w*$"
)
OFF = re.compile(r"(?i)eval(?=\()|\.eval\b|eval_?mode(?!l)|\btraining\b|\.train\((?!\))|quantiz")
HARMLESS = WRAPS | PREPARES | {"print", "len", "summary", "id", "isinstance"}
PLAIN = frozenset({"range", "len", "zip", "int", "float", "max", "min", "list", "tuple", "enumerate", "super", "sum"})
DEPTH = 4
PUT_OFF = re.compile(r"\.eval\(\)")


def look(project: Project) -> Iterator[Site]:
    """Yield each evaluation without `eval()`."""
    evaluated = project.once(evaluations)
    told = {callee(project, each.module, each.forward) for each in evaluated} | {each.function for each in evaluated}
    for module, forward in only_put_back(project):
        yield broken(module, forward, MESSAGE)
    halves = (*half_set(project), *never_set(project), *left_out(project), *never_off(project))
    for function, (module, forward) in {function: (module, call) for module, function, call in halves}.items():
        if function not in told:
            yield broken(module, forward, MESSAGE)
    for found in (*evaluated, *(each for each in put_off_beside(project) if each.function not in told)):
        if not _in_eval_mode(project, found) and not _is_same_in_both(project, found):
            yield from places_of(project, found, MESSAGE)
            yield from _made(project, found)
            yield from _forgotten(project, found)


def _in_eval_mode(project: Project, found: Evaluation) -> bool:
    """Return whether the model is put into evaluation mode, by the evaluation itself or by its callers."""
    function = found.function
    if function is not None and is_set_back(project, found, function):
        return False
    if function is not None and is_given_away(function, found.module) and sets_off(found.module):
        return True  # by what runs the engine that it is handed to
    if function is None and found.named and not _is_raw(project, found):
        return True
    if is_made_here(found) and not _is_raw(project, found):
        return True
    if (function is not None and rests(project, found.module, function)) or _is_handed_off(project, found):
        return True
    if function is not None and (_is_of_others(found, function) or _is_set_late(found, function)):
        return False
    model = model_of(found) if function is not None and not _is_of_helper(project, found) else None
    return is_set(project, found.module, found.function or found.module.tree, HOPS, model)


def _is_handed_off(project: Project, found: Evaluation) -> bool:
    """Return whether a helper is handed a model that was put off where it was made: `deepcopy(model).eval()`."""
    if callee(project, found.module, found.forward) is None:
        return False
    scope = project.scope_at(found.forward, found.module)
    given = [each for each in found.forward.args if isinstance(each, ast.Attribute)]
    made = (origin.node for each in given for origin in Origins(project).of(each, scope))
    return any(isinstance(node, ast.Call) and PUT_OFF.search(text_of(node)) for node in made)


def _is_of_helper(project: Project, found: Evaluation) -> bool:
    """Return whether a method of the object runs the model, of which the call does not tell which one it is."""
    func, target = found.forward.func, callee(project, found.module, found.forward)
    return isinstance(func, ast.Attribute) and target is not None and func.attr == target.name


def _is_raw(project: Project, found: Evaluation) -> bool:
    """Return whether a model is made beside its evaluation by what leaves it in training mode, and nothing puts it off.

    What reading cannot follow may put off a model that it is handed.
    """
    model, scope = model_of(found), project.scope_at(found.forward, found.module)
    body = found.function or found.module.tree
    if not isinstance(model, ast.Name) or OFF.search(text_of(body)):
        return False
    taken = [c for c in inner(body, ast.Call) if isinstance(c, ast.Call) and model.id in map(text_of, c.args)]
    if any(c is not found.forward and _is_unknown(project, found, c) for c in taken):
        return False
    bodies = {o.scope.function or found.module.tree for o in Origins(project).of(model, scope)}
    ends = _ends(project, Origin(model, scope))
    bodies |= {o.scope.function or o.scope.module.tree for o in ends}
    return (
        bool(ends) and all(_is_made_raw(project, o) for o in ends) and not any(OFF.search(text_of(b)) for b in bodies)
    )


def _is_unknown(project: Project, found: Evaluation, call: ast.Call) -> bool:
    """Return whether a call may do anything to the model that it is handed."""
    name = project.scope_at(call, found.module).dotted(call.func) or tail_of(call.func)
    is_known = name.startswith(("torch.", "safetensors.")) or name.rpartition(".")[2] in HARMLESS
    return not is_known and callee(project, found.module, call) is None


def _is_made_raw(project: Project, made: Origin) -> bool:
    """Return whether a model is made by a constructor, or by a library that hands it over in training mode."""
    if not isinstance(made.node, ast.Call):
        return False
    name = made.scope.dotted(made.node.func) or ""
    info = project.classes.get(name)
    if info is not None:
        return project.types.is_a(name, BASE) is True and not OFF.search(text_of(info.node))
    return RAW.match(name) is not None


def _is_of_others(found: Evaluation, function: Function) -> bool:
    """Return whether what a function puts into evaluation mode are other models than the one that it evaluates."""
    model = model_of(found)
    if not isinstance(model, ast.Name | ast.Attribute) or not MODEL.search(tail_of(model)) or not trains(function):
        return False
    made = [c for c in inner(function, ast.Call) if isinstance(c, ast.Call)]
    off = [c.func.value for c in made if turns_off(c) and isinstance(c.func, ast.Attribute)]
    helped = any(SETS.search(text_of(c.func)) for c in made if not turns_off(c))
    return bool(off) and not helped and not any(may_be(function, other, model) for other in off)


def _is_set_late(found: Evaluation, function: Function) -> bool:
    """Return whether the one `eval()` of a function stands after the loop of its evaluation."""
    last = found.loop.end_lineno or 0  # type: ignore[attr-defined]  # a statement or an expression
    made = [c for c in inner(function, ast.Call) if isinstance(c, ast.Call) and turns_off(c)]
    made = [c for c in made if not is_restored(c, found.module)]
    around = any(isinstance(a, ast.For | ast.While) for a in found.module.ancestors(found.loop))
    return bool(made) and not around and all(c.lineno > last for c in made)


def _forgotten(project: Project, found: Evaluation) -> Iterator[Site]:
    """Yield the contexts around an evaluation that put its model back into training mode, but never off."""
    for around in found.module.ancestors(found.loop):
        for item in around.items if isinstance(around, ast.With | ast.AsyncWith) else ():
            call = item.context_expr
            place = forgets(project, found.module, call) if isinstance(call, ast.Call) else None
            if place is not None:
                yield broken(*place, MESSAGE)


def _made(project: Project, found: Evaluation) -> Iterator[Site]:
    """Yield the calls that hand a model, as it was made, to a helper which is no evaluation: it reckons no score."""
    function = found.function
    if function is None or NAMED.search(function.name) or reckons_score(function):
        return
    for call, there in callers(project, function)[:FEW]:
        outer = function_of(call, there)
        if callee(project, there, call) is not function or outer is None:
            continue
        given = {arg.id for arg in (*call.args, *(k.value for k in call.keywords)) if isinstance(arg, ast.Name)}
        made = [n for n in inner(outer, ast.Assign) if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call)]
        if any(tail_of(n.targets[0]) in given and MODEL.search(tail_of(n.targets[0])) for n in made):
            yield broken(there, call, MESSAGE)


def _is_same_in_both(project: Project, found: Evaluation) -> bool:
    """Return whether all layers of what is evaluated are known, and none does anything else in evaluation mode.

    A program that switches the modes of its models is held to it, whatever they are made of.
    """
    if project.once(_switching):
        return False
    call, model = found.forward, model_of(found)
    given = [a for a in (*call.args, *(k.value for k in call.keywords)) if MODEL.search(tail_of(a))]
    scope = project.scope_at(call, found.module)
    if callee(project, found.module, call) is not None:
        return bool(given) and all(_is_plain(project, each, scope, DEPTH) for each in given)
    return _is_plain(project, model, scope, DEPTH)


def _switching(project: Project) -> Iterator[ast.Call]:
    """Yield the calls that put a model into a mode."""
    made = (c for m in project.modules.values() for name in ("train", "eval") for c in m.calls.get(name, ()))
    yield from (c for c in made if isinstance(c.func, ast.Attribute) and MODEL.search(tail_of(c.func.value)))


def _is_plain(project: Project, node: ast.expr, scope: Scope, depth: int) -> bool:
    """Return whether all that an object may be made by is the same in both modes."""
    ends = _ends(project, Origin(node, scope)) if depth else []
    return bool(ends) and all(_is_plain_layer(project, each, depth - 1) for each in ends)


def _ends(project: Project, start: Origin) -> list[Origin]:
    """Return what an object may have been made by at first, behind what wraps it."""
    origins = Origins(project)
    seen: dict[ast.expr, Origin] = {}
    todo = [start]
    for each in todo:
        fresh = {o.node: o for o in origins.of(each.node, each.scope) if o.node not in seen}
        seen |= fresh
        todo += [
            Origin(made.args[0], o.scope) for made, o in fresh.items() if isinstance(made, ast.Call) and _wraps(made)
        ]
    ends = [each for each in seen.values() if len(origins.of(each.node, each.scope)) == 1]
    return [o for o in ends if not _wraps(o.node) and o.scope.dotted(o.node) != "torch"]  # of `torch.compile(net)`


def _wraps(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and tail_of(node.func) in WRAPS and bool(node.args)


def _is_plain_layer(project: Project, made: Origin, depth: int) -> bool:
    call, scope = made.node, made.scope
    if not isinstance(call, ast.Call):
        return False
    name = scope.dotted(call.func) or ""
    info = project.classes.get(project.types.of(call, scope) or "")
    if info is not None:
        return _is_plain_class(project, info, depth)
    place, _, tail = name.rpartition(".")
    if place != "torch.nn" or SWITCHED.search(tail):
        return False
    return tail not in HOLDS or all(_is_plain(project, part, scope, depth) for part in _within(call))


def _within(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the layers that a container is handed; a list of them that is written out counts as its parts."""
    for given in (*call.args, *(k.value for k in call.keywords)):
        value = given.value if isinstance(given, ast.Starred) else given
        if isinstance(value, ast.List | ast.Tuple):
            yield from value.elts
        elif isinstance(value, ast.Dict):
            yield from value.values
        else:
            yield value.elt if isinstance(value, ast.ListComp | ast.GeneratorExp) else given


def _is_plain_class(project: Project, info: ClassInfo, depth: int) -> bool:
    """Return whether a model of the program makes all its layers itself, of such as are the same in both modes."""
    if info.bases != [BASE] or SWITCHED.search(text_of(info.node)):
        return False
    used = set(_used(info.node))
    for method in info.methods.values():
        scope = project.scope_of(method, info.scope.module)
        for node in inner(method, ast.Assign, ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]  # type: ignore[attr-defined]
            value: ast.expr | None = node.value  # type: ignore[attr-defined]  # an assignment
            is_part = value is not None and any(text_of(t) in used for t in targets if isinstance(t, ast.Attribute))
            if is_part and value is not None and not _is_plain(project, value, scope, depth):
                return False
        named = [c for c in inner(method, ast.Call) if isinstance(c, ast.Call) and _is_named(c, scope)]
        if not all(_is_known(project, call, scope, depth) for call in named):
            return False
    return True


def _used(node: ast.ClassDef) -> Iterator[str]:
    """Yield what the methods of a class call, hand on, or go over."""
    for part in walk(node):
        if isinstance(part, ast.Call):
            yield from (text_of(each) for each in (part.func, *part.args))
        elif isinstance(part, ast.For | ast.comprehension):
            yield text_of(part.iter)


def _is_named(call: ast.Call, scope: Scope) -> bool:
    """Return whether a call is by a full name, or makes a part by a name that is none."""
    is_making = scope.function is not None and getattr(scope.function, "name", "") == "__init__"
    return scope.dotted(call.func) is not None or (is_making and isinstance(call.func, ast.Name))


def _is_known(project: Project, call: ast.Call, scope: Scope, depth: int) -> bool:
    name = scope.dotted(call.func) or tail_of(call.func)
    place, _, tail = name.rpartition(".")
    is_layer = place == "torch.nn" and tail[:1].isupper()
    is_plain = name in PLAIN or (name.startswith(("torch.", "math.")) and not SWITCHED.search(name))
    return (is_plain and not is_layer) or _is_plain_layer(project, Origin(call, scope), depth)
