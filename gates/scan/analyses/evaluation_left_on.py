"""Training that goes on in evaluation mode after an evaluation."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.evaluation.handed import Body, handed_of
from gates.scan.analyses.evaluation.sibling_phases import never_put_on, never_put_on_beside
from gates.scan.analyses.reading.code import Loop, broken, callee, calls, function_of, is_backward, statement_of
from gates.scan.analyses.reading.flow import passed, runs, spine
from gates.scan.analyses.reading.outward import Step, following, may_be, root_of, sets_anew, ways
from gates.scan.analyses.training.forwards import NO_GRAD, trains
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.site import Site
from gates.scan.ways.hooks import hooks_of
from gates.stub import is_hollow

WORDS = ("eval", "train")
FEW = 4
TRAINS = re.compile(r"(?i)train|epoch|fit|step|batch|update|optimi[sz]e|run|learn")
STILL = re.compile(
    r"(?i)ema|teacher|averag|\bavg|_ref|ref_|target|frozen|vae|text_enc|inception|lpips|best|swa|pretrained|shadow|"
    r"snapshot|copy|clone"
)
COPIES = frozenset({"deepcopy", "AveragedModel", "ModelEma", "ModelEmaV2", "ModelEmaV3", "EMA"})
ENDS = {"__enter__": "__exit__", "__aenter__": "__aexit__", "__init__": "__exit__"}
Told = tuple[bool, bool]
BACK = re.compile(r"(^|_)(train(ing)?(_mode)?|set_mode)$")


def look(project: Project) -> Iterator[Site]:
    """Yield each `eval()` after which training goes on without `train()`."""
    training = Training(project)
    for module in project.modules.values():
        named = (call for name, found in module.calls.items() if BACK.search(name) for call in found)
        for call in (*module.calls.get("eval", []), *filter(_is_off, named)):
            if not isinstance(call.func, ast.Attribute) or (call.func.attr == "eval" and call.args):
                continue
            models = [call.func.value, *_kept_in(module, call)]
            if any(STILL.search(text_of(each)) or _is_still(project, module, each) for each in models):
                continue
            yield from _left_on(project, module, call, training)
    for module, method, off in (*never_put_on(project), *never_put_on_beside(project)):
        there = project.scope_of(off, module).module.path
        said = f"{method.name}() and what follows it train in evaluation mode"
        yield Site(module.path, method.lineno, method.lineno, ok=False, message=said,
                   trace=(f"it is set in {there}:{off.lineno}",))  # fmt: skip


def _left_on(project: Project, module: Module, call: ast.Call, training: "Training") -> Iterator[Site]:
    function = function_of(call, module)
    back = [c for c in calls(function or module.tree) if _is_back(c) and _may_be(module, c, call)]
    after = [c for c in back if c.lineno > call.lineno]
    early = list(_early(module, function, call, after)) if function is not None and after else []
    if (after and not early) or (function is not None and _hands_back(function)):
        return
    if function is not None and _ends_on(project, module, function, training):
        return
    assert isinstance(call.func, ast.Attribute)
    training = Training(project, function) if early else training
    known = list(ways(project, module, call, root_of(call.func.value)))
    found = [(way, _goes_on(training, way)) for way in known]
    for way, by in (pair for each in known for pair in training.handed.beyond(each)):
        problem = _goes_on(training, way)
        found.append((way, problem and training.handed.is_shared(call.func.value, way, by)))
    wrong = [way for way, problem in found if problem and all(step.is_sure for step in way)]
    wrong = wrong or [way for way, problem in found if problem and all(p is not False for _, p in found)]
    if not wrong:
        return
    for place in early:
        yield broken(module, place, f"{text_of(call.func.value)} stays in evaluation mode where this returns")
    yield broken(module, call, f"{text_of(call)} is never followed by train(), and the training goes on")
    for way in wrong:
        if len(way) > 1 and (len(way) == 2 or not way[0].loops):
            text = text_of(way[1].call.func)
            yield broken(way[1].module, way[1].call, f"{text}() leaves the model in evaluation mode")
        for there, node in training.of_turns(way):
            said = f"{getattr(node, 'name', 'this loop')} trains in evaluation mode"
            yield Site(there.path, node.lineno, node.lineno, ok=False, message=said,
                       trace=(f"it is set in {module.path}:{call.lineno}",))  # fmt: skip


def _is_off(call: ast.Call) -> bool:
    """Return whether a call turns training off: `model.train(False)`, `policy.set_training_mode(mode=False)`."""
    given = [*call.args, *(k.value for k in call.keywords if k.arg == "mode")]
    return bool(given) and isinstance(given[0], ast.Constant) and given[0].value is False


def _is_back(call: ast.Call) -> bool:
    return BACK.search(tail_of(call.func)) is not None and not _is_off(call)


def _hands_back(function: Function) -> bool:
    """Return whether a function sets the mode in another way: `stack.callback(model.train)`, `m.training = was`."""
    return any(
        isinstance(n, ast.Attribute)
        and (n.attr == "training" if isinstance(n.ctx, ast.Store) else n.attr == "train" and n not in called)
        for called in [{c.func for c in calls(function)}]
        for n in inner(function, ast.Attribute)
    )


def _ends_on(project: Project, module: Module, function: Function, training: "Training") -> bool:
    """Return whether what a context puts off as it begins is put back into training mode as it ends."""
    owner = project.scope_of(function, module).owner
    if owner is None or function.name not in ENDS:
        return False
    ends = project.method(owner, ENDS[function.name]) or project.method(owner, "__exit__")
    return ends is not None and (training.of(ends[1], ends[0])[1] or _hands_back(ends[0]))


def _kept_in(module: Module, call: ast.Call) -> list[ast.expr]:
    """Return the variables of a model that is put off where it is made: `teacher = build().to(device).eval()`."""
    node, around = call, module.parents.get(call)
    while isinstance(around, ast.Attribute) or (isinstance(around, ast.Call) and around.func is node):
        node, around = around, module.parents.get(around)  # type: ignore[assignment]  # an attribute or its call
    return around.targets if isinstance(around, ast.Assign) and around.value is node else []


def _is_still(project: Project, module: Module, model: ast.expr) -> bool:
    """Return whether a model is a copy, or is told that it is not to be trained."""
    text = text_of(model)
    for call in module.calls.get("requires_grad_", []):
        if call.args and isinstance(call.args[0], ast.Constant) and text_of(call.func).startswith(f"{text}."):
            return call.args[0].value is False
    for loop in module.live.get(ast.For, []):
        if isinstance(loop, ast.For) and text_of(loop.iter) == f"{text}.parameters()":
            stored = [n for n in inner(loop, ast.Assign) if isinstance(n, ast.Assign)]
            if any(tail_of(n.targets[0]) == "requires_grad" and text_of(n.value) == "False" for n in stored):
                return True
    for source in spine(project, model, project.scope_at(model, module), model.lineno, 3):
        if isinstance(source.node, ast.Call) and tail_of(source.node.func) in COPIES:
            return True
        if isinstance(source.node, ast.Name) and isinstance(model, ast.Attribute):
            given = [value for value, _, _ in passed(project, source.node.id, source.scope)]
            if any(STILL.search(text_of(value)) for value in given):
                return True
    return False


def _may_be(module: Module, back: ast.Call, off: ast.Call) -> bool:
    """Return whether a call may put back into training mode what another one put off; both are in one function."""
    if not isinstance(back.func, ast.Attribute) or not isinstance(off.func, ast.Attribute):
        return True
    return may_be(function_of(off, module) or module.tree, back.func.value, off.func.value)


def _early(module: Module, function: Function, call: ast.Call, back: list[ast.Call]) -> Iterator[ast.Return]:
    """Yield the returns between an `eval()` and the `train()` that was to follow it."""
    first = min(c.lineno for c in back)
    for node in inner(function, ast.Return):
        if not isinstance(node, ast.Return) or not call.lineno < node.lineno < first:
            continue
        around = [a for a in module.ancestors(node) if isinstance(a, ast.Try)]
        finally_ = {n for each in around for s in each.finalbody for n in walk(s)}
        after = {n for s in following(module, call) for n in walk(s)}
        if node in after and not any(c in finally_ for c in back):
            yield node


def _goes_on(training: "Training", way: list[Step]) -> bool | None:
    """Return whether what trains around the steps of a way stays in evaluation mode; `None` where nothing trains."""
    first = way[0]
    told: bool | None = None
    for step in way:
        told = _purpose(training, step) if told is None else told
        if told is True:
            return None
        for loop in step.loops:
            backward, back = training.of(step.module, loop, first.call if step is first else None)
            if backward:
                return not back
        if told is False or step is not first:
            later = _later(training, step)
            if later is not None:
                return later
    return None


def _purpose(training: "Training", step: Step) -> bool | None:
    """Return whether a mode is set for the training that follows, `False` for an evaluation, else `None`."""
    if step.root is None:
        return None
    for statement in following(step.module, step.call):
        if training.of(step.module, statement)[0]:
            return True
        if isinstance(statement, ast.With) and any(NO_GRAD.search(text_of(i.context_expr)) for i in statement.items):
            return False
        if any(_hands(c, step.root) for c in calls(statement)):
            return False
    function = function_of(step.call, step.module)
    return False if function and any(NO_GRAD.search(text_of(d)) for d in function.decorator_list) else None


def _hands(call: ast.Call, root: str) -> bool:
    """Return whether a call runs an object, or is handed it, other than to set its mode."""
    if tail_of(call.func) in {"eval", "train", "requires_grad_", "parameters", "named_parameters", "modules", "apply"}:
        return False
    given = [call.func, *call.args, *(k.value for k in call.keywords)]
    return any(isinstance(n, ast.Name | ast.Attribute) and root_of(n) == root for n in given)


def _later(training: "Training", step: Step) -> bool | None:
    """Return whether what stands behind a step trains the same object in evaluation mode."""
    for statement in following(step.module, step.call):
        if sets_anew(statement, step.root):
            return None
        names = {n.id for n in walk(statement) if isinstance(n, ast.Name)}
        backward, back = training.of(step.module, statement)
        if back:
            return None
        if backward and step.root in names and not isinstance(statement_of(step.call, step.module), ast.Return):
            return True
    return None


def _trains(owner: ClassInfo, call: ast.Call) -> bool:
    """Return whether what a class does for a call is to train, or is left to its heirs."""
    method = owner.methods.get(tail_of(call.func))
    return tail_of(call.func) == "train" and method is not None and (is_hollow(method) or trains(method))


class Training:
    """Answers whether code trains, and whether it puts models back into training mode."""

    def __init__(self, project: Project, without: Function | None = None) -> None:
        self._project = project
        self._hooks = project.once(hooks_of)[0]
        self.handed = project.once(handed_of)[0]
        self._known: dict[ast.AST, Told] = {without: (False, False)} if without is not None else {}

    def of(self, module: Module, node: ast.AST, off: ast.Call | None = None) -> Told:
        """Return both of what a piece of code runs; `off` is the call in it that puts a model off."""
        found = [
            (is_backward(c), self._is_back(c, module) and (off is None or _may_be(module, c, off))) for c in calls(node)
        ]
        found += [self._function(each, module) for call in calls(node) for each in self._targets(call, module)]
        for call in calls(node):
            filled = [self._function(each, module) for each in self._filled_in(call, module)]
            found += [told for told in filled if told == (True, False)][:1] or filled[:1]
        return any(backward for backward, _ in found), any(back for _, back in found)

    def _function(self, function: Body, near: Module) -> Told:
        if function not in self._known:
            self._known[function] = (False, False)  # a circle tells nothing more
            self._known[function] = self.of(self._project.scope_of(function, near).module, function)
        return self._known[function]

    def of_turns(self, way: list[Step]) -> Iterator[tuple[Module, Function | Loop]]:
        """Yield what trains, and leaves the mode alone, in the loops around the steps of a way: an epoch, by its head.

        It is a loop inside, or a function that has one; a method that classes fill in need not have one.
        """
        for step in way:
            for statement in (s for loop in step.loops for s in loop.body):
                if isinstance(statement, ast.For | ast.While):
                    if self.of(step.module, statement) == (True, False):
                        yield step.module, statement
                    continue
                for call in calls(statement):
                    run = [each for each in self._targets(call, step.module) if any(inner(each, ast.For, ast.While))]
                    for each in (*run, *self._filled_in(call, step.module)):
                        if self._function(each, step.module) == (True, False) and not isinstance(each, ast.Lambda):
                            yield self._project.scope_of(each, step.module).module, each

    def _is_back(self, call: ast.Call, module: Module) -> bool:
        """Return whether a call puts models into training mode: not where it runs the training of an object itself."""
        if not _is_back(call):
            return False
        target = callee(self._project, module, call)
        owner = self._project.scope_of(target, module).owner if target is not None else None
        return owner is None or not _trains(owner, call)

    def _filled_in(self, call: ast.Call, module: Module) -> list[Function]:
        """Return what classes have for a method that the class of a call leaves to them."""
        target = callee(self._project, module, call)
        if target is None or not is_hollow(target):
            return []
        return [each for each in runs(self._project, module, call) if each is not target]

    def _targets(self, call: ast.Call, module: Module) -> Iterator[Body]:
        target = callee(self._project, module, call)
        yield from (target,) if target is not None else ()
        yield from (each.function for each in self._hooks.fired_by.get(call, ()))
        yield from self.handed.runs(call) if target is None else ()
        if target is None and isinstance(call.func, ast.Attribute) and TRAINS.search(call.func.attr):
            name = call.func.attr
            yield from [i.methods[name] for i in self._project.by_method.get(name, ()) if name in i.methods][:FEW]
