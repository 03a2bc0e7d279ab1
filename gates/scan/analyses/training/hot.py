"""The hot path: statements that run with each step of training, and not only now and then."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.reading.call_sites import calls_of
from gates.scan.analyses.reading.code import FUNCTIONS, LOOPS, accelerated, callee, calls, function_of, is_backward
from gates.scan.analyses.reading.engines import runs_with_each
from gates.scan.analyses.reading.origins import COMPREHENSIONS
from gates.scan.analyses.training.indirect import kept_functions, passes_on, steps_of
from gates.scan.analyses.training.seldom import (
    counts,
    is_asked_after,
    is_guard,
    is_optimizer_step,
    is_usual,
    left_before,
    left_until,
    other_side,
    runs_closure,
)
from gates.scan.analyses.training.steps import Steps
from gates.scan.analyses.training.updates import MAX_DEPTH, is_update, leading, step_inside
from gates.scan.program.known import OPTIMIZER
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, walk
from gates.scan.program.project import Project
from gates.scan.ways.hooks import hooks_of
from gates.scan.ways.registries import keyed

EACH_TIME = frozenset({"items", "values", "parameters", "named_parameters"})  # with each step, all there are
SMALL = re.compile(
    r"(?i)call_?backs?$|hooks?$|met(er|ric)s$|loss(es)?$|terms$|listeners$|observers$|plugins$|handlers$|monitors$"
)
MEMORY = re.compile(r"memory_(allocated|reserved|stats)$")
COPIES = frozenset({"enumerate", "zip", "list", "sorted", "reversed"})
REPEATS = (*LOOPS, *COMPREHENSIONS)
EACH_BATCH = frozenset(
    {
        "training_step", "on_train_batch_start", "on_train_batch_end", "on_before_backward", "on_after_backward",
        "on_before_optimizer_step", "on_before_zero_grad", "optimizer_step", "on_step_begin", "on_step_end",
    }
)  # fmt: skip
BATCH_HOOKS = re.compile(r"(on_)?(before|after)_(train_)?(batch|iter|step)|on_(train_)?(batch|step)_(begin|start|end)")
HOOKS = re.compile(r"(Callback|Hook|Plugin)s?$")
FRAMEWORKS = re.compile(r"(lightning|pytorch_lightning|transformers|composer)\.")


def hot_calls(project: Project, module: Module, tails: set[str]) -> Iterator[ast.Call]:
    """Yield the calls by some names that run with each step, of a training that knows of an accelerator."""
    found = [call for tail in sorted(tails) for call in module.calls.get(tail, [])]
    for call in sorted(found, key=lambda c: c.lineno):
        if is_hot(project, module, call) and (accelerated(module) or helper_of(project, module, call) is not None):
            yield call


def is_hot(project: Project, module: Module, node: ast.AST) -> bool:
    """Return whether a node runs with each step: its loop or function takes one, or a step runs its function."""
    root = root_of(project, module, node)
    if root is None:
        return False
    return is_training(project, module, root) or root in steps(project).sites or _is_hook(project, module, root)


def _is_hook(project: Project, module: Module, root: ast.AST) -> bool:
    """Return whether a function is a handler of each batch, or a method of a callback whose name says so."""
    if not isinstance(root, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    step = runs_with_each(project, module, root)
    if step is not None or not BATCH_HOOKS.fullmatch(root.name):
        return step is not None and is_training(project, module, step)
    owner = project.scope_of(root, module).owner
    return owner is not None and any(HOOKS.search(base or "") for base in owner.bases)


def helper_of(project: Project, module: Module, node: ast.AST) -> Function | None:
    """Return the function of a node that runs with each step without taking one: a helper, a method, a callback."""
    root = root_of(project, module, node)
    if not isinstance(root, FUNCTIONS) or root not in steps(project).sites or is_training(project, module, root):
        return None
    return root


def places_of(
    project: Project, module: Module, call: ast.Call, helper: Function | None
) -> list[tuple[Module, ast.Call]]:
    """Return where a call runs with each step: where it stands, or where its helper is called which others may call."""
    known = steps(project)
    hot = known.sites.get(helper, []) if helper is not None else []
    everywhere = {each for each, _ in calls_of(helper, project)} if hot and helper is not None else set()
    if not everywhere - {each for each, _ in hot}:
        return [(module, call)]
    return [(there, each) for each, there in hot]


def measures_memory(function: ast.AST) -> bool:
    """Return whether a function asks how much memory there is in use, as only a measurement does."""
    return any(MEMORY.search(tail_of(call.func)) for call in calls(function)) and not any(
        map(is_backward, calls(function))
    )


def is_of_peak(module: Module, node: ast.AST) -> bool:
    """Return whether a node stands outside of the loops of a function that asks how much memory was in use."""
    function = function_of(node, module)
    asks = function is not None and any(MEMORY.search(tail_of(call.func)) for call in calls(function))
    return asks and not any(isinstance(around, LOOPS) for around in _between(node, function or node, module))


def steps(project: Project) -> Steps:
    """Return the functions that a training runs with each step."""
    return project.once(_steps)[0]


def _steps(project: Project) -> Iterator[Steps]:
    begun = [(m, node) for m in project.modules.values() for node in _trainings(project, m)]
    yield steps_of(project, begun, lambda module, node, root: root_of(project, module, node) is root)


def _trainings(project: Project, module: Module) -> Iterator[ast.AST]:
    """Yield the loops and the functions of a file that take a step, where it knows of an accelerator."""
    found: dict[ast.AST, None] = {}
    for tail in leading(project) & module.calls.keys():
        for call in module.calls[tail]:
            for around in module.ancestors(call):
                if isinstance(around, (*REPEATS, *FUNCTIONS)):
                    found[around] = None
                if isinstance(around, FUNCTIONS):
                    break
    yield from (node for node in found if is_training(project, module, node)) if found and accelerated(module) else ()


def is_training(project: Project, module: Module, node: ast.AST) -> bool:
    """Return whether a loop or a function takes a step itself."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return _is_step(project, module, node, MAX_DEPTH)
    return _trains(project, module, node, MAX_DEPTH)


def root_of(project: Project, module: Module, node: ast.AST) -> ast.AST | None:
    """Return the loop or function with each turn of which a node runs; none for what runs only now and then."""
    inside = node
    for around in module.ancestors(node):
        if isinstance(around, ast.ExceptHandler | ast.Lambda | ast.Raise):
            return None
        if isinstance(around, ast.Assert) and inside is around.msg:
            return None
        if isinstance(around, ast.BoolOp) and is_asked_after(node, around):
            return None
        if (
            isinstance(around, ast.If | ast.IfExp)
            and is_guard(around.test)
            and not any(part is node for part in walk(around.test))
            and not _takes_step(project, module, around, inside)
            and not is_usual(around.test, holds=inside not in other_side(around))
        ):
            return None
        if isinstance(inside, ast.stmt) and _is_left(project, module, inside, around):
            return None
        if isinstance(around, FUNCTIONS) or (isinstance(around, LOOPS) and not _is_small(project, module, around)):
            return around
        if isinstance(around, COMPREHENSIONS) and _trains(project, module, around, MAX_DEPTH):
            return around
        inside = around
    return None


def _is_small(project: Project, module: Module, loop: ast.AST) -> bool:
    """Return whether a loop goes over a handful of things, all with each step: values by name, callbacks, losses."""
    if not isinstance(loop, ast.For):
        return False
    over = loop.iter
    while isinstance(over, ast.Call) and tail_of(over.func) in COPIES and over.args:
        if tail_of(over.func) == "zip" and any(_is_listed(project, module, loop, each) for each in over.args):
            return True
        over = over.args[0]
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr in EACH_TIME:
        return True
    run_by, over = project.once(hooks_of)[0].run_by, keyed(over)[0]
    if any(call in run_by and tail_of(call.func) == tail_of(loop.target) for call in calls(loop)):
        return True
    is_listed = _is_listed(project, module, loop, over)
    return is_listed or passes_on(loop, module) or _lets_act(project, loop) or SMALL.search(tail_of(over)) is not None


def _lets_act(project: Project, loop: ast.For) -> bool:
    """Return whether a loop does no more than call a method of the program on each of some objects that are kept."""
    made = [each.value for each in loop.body if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call)]
    acting = [c.func.value for c in made if isinstance(c.func, ast.Attribute) and c.func.attr in project.by_method]
    is_all = len(acting) == len(loop.body) and all(isinstance(each, ast.Name) for each in acting)
    return (
        is_all and isinstance(loop.iter, ast.Attribute) and {tail_of(each) for each in acting} == {tail_of(loop.target)}
    )


def _is_listed(project: Project, module: Module, loop: ast.For, over: ast.expr) -> bool:
    """Return whether what a loop goes through is written out."""
    behind = project.scope_at(loop, module).through(over)
    written = (over, behind[0] if behind else None)
    return any(
        (isinstance(one, ast.List | ast.Tuple) and one.elts) or (isinstance(one, ast.Dict) and one.keys)
        for one in written
    )


def _takes_step(project: Project, module: Module, node: ast.If | ast.IfExp, inside: ast.AST) -> bool:
    """Return whether the branch of a condition steps the optimizer, so that it is no branch for now and then."""
    if not isinstance(node, ast.If):
        return False
    if not counts(node.test):
        return step_inside(project, module, node.body)
    return is_update(project, module, node.orelse if inside in node.orelse else node.body, node)


def _is_left(project: Project, module: Module, statement: ast.stmt, around: ast.AST) -> bool:
    """Return whether most turns leave before they come to a statement, and not to gather batches for a step."""
    if any(not is_update(project, module, rest, branch) for branch, rest in left_before(statement, around)):
        return True
    after = left_until(project, module, statement, around)
    return bool(after) and not step_inside(project, module, after)


def _is_step(project: Project, module: Module, function: Function, depth: int) -> bool:
    if any(_trains(project, module, loop, depth) for loop in inner(function, *REPEATS)):
        return False
    if function.name in EACH_BATCH:  # a framework runs it
        owner = project.scope_of(function, module).owner
        framed = owner is not None and any(FRAMEWORKS.match(base or "") for base in owner.bases)
        return framed or function.name == "training_step"
    if not _trains(project, module, function, depth) or _is_study(project, module, function):
        return False
    return not _is_whole_training(project, module, function)


def _is_whole_training(project: Project, module: Module, function: Function) -> bool:
    """Return whether a function makes the optimizer that it steps: no step of a training, but one from its begin on."""
    stepped = {tail_of(call.func.value) for call in calls(function) if isinstance(call.func, ast.Attribute)
               and tail_of(call.func) == "step"}  # fmt: skip
    stepped |= {tail_of(arg) for call in calls(function) if tail_of(call.func) == "step" for arg in call.args}
    made = (node for node in inner(function, ast.Assign) if isinstance(node, ast.Assign))
    return any(
        isinstance(node.value, ast.Call)
        and any(isinstance(target, ast.Name) and target.id in stepped for target in node.targets)
        and _makes_optimizer(project, module, node.value)
        for node in made
    )


def _makes_optimizer(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call makes an optimizer, by its class or by a function that returns a new one."""
    named = project.scope_at(call, module).dotted(call.func)
    if project.types.is_a(named, OPTIMIZER) and (call.args or call.keywords):
        return True
    target = callee(project, module, call)
    scope = project.scope_of(target, module) if target is not None else None
    given = (n.value for n in inner(target, ast.Return) if isinstance(n, ast.Return)) if target is not None else ()
    made = [value for value in given if isinstance(value, ast.Call)]
    return scope is not None and any(project.types.is_a(scope.dotted(v.func), OPTIMIZER) for v in made)


def _is_study(project: Project, module: Module, function: Function) -> bool:
    """Return whether a function has one other train several times, and takes no step itself: a comparison of runs."""
    own = [c for c in calls(function) if tail_of(c.func) in leading(project)]
    if any(is_backward(call) or is_optimizer_step(call) for call in own):
        return False
    always = (c for c in own if not any(isinstance(a, ast.If | ast.IfExp) for a in _between(c, function, module)))
    runs = [target for call in always if (target := callee(project, module, call)) is not None]
    return any(runs.count(target) > 1 for target in runs)


def _trains(project: Project, module: Module, node: ast.AST, depth: int) -> bool:
    """Return whether a loop or function takes a step itself, not in a loop inside of it."""
    known = project.once(_known)[0]
    if (node, depth) not in known:
        known[(node, depth)] = _takes(project, module, node, depth)
    return known[(node, depth)]


def _runs_backward(project: Project, module: Module, call: ast.Call) -> bool:
    target = callee(project, module, call)
    return is_backward(call) or (target is not None and any(map(is_backward, calls(target))))


def _takes_one(project: Project, module: Module, call: ast.Call, depth: int) -> bool:
    """Return whether a call is that of an optimizer's step, or runs one."""
    target = callee(project, module, call) if depth and tail_of(call.func) in leading(project) else None
    if is_optimizer_step(call) or target is None:
        return is_optimizer_step(call)
    there = project.scope_of(target, module).module
    return any(_takes_one(project, there, each, depth - 1) for each in calls(target))


def _goes_through_steps(project: Project, module: Module, loop: ast.AST, depth: int) -> bool:
    """Return whether a loop goes through a generator that yields after each step: `for loss in steps(model)`."""
    asked = (c for c in walk(loop.iter) if isinstance(c, ast.Call)) if isinstance(loop, ast.For) and depth else ()
    for call in asked:
        target = callee(project, module, call) if tail_of(call.func) in leading(project) else None
        there = project.scope_of(target, module).module if target is not None else module
        for given in inner(target, ast.Yield) if target is not None else ():
            root = root_of(project, there, given)
            if isinstance(root, LOOPS) and root is not loop and _trains(project, there, root, depth - 1):
                return True
    return False


def _takes(project: Project, module: Module, node: ast.AST, depth: int) -> bool:
    if _goes_through_steps(project, module, node, depth):
        return True
    loops = [loop for loop in inner(node, *LOOPS) if _trains(project, module, loop, depth)]
    around_steps = any(_takes_one(project, module, call, depth) for loop in loops for call in calls(loop))
    for call in calls(node):
        if tail_of(call.func) not in leading(project) or any(
            isinstance(a, REPEATS) for a in _between(call, node, module)
        ):
            continue
        if around_steps and isinstance(node, LOOPS) and not _runs_backward(project, module, call):
            continue  # what is left over after the loop inside
        if around_steps and any(isinstance(a, ast.If) and is_guard(a.test) for a in _between(call, node, module)):
            continue  # what an accumulation left over
        if is_backward(call) or (is_optimizer_step(call) and not runs_closure(project, module, call)):
            return True
        ran = kept_functions(project, module, call) if depth else []
        if (
            ran
            and node not in ran
            and all(_trains(project, project.scope_of(target, module).module, target, depth - 1) for target in ran)
        ):
            return True
    return False


def _known(_project: Project) -> Iterator[dict[tuple[ast.AST, int], bool]]:
    yield {}


def _between(node: ast.AST, outer: ast.AST, module: Module) -> Iterator[ast.AST]:
    for around in module.ancestors(node):
        if around is outer:
            return
        yield around
