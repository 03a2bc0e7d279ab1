"""Sampling from a model: loops that run it on what it gave before, in methods that are called so."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.evaluation.evaluating import Evaluation
from gates.scan.analyses.evaluation.rested import GRADIENTS, callers
from gates.scan.analyses.reading.code import callee, calls, function_of, functions
from gates.scan.analyses.training.forwards import is_call_of_model, trains
from gates.scan.program.known import MODULE
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project

NAMED = re.compile(
    r"(?i)^_*((p|ddim|ddpm|euler|heun|langevin|ode|sde)_)?sample(r|s)?(_(loop|all|images?|batch|grid|many|ddim|ddpm|euler|heun|steps))*$|"
    r"^_*(generate|greedy_decode|beam_search|autoregress)(_(text|images?|tokens|samples|sequence|batch))?$"
)
TURNS = re.compile(r"(?i)range|steps|times|sigmas|schedule|betas")
DRAWS = frozenset({"multinomial", "argmax", "topk", "categorical"})
SLOPES = re.compile(r"\bgrad\(|enable_grad|backward|requires_grad|guidance_grad|rsample")


def sampling(project: Project) -> Iterator[Evaluation]:
    """Yield the loops of a program that trains in which a model is run on what it gave in the turn before."""
    if "backward" not in project.named:
        return
    for module in project.modules.values():
        for function in functions(module):
            if not NAMED.search(function.name) or trains(function) or SLOPES.search(text_of(function)):
                continue
            if _is_trained_on(project, function) or GRADIENTS.search(text_of(function)):
                continue
            for loop in inner(function, ast.For):
                over = text_of(loop.iter) if isinstance(loop, ast.For) else ""
                forward = _forward(project, module, loop) if TURNS.search(over) else None
                if forward is not None:
                    yield Evaluation(module, function, loop, forward, named=True)
                    break


def _forward(project: Project, module: Module, loop: ast.AST) -> ast.Call | None:
    """Return the forward pass of a loop whose result is handed to it again, or drawn from."""
    stored = {n.id for n in inner(loop, ast.Name) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    draws = any(tail_of(call.func) in DRAWS for call in calls(loop))
    for call in calls(loop):
        given = {n.id for each in (*call.args, *(k.value for k in call.keywords)) for n in walk(each)
                 if isinstance(n, ast.Name)}  # fmt: skip
        if (given & stored or draws) and _runs_model(project, module, call):
            return call
    return None


def _runs_model(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call is of a model: by its name, by itself, or in the own method that it runs."""
    if is_call_of_model(call):
        return True
    function = function_of(call, module)
    owner = project.scope_of(function, module).owner if function is not None else None
    if owner is None or not isinstance(call.func, ast.Name | ast.Attribute) or not (call.args or call.keywords):
        return False
    if text_of(call.func) == "self":
        return project.types.is_a(owner.name, MODULE) is True
    target = callee(project, module, call)
    own = isinstance(call.func, ast.Attribute) and text_of(call.func.value) == "self"
    return target is not None and own and any(map(is_call_of_model, calls(target)))


def _is_trained_on(project: Project, function: Function) -> bool:
    """Return whether a function that trains calls what samples, with gradients that it may want."""
    around = (function_of(call, there) for call, there in callers(project, function))
    return any(outer is not None and trains(outer) and _keeps(outer, function.name) for outer in around)


def _keeps(function: Function, name: str) -> bool:
    """Return whether a loss may come from what a function samples: it is stored under a name that a loss is made of."""
    for node in inner(function, ast.Assign):
        if isinstance(node, ast.Assign) and any(
            isinstance(c, ast.Call) and tail_of(c.func) == name for c in walk(node.value)
        ):
            names = {n.id for t in node.targets for n in walk(t) if isinstance(n, ast.Name)}
            made = [n for n in inner(function, ast.Assign) if isinstance(n, ast.Assign) and n is not node]
            if any(
                "loss" in text_of(each.targets[0]).lower()
                and names & {n.id for n in walk(each.value) if isinstance(n, ast.Name)}
                for each in made
            ):
                return True
    return False
