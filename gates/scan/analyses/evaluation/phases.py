"""Passes over data that train for some of their calls alone, and set the mode of their model for those only."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.benchmarks.benching import words
from gates.scan.analyses.evaluation.evaluating import is_of_framework
from gates.scan.analyses.evaluation.rested import callers
from gates.scan.analyses.evaluation.switches import SETS, turns_off
from gates.scan.analyses.reading import flow
from gates.scan.analyses.reading.code import LOOPS, MODEL, callee, calls, functions
from gates.scan.analyses.reading.flow import set_before
from gates.scan.analyses.training.forwards import NO_GRAD, is_call_of_model, trains
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project

EVALUATES = re.compile(
    r"(?i)\b(eval|evaluate|evaluation|evaluator|val|valid|validate|validation|test|predict|predictions?|infer|inference|"
    r"accuracy|recall|precision|perplexity|scores?|metrics?|auc|map|ndcg|iou|dice|wer|bleu|psnr|mae|rmse)\b"
)


def half_set(project: Project) -> Iterator[tuple[Module, Function, ast.Call]]:
    """Yield the forward passes that nothing ever puts into evaluation mode, though some of their calls train not."""
    if any(map(sets_off, project.modules.values())):
        return
    for module in project.modules.values():
        for function in functions(module) if "train" in module.calls else ():
            test = next((n.test for n in inner(function, ast.If) if isinstance(n, ast.If) and _puts_on(n)), None)
            forward = _forward(project, module, function, test) if test is not None else None
            if test is not None and forward is not None and _is_for_both(project, module, function, test):
                yield module, function, forward


def never_off(project: Project) -> Iterator[tuple[Module, Function, ast.Call]]:
    """Yield the forward passes of functions that evaluate, where models are put into training mode alone."""
    if any(map(sets_off, project.modules.values())):
        return
    made = (call for module in project.modules.values() for call in module.calls.get("train", ()))
    trained = {tail_of(c.func.value) for c in made if isinstance(c.func, ast.Attribute) and not (c.args or c.keywords)}
    trained -= {"self", "cls", ""}
    for module in project.modules.values() if trained else ():
        for function in functions(module):
            if not EVALUATES.search(words(function.name)) or is_of_framework(project, function, module):
                continue
            if NO_GRAD.search(text_of(function)) and not trains(function):
                runs = (c for c in calls(function) if _is_run(project, module, c, trained))
                yield from ((module, function, call) for call in [*runs][:1])


def _is_run(project: Project, module: Module, call: ast.Call, models: set[str]) -> bool:
    """Return whether a call is the forward pass of a model of a name, or of a function that is handed it."""
    if tail_of(call.func) in models:
        return is_call_of_model(call) or flow.is_forward(project, module, call)
    target = callee(project, module, call) if any(tail_of(arg) in models for arg in call.args) else None
    return target is not None and any(tail_of(c.func) in models for c in calls(target)) and not trains(target)


def sets_off(module: Module) -> bool:
    """Return whether a file puts any model into evaluation mode, or may."""
    fields = [n for n in module.live.get(ast.Attribute, []) if isinstance(n, ast.Attribute)]
    named = any(n.attr == "eval" or (n.attr == "training" and isinstance(n.ctx, ast.Store)) for n in fields)
    chosen = (c.args[0] for c in module.calls.get("getattr", ()) if c.args)
    is_chosen = any(MODEL.search(tail_of(each)) for each in chosen) or any(map(SETS.search, module.calls))
    return named or is_chosen or any(map(turns_off, module.calls.get("train", ())))


def _puts_on(branch: ast.If) -> bool:
    """Return whether a model is put into training mode under a condition, and nothing is done otherwise."""
    made = [s.value for s in branch.body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)]
    return not branch.orelse and any(
        isinstance(c.func, ast.Attribute) and c.func.attr == "train" and MODEL.search(tail_of(c.func.value))
        for c in made
    )


def _forward(project: Project, module: Module, function: Function, test: ast.expr) -> ast.Call | None:
    """Return the first forward pass of a loop that runs a backward pass under a condition alone."""
    found = []
    for loop in inner(function, *LOOPS):
        guarded = [n for n in inner(loop, ast.If) if isinstance(n, ast.If) and text_of(n.test) == text_of(test)]
        within = {part for n in guarded for s in n.body for part in walk(s)}
        training = [c for c in calls(loop) if _trains(project, module, c)]
        if training and all(c in within for c in training):
            found += [c for c in calls(loop) if is_call_of_model(c) and c not in within]
    return min(found, key=lambda c: c.lineno) if found else None


def _trains(project: Project, module: Module, call: ast.Call) -> bool:
    target = callee(project, module, call)
    return trains(ast.Expr(call)) or (target is not None and trains(target))


def _is_for_both(project: Project, module: Module, function: Function, test: ast.expr) -> bool:
    """Return whether a function is run with its condition true and false: by its callers, or by a loop of its own."""
    names = {n.id for n in walk(test) if isinstance(n, ast.Name)}
    for name in list(names):
        before = set_before(function, name, test.lineno)
        names |= {n.id for value, _ in before for n in walk(value) if isinstance(n, ast.Name)}
    loops = (n for n in inner(function, ast.For) if isinstance(n, ast.For))
    if any(tail_of(n.target) in names and len(getattr(n.iter, "elts", ())) > 1 for n in loops):
        return True
    given = {a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    return any(_varies(project, module, function, name) for name in names & given - {"self"})


def _varies(project: Project, module: Module, function: Function, name: str) -> bool:
    """Return whether what the callers of a function pass for a parameter is not the same for all of them."""
    bound = project.scope_of(function, module).owner is not None
    sites = [(c, m) for c, m in callers(project, function) if callee(project, m, c) is function]
    passed = [argument(call, function, name, bound=bound) for call, _ in sites]
    written = {text_of(value) if value is not None else "" for value in passed}
    turns = any(
        isinstance(value, ast.Name) and isinstance(loop, ast.For) and value.id in map(text_of, walk(loop.target))
        for value, (call, there) in zip(passed, sites, strict=True)
        for loop in there.ancestors(call)
    )
    return turns or len(written) > 1
