"""Calls that hand values to a tracker of experiments: by what the object is called, made of, or listed as."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.reading.code import class_of, function_of, tail_text
from gates.scan.analyses.training.frameworks import CALLED, MAKERS
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

OBJECT = re.compile(r"(?i)wandb|tracker|mlflow|tensorboard|\brun\b|writer|comet|neptune|aim_run|clearml|swanlab")
PACKAGES = re.compile(
    r"(wandb|mlflow|comet_ml|neptune|aim|clearml|tensorboardX|torch\.utils\.tensorboard|swanlab|trackio|dvclive|"
    r"visdom|tensorboard_logger|accelerate\.tracking)\."
)
MEMBERS = re.compile(r"(?i)(track|logg|report|write|sink|publish)(er|ing|or)?s$|sinks$|backends$|destinations$")
SENDS = re.compile(
    r"^(log_(metrics?|params?|artifacts?|scalars?|hparams|hyperparams|images?|table|text|figure)|"
    r"add_(scalars?|histogram|images?|text|hparams|figure|graph)|(put|report|write)_scalars?|logkvs?(_mean)?)$"
)
TELLS = re.compile(
    r"^_*(log|track|record|report|write|emit|send|publish|push|scalars?|metrics?|__call__|update|on_\w+)(_\w+)?$"
)
OWN = re.compile(r"(?i)wandb|mlflow|tensorboard|comet|neptune|tracker|tracking")
LOGS = re.compile(r"^(log(_\w+)?|track|record)$")
RUNS = re.compile(r"(?i)(_run|(^|[ _])experiment)$")
STEPS = {"step", "global_step"}
FRAMED = {"log", "log_dict"}  # of the objects of frameworks, which hand it on to their trackers
MODULES = {"pl_module", "lightning_module"}
QUIET = {"finish", "close", "end", "teardown", "get"}


def is_tracking(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call tells a tracker something."""
    func = call.func
    scope = project.scope_at(call, module)
    if PACKAGES.match(scope.dotted(func) or "") and tail_of(func) not in QUIET and not tail_of(func)[:1].isupper():
        return True
    if not isinstance(func, ast.Attribute) or func.attr in QUIET:
        return False
    if _is_of_step(call, func) or _is_framework(project, scope, func):
        return True
    if any(isinstance(n, ast.Call) for n in walk(func.value)):
        return False
    if SENDS.match(func.attr) or OBJECT.search(tail_text(func.value)):
        return True
    if PACKAGES.match(project.types.of(func.value, scope) or ""):
        return True
    made = scope.through(func.value)
    if made is not None and isinstance(made[0], ast.Call) and PACKAGES.match(made[1].dotted(made[0].func) or ""):
        return True
    if RUNS.search(tail_text(func.value)) and LOGS.match(func.attr) and call.args:
        return True
    return TELLS.match(func.attr) is not None and (_is_of_many(module, func.value) or _is_own(module, call))


def _is_of_step(call: ast.Call, func: ast.Attribute) -> bool:
    """Return whether a call logs values by their names, or for a step, as no log of messages is written."""
    first = call.args[0] if call.args else None
    named = isinstance(first, ast.Dict) or (isinstance(first, ast.Call) and tail_of(first.func) == "dict")
    return LOGS.match(func.attr) is not None and (named or any(k.arg in STEPS for k in call.keywords))


def _is_framework(project: Project, scope: Scope, func: ast.Attribute) -> bool:
    """Return whether a method hands values to the trackers of a framework: of Accelerate, Fabric or Lightning."""
    if func.attr not in FRAMED:
        return False
    if _is_called_framework(func) or project.types.of(func.value, scope) in MAKERS:
        return True
    info = scope.class_of(func.value)
    family = project.order_of(info) if info is not None else ()
    return any(tail_of(base) == "LightningModule" for each in family for base in each.node.bases)


def _is_called_framework(func: ast.Attribute) -> bool:
    return func.attr in FRAMED and tail_of(func.value).lstrip("_") in CALLED.keys() | MODULES


def is_tracker_method(func: ast.expr) -> bool:
    """Return whether what is handed on to be called is a method of a tracker, by what that is called."""
    if not isinstance(func, ast.Attribute) or func.attr in QUIET:
        return False
    if _is_called_framework(func):
        return True
    return SENDS.match(func.attr) is not None or OBJECT.search(tail_text(func.value)) is not None


def _is_of_many(module: Module, value: ast.expr) -> bool:
    """Return whether a name goes over trackers: `for sink in self.sinks`."""
    loops = (a for a in module.ancestors(value) if isinstance(a, ast.For | ast.AsyncFor))
    over = (loop.iter for loop in loops if tail_of(loop.target) == tail_of(value))
    return any(MEMBERS.search(name) for iterated in over for name in _names(iterated))


def _names(node: ast.expr) -> Iterator[str]:
    yield from (tail_of(n) for n in walk(node) if isinstance(n, ast.Name | ast.Attribute))


def _is_own(module: Module, call: ast.Call) -> bool:
    """Return whether a method of a tracker's class hands something on to what its object holds."""
    owner, function = class_of(call, module), function_of(call, module)
    if owner is None or function is None or not OWN.search(owner.name) or not TELLS.match(function.name):
        return False
    held = call.func.value if isinstance(call.func, ast.Attribute) else None
    return isinstance(held, ast.Attribute) and tail_of(held.value) == "self"
