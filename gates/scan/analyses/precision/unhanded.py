"""Calls that hand over an optimizer to have its state saved or loaded, and not the scaler that may go with it."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.precision.keepers import NAMED, is_of_scaler
from gates.scan.analyses.reading.call_sites import calls_of
from gates.scan.analyses.reading.code import broken, calls, functions
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import is_none, text_of
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.program.signatures import parameters
from gates.scan.site import Site

VERBS = {"state_dict": "saved", "load_state_dict": "loaded"}


def unhanded(project: Project, module: Module) -> Iterator[Site]:
    """Yield each call of a function of a file that leaves out the scaler, where the caller has one."""
    for function in functions(module):
        for verb, word in VERBS.items():
            scaler, optimizer = _asked(function, verb, "scaler"), _asked(function, verb, "optim")
            if scaler is None or optimizer is None:
                continue
            for call, there in calls_of(function, project):
                bound = project.scope_of(function, module).owner is not None
                given = argument(call, function, optimizer, bound=bound)
                if given is None or is_none(given) or _may_hand(call, function, scaler, bound=bound):
                    continue
                if _has_scaler(project.scope_at(call, there), verb):
                    said = f"the optimizer is handed over to be {word}, its scaler is not"
                    yield broken(there, call, said, (f"{scaler} is a parameter of", module, function))


def _asked(function: Function, verb: str, named: str) -> str | None:
    """Return the parameter of a function that is left out by default, or handed over, and that is asked for a state."""
    names = [name for name in parameters(function) if named in name.lower()]
    held = {text_of(c.func.value) for c in calls(function) if isinstance(c.func, ast.Attribute) and c.func.attr == verb}
    return next((name for name in names if name in held), None)


def _may_hand(call: ast.Call, function: Function, scaler: str, *, bound: bool) -> bool:
    """Return whether a call hands over a scaler, or may do so, or must where there is no default."""
    is_open = any(k.arg is None for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args)
    if parameters(function)[scaler] is None or is_open:
        return True
    return argument(call, function, scaler, bound=bound) is not None


def _has_scaler(scope: Scope, verb: str) -> bool:
    """Return whether a scaler is at hand in a function, or at the top of a file, that does not deal with its state."""
    body = scope.function if isinstance(scope.function, ast.FunctionDef | ast.AsyncFunctionDef) else None
    around = body or scope.module.tree
    asked = (call for call in calls(around) if tail_of(call.func) == verb)
    bound = [b for name, each in scope.bindings.items() if NAMED.search(name) for b in each if b.kind == "value"]
    made = any(isinstance(binding.node, ast.Call | ast.IfExp) for binding in bound)
    return made and not any(is_of_scaler(call, scope) for call in asked)
