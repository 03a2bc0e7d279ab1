"""Classes for phases of one base, of which the one that trains sets the mode of the model, and no other does."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from gates.scan.analyses.evaluation.evaluating import Evaluation
from gates.scan.analyses.evaluation.phases import sets_off
from gates.scan.analyses.evaluation.switches import turns_off
from gates.scan.analyses.reading.code import FUNCTIONS, MODEL, calls
from gates.scan.analyses.training.forwards import NO_GRAD, is_call_of_model, trains
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

EVALUATES = re.compile(r"(?i:^(valid|eval|test|dev)|(valid|eval)\w*$)|^Val(?=[A-Z_])|Test\w*$")
TRAINS = re.compile(r"(?i)train")
STEPS = re.compile(r"(val|validation|test|eval|predict)_step")
PHASE = re.compile(r"(?i)validation|valid|val|evaluation|eval|test|dev")
WITHOUT = re.compile(r"\b(no_grad|inference_mode)\(\)")


def never_set(project: Project) -> Iterator[tuple[Module, Function, ast.Call]]:
    """Yield the forward passes of classes that evaluate, where no file that knows of them puts a model off."""
    for info in project.classes.values():
        heirs = [each for each in project.extending.get(info.name, ()) if not each.twice]
        if not any(map(_trains, heirs)):
            continue
        for heir in heirs:
            found = _forward(heir) if EVALUATES.search(heir.node.name) and not _trains(heir) else None
            if found is not None and not any(map(sets_off, _knowing(project, heir))):
                yield heir.scope.module, *found


def never_put_on(project: Project) -> Iterator[tuple[Module, Function, Function]]:
    """Yield the first methods of classes that train, where one that evaluates beside them leaves the model off.

    With each the method that puts it off. No file that knows of the training puts any model into training mode, unless
    where it makes what trains: that is once, and the model is put off with each evaluation.
    """
    for info in project.classes.values():
        heirs = [each for each in project.extending.get(info.name, ()) if not each.twice]
        off = [m for h in heirs if EVALUATES.search(h.node.name) for m in h.methods.values() if _sets_off(m)]
        for heir in heirs if off else ():
            name, own = heir.node.name, [m for m in heir.methods.values() if not m.name.startswith("__")]
            if not TRAINS.search(name) or EVALUATES.search(name) or not own or any(_puts_on(m) for m in off):
                continue
            family = [heir, *project.ancestors_of(heir)]
            made = {c for each in family if (m := each.methods.get("__init__")) is not None for c in calls(m)}
            if not any(_puts_any_on(each, made) for each in _knowing(project, heir)):
                yield heir.scope.module, own[0], off[0]


def never_put_on_beside(project: Project) -> Iterator[tuple[Module, Function, Function]]:
    """Yield the steps that train, where the program hands another to the same kind of engine that puts the model off.

    With each the one that puts it off: `Engine(train_step)`, `Engine(eval_step)`. No file puts any model on.
    """
    handed: dict[str, dict[Function, Module]] = defaultdict(dict)
    for module in project.modules.values() if "eval" in project.named else ():
        for name, found in module.calls.items():
            for call in found if name[:1].isupper() and "eval" in module.calls else ():
                scope = project.scope_at(call, module)
                target = _named_by(call.args[0], scope) if call.args else None
                if target is not None and isinstance(call.func, ast.Name | ast.Attribute):
                    handed[scope.dotted(call.func) or name][target] = module
    for each in handed.values():
        off = [step for step in each if _sets_off(step) and not trains(step)]
        for step, module in each.items():
            if off and trains(step) and not any(_puts_any_on(m, set()) for m in project.modules.values()):
                yield module, step, off[0]


def _named_by(node: ast.expr, scope: Scope) -> Function | None:
    """Return the function of the same file that an expression names."""
    found = scope.lookup(node.id) if isinstance(node, ast.Name) else None
    made = [b.node for b in found[1] if b.kind == "define"] if found is not None else []
    return made[0] if len(made) == 1 and isinstance(made[0], FUNCTIONS) else None


def _puts_any_on(module: Module, made: set[ast.Call]) -> bool:
    """Return whether a file puts a model into training mode, in other calls than those that make an object."""
    held = (c.func.value for c in module.calls.get("train", ()) if c not in made and isinstance(c.func, ast.Attribute))
    return any(MODEL.search(tail_of(each)) for each in held)


def _puts_on(method: Function) -> bool:
    """Return whether a method puts a model back into training mode itself."""
    return any(tail_of(call.func) == "train" for call in calls(method))


def not_trained(project: Project) -> Iterator[Evaluation]:
    """Yield the forward passes of classes that evaluate by the method in which a class beside them trains."""
    for info in project.classes.values():
        heirs = [each for each in project.extending.get(info.name, ()) if not each.twice]
        trained = {name for each in heirs for name, method in each.methods.items() if trains(method)}
        for heir in heirs if trained else ():
            if not EVALUATES.search(heir.node.name) or any(map(trains, heir.methods.values())):
                continue
            for name in sorted(trained & heir.methods.keys()):
                ran = [call for call in calls(heir.methods[name]) if is_call_of_model(call)]
                yield from (Evaluation(heir.scope.module, heir.methods[name], c, c, named=True) for c in ran[:1])


def put_off_beside(project: Project) -> Iterator[Evaluation]:
    """Yield the loops without gradients that leave the mode alone, where a method beside sets it for the same step.

    Both run one method of their object with each batch: `self.evaluate_batch(batch)`.
    """
    for info in project.classes.values():
        loops = [(method, *found) for method in info.methods.values() if (found := _steps_through(method))]
        off = {call.func.attr for method, _, call in loops if any(map(turns_off, calls(method)))}  # type: ignore[attr-defined]  # a method
        on = any(tail_of(c.func) == "train" and not turns_off(c) for m in info.methods.values() for c in calls(m))
        for method, loop, call in loops if on else ():
            if call.func.attr in off and not any(map(turns_off, calls(method))):  # type: ignore[attr-defined]  # a method
                yield Evaluation(info.scope.module, method, loop, call, named=True)


def _steps_through(method: Function) -> tuple[ast.AST, ast.Call] | None:
    """Return a loop over batches without gradients, and the method of its object that it runs with each of them."""
    if trains(method) or not NO_GRAD.search(text_of(method)):
        return None
    for loop in inner(method, ast.For):
        over = tail_of(loop.target) if isinstance(loop, ast.For) else ""
        for call in calls(loop) if over else ():
            own = isinstance(call.func, ast.Attribute) and text_of(call.func.value) == "self"
            if own and any(isinstance(each, ast.Name) and each.id == over for each in call.args):
                return loop, call
    return None


def _knowing(project: Project, info: ClassInfo) -> Iterator[Module]:
    """Yield the files that name a class, or what it extends."""
    family = [info, *project.ancestors_of(info)]
    names, files = {each.node.name for each in family}, {each.scope.module.path for each in family}
    for module in project.modules.values():
        if module.path in files or names & module.words:
            yield module


def left_out(project: Project) -> Iterator[tuple[Module, Function, ast.Call]]:
    """Yield the forward passes of classes that evaluate in training mode, where a class beside them sets it off first.

    Both fill in the same method of one base and differ by their phase's name alone, as `ValLoop` and `TestLoop` do.
    """
    alike: dict[tuple[str | None, str], list[ClassInfo]] = defaultdict(list)
    for info in project.classes.values():
        for base in info.bases if EVALUATES.search(info.node.name) else ():
            alike[(base, PHASE.sub("", info.node.name))].append(info)
    for heirs in alike.values():
        setting = {name for each in heirs for name, method in each.methods.items() if _sets_off(method)}
        for heir in heirs if setting else ():
            family = [method for each in project.order_of(heir) for method in each.methods.values()]
            if heir.twice or not setting & heir.methods.keys() or any(map(_sets_off, family)):
                continue
            found = ((m, call) for m in heir.methods.values() for call in calls(m) if _evaluates(call))
            yield from ((heir.scope.module, method, call) for method, call in [*found][:1])


def _sets_off(method: Function) -> bool:
    """Return whether a method puts a model into evaluation mode."""
    made = (c.func for c in calls(method) if tail_of(c.func) == "eval" and not c.args)
    return any(isinstance(func, ast.Attribute) and MODEL.search(tail_of(func.value)) for func in made)


def _evaluates(call: ast.Call) -> bool:
    """Return whether a call is a forward pass: of a model itself, or by the method of one for it."""
    func = call.func
    is_step = isinstance(func, ast.Attribute) and STEPS.fullmatch(func.attr) and MODEL.search(tail_of(func.value))
    return bool(is_step) or is_call_of_model(call)


def _trains(info: ClassInfo) -> bool:
    """Return whether a method of a class puts a model into training mode."""
    made = (call for method in info.methods.values() for call in calls(method) if tail_of(call.func) == "train")
    return any(isinstance(c.func, ast.Attribute) and MODEL.search(tail_of(c.func.value)) for c in made)


def _forward(info: ClassInfo) -> tuple[Function, ast.Call] | None:
    """Return the first forward pass of a class that stands in a block without gradients."""
    for method in info.methods.values():
        decorated = any(WITHOUT.search(text_of(each)) for each in method.decorator_list)
        blocks = [node for node in inner(method, ast.With) if isinstance(node, ast.With)]
        within = [each for each in blocks if any(WITHOUT.search(text_of(item.context_expr)) for item in each.items)]
        for place in [method] if decorated else within:
            found = [call for call in calls(place) if is_call_of_model(call)]
            if found:
                return method, found[0]
    return None
