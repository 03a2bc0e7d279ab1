"""What tells an evaluation: its name, the data that it goes over, the forward passes in it."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gates.scan.analyses._code import LOOPS, callee, function_of, functions, is_backward, is_model_call
from gates.scan.module import Function, Module, tail_of
from gates.scan.nodes import inner, text_of, walk
from gates.scan.project import Project
from gates.scan.site import Site

NAMED = re.compile(
    r"(?i)^_*(run_|do_|_)*(evaluate|evaluation|eval|validate|validation|valid|accuracy|estimate_loss|estimate|"
    r"compute_accuracy|get_accuracy|eval_(model|loop|epoch|step|one_epoch)|test|test_(model|epoch|loop))"
    r"(_(epoch|loop|model|one_epoch|all|set|loss|accuracy|metrics|fn|dataset|split))*$"
)
HELD = re.compile(
    r"(?i)(^|_)(val|valid|validation|test|dev|eval|held)(_?(loader|data|set|ds|dl|dataset|dataloader|batches|"
    r"iter|iterator|split))?s?(_|$)"
)
TRAIN = re.compile(
    r"(?i)^(train|training)(_?(loader|data|set|ds|dl|dataset|dataloader|batches|iter|split))?s?(_|$)|^trainloader$|"
    r"(^|_)(loader|data|dataset|set|dl|ds|dataloader|iter|batches|x)_(train|training)$"
)
BATCHES = re.compile(r"(?i)loader|batches|dataset|(^|_)data$")
NEAR = 3
MAX_BODY = 6
NO_GRAD = re.compile(r"no_grad|inference_mode|set_grad_enabled|_disable_grad|without_grad|nograd")
STEP_METHODS = re.compile(r"(training|validation|test|predict|val|eval)_step")


@dataclass(frozen=True)
class Evaluation:
    """A loop of forward passes without a backward pass, in a function that evaluates or over data held back."""

    module: Module
    function: Function | None
    loop: ast.AST
    forward: ast.Call
    named: bool


def evaluations(project: Project) -> Iterator[Evaluation]:
    """Yield the evaluation loops of a program."""
    for module in project.modules.values():
        if not any(is_model_call(c) for found in module.calls.values() for c in found[:1]):
            continue
        for function in (*functions(module), module.tree):
            if not STEP_METHODS.search(getattr(function, "name", "")) and not _is_test(module):
                yield from _of(project, function, module)


def _is_test(module: Module) -> bool:
    """Return whether it is a test of a test suite, which evaluates nothing."""
    file = module.path.rpartition("/")[2]
    return file.startswith("test_") or file.endswith("_test.py") or file == "conftest.py"


def _of(project: Project, function: Function | ast.Module, module: Module) -> Iterator[Evaluation]:
    named = not isinstance(function, ast.Module) and NAMED.search(function.name) is not None
    for loop in inner(function, *LOOPS, ast.ListComp, ast.GeneratorExp):
        held = HELD.search(_over(loop)) is not None and not TRAIN.search(_over(loop))
        told = not named and not held and _is_told(project, function, loop)
        if not (named or held or told) or _trains(loop if held and not named else function):
            continue
        forward = [c for c in inner(loop, ast.Call) if isinstance(c, ast.Call) and _is_forward(project, module, c)]
        if (isinstance(loop, ast.ListComp | ast.GeneratorExp) or forward) and forward:
            yield Evaluation(
                module,
                None if isinstance(function, ast.Module) else function,
                loop,
                min(forward, key=lambda c: c.lineno),
                named or told,
            )
            return


def _is_forward(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call is a forward pass, or runs a function of the program that is one and no more."""
    if is_model_call(call):
        return True
    target = callee(project, module, call)
    if target is None or target.name == "forward" or any(NO_GRAD.search(text_of(d)) for d in target.decorator_list):
        return False
    owner = project.scope_of(target, module).owner
    if len(target.body) > MAX_BODY or (owner is not None and any(base not in project.classes for base in owner.bases)):
        return False  # more than a forward pass, or a hook of a framework
    found = [c for c in inner(target, ast.Call) if isinstance(c, ast.Call) and is_model_call(c)]
    return bool(found) and not _trains(target) and not _off_inside(target)


def _off_inside(function: Function) -> bool:
    """Return whether a function turns gradients off around its forward passes."""
    return any(
        isinstance(n, ast.With) and any(NO_GRAD.search(text_of(i.context_expr)) for i in n.items)
        for n in inner(function, ast.With)
    )


def _is_told(project: Project, function: Function | ast.Module, loop: ast.AST) -> bool:
    """Return whether a loop over batches is an evaluation by one half of what makes one: gradients or mode are off."""
    if isinstance(function, ast.Module) or TRAIN.search(_over(loop)):
        return False
    tails = {tail_of(c.func) for c in inner(function, ast.Call) if isinstance(c, ast.Call)}
    if "train" in tails or "requires_grad_" in tails:
        return False
    off = any(NO_GRAD.search(text_of(d)) for d in function.decorator_list)
    if not BATCHES.search(_over(loop)):
        return "eval" in tails and function.name == "__call__"
    return "eval" in tails or (off and bool(callers(project, function)))


def _trains(node: ast.AST) -> bool:
    return any(
        is_backward(c) or (tail_of(c.func) == "step" and "opt" in text_of(c.func)) or tail_of(c.func) == "grad"
        for c in inner(node, ast.Call)
        if isinstance(c, ast.Call)
    )


def _over(loop: ast.AST) -> str:
    """Return the name of what a loop goes over."""
    iterated: ast.expr | None = None
    if isinstance(loop, ast.For | ast.AsyncFor):
        iterated = loop.iter
    elif isinstance(loop, ast.ListComp | ast.GeneratorExp):
        iterated = loop.generators[0].iter
    while isinstance(iterated, ast.Call) and iterated.args:
        iterated = iterated.args[0]
    return tail_of(iterated) if iterated is not None else ""


def without_gradients(project: Project, found: Evaluation) -> bool:
    """Return whether an evaluation runs without gradients, by its own or by its callers' doing."""
    return _covered(project, found.module, found.forward, 3)


def _covered(project: Project, module: Module, node: ast.AST, depth: int) -> bool:
    for around in module.ancestors(node):
        if isinstance(around, ast.With | ast.AsyncWith) and (
            any(NO_GRAD.search(text_of(i.context_expr)) or _unknown(i.context_expr) for i in around.items)
        ):
            return True
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            if any(NO_GRAD.search(text_of(d)) for d in around.decorator_list):
                return True
            if any(
                NO_GRAD.search(tail_of(c.func))
                for c in inner(around, ast.Call)
                if isinstance(c, ast.Call) and isinstance(module.parents.get(c), ast.Expr)
            ):
                return True  # torch.set_grad_enabled(False)
    return depth > 0 and _by_all_callers(project, module, node, depth)


def _unknown(context: ast.expr) -> bool:
    """Return whether a context may well turn gradients off: one that is made elsewhere."""
    return (
        isinstance(context, ast.Name | ast.Attribute)
        and "autocast" not in text_of(context)
        and "ctx" not in text_of(context)
    )


def _by_all_callers(project: Project, module: Module, node: ast.AST, depth: int) -> bool:
    function = function_of(node, module)
    sites = callers(project, function) if function else []
    return bool(sites) and all(_covered(project, there, call, depth - 1) for call, there in sites)


def callers(project: Project, function: Function) -> list[tuple[ast.Call, Module]]:
    """Return the calls that run a function, or may: those by its name."""
    return project.named.get(function.name, [])[:20]


def in_eval_mode(project: Project, found: Evaluation) -> bool:
    """Return whether the model is put into evaluation mode, by the evaluation itself or by its callers."""
    return _is_made_here(found) or _set(project, found.function or found.module.tree, 3)


def _is_made_here(found: Evaluation) -> bool:
    """Return whether the model is made, and maybe put into evaluation mode, by what reading cannot follow."""
    func = found.forward.func
    if not isinstance(func, ast.Name) or found.function is None:
        return False
    made = [n.value for n in inner(found.function, ast.Assign) if isinstance(n, ast.Assign) and _binds(n, func.id)]
    return any(isinstance(value, ast.Call) for value in made)


def _binds(node: ast.Assign, name: str) -> bool:
    return any(isinstance(t, ast.Name) and t.id == name for target in node.targets for t in walk(target))


def _set(project: Project, function: Function | ast.Module, depth: int) -> bool:
    for call in inner(function, ast.Call):
        if isinstance(call, ast.Call) and _turns_off(call):
            return True
        if isinstance(call, ast.Call) and re.search(r"(?i)eval_mode|set_eval|evaluating|\beval\b", text_of(call.func)):
            return True
    sites = callers(project, function) if depth and not isinstance(function, ast.Module) else []
    around = [(function_of(call, there), there, call) for call, there in sites]
    return bool(sites) and all(
        (outer is not None and _set(project, outer, depth - 1)) or (outer is None and "eval" in there.calls)
        for outer, there, call in around
    )


def _turns_off(call: ast.Call) -> bool:
    tail = tail_of(call.func)
    if tail == "eval" and isinstance(call.func, ast.Attribute):
        return True
    return (
        tail == "train"
        and bool(call.args)
        and not (isinstance(call.args[0], ast.Constant) and call.args[0].value is True)
    )


def places_of(found: Evaluation, message: str) -> Iterator[Site]:
    """Yield an evaluation as a place that breaks a rule: its head, and its forward pass where that stands far below.

    The head is its loop, or its function where that is far.
    """
    line: int = getattr(found.loop, "lineno", 1)
    if found.named and found.function and line - found.function.lineno > NEAR:
        line = found.function.lineno
    for here in (line, found.forward.lineno):
        if here == line or here - line > NEAR:
            yield Site(found.module.path, here, here, ok=False, message=message)
