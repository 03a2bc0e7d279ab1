"""Checkpoints that hold the optimizer and not its scaler."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses._code import broken, calls, class_of, functions, inner
from gates.scan.analyses._precision import scalers
from gates.scan.module import Module, tail_of
from gates.scan.project import Project
from gates.scan.site import Site

WORDS = ("state_dict",)
OPTIMIZER = re.compile(r"(?i)opt")


def look(project: Project) -> Iterator[Site]:
    """Yield each place that saves or loads an optimizer's state, and nothing of the scaler beside it."""
    for module in project.modules.values():
        known = [call for call, _ in scalers(project, module)]
        if not known and not _named(module):
            continue
        for body in (*functions(module), module.tree):
            for verb in ("state_dict", "load_state_dict"):
                found = [c for c in calls(body) if tail_of(c.func) == verb and isinstance(c.func, ast.Attribute)]
                optimizers = [c for c in found if OPTIMIZER.search(_owner(c)) and _is_stored(c, module, verb)]
                if (
                    optimizers
                    and len({_owner(c) for c in found}) > 1
                    and _has_scaler(body, known, module)
                    and not any(_is_scaler(c) for c in found)
                    and not _elsewhere(module, body, verb)
                ):
                    word = "saved" if verb == "state_dict" else "loaded"
                    yield broken(module, optimizers[-1], f"the optimizer is {word}, its scaler is not")


def _owner(call: ast.Call) -> str:
    return tail_of(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def _is_scaler(call: ast.Call) -> bool:
    return "scaler" in _owner(call).lower()


def _is_stored(call: ast.Call, module: Module, verb: str) -> bool:
    """Return whether a state is put into a dictionary or a file."""
    if verb == "load_state_dict":
        return True
    return any(isinstance(a, ast.Dict | ast.Call | ast.Assign | ast.keyword) for a in list(module.ancestors(call))[:2])


def _has_scaler(body: ast.AST, known: list[ast.Call], module: Module) -> bool:
    """Return whether a scaler is made in a body, or is an attribute of the class that it is a method of."""
    if any(call in known for call in inner(body, ast.Call)):
        return True
    owner = class_of(body, module) if isinstance(body, ast.FunctionDef | ast.AsyncFunctionDef) else None
    if owner is None:
        return _is_parameter(body)
    if _holds(owner):
        return True
    inside = {id(node) for node in ast.walk(owner)}
    return any(id(call) in inside and isinstance(_target(call, module), ast.Attribute) for call in known)


def _named(module: Module) -> bool:
    """Return whether a file speaks of a scaler that is made elsewhere."""
    return any("GradScaler" in name for name in module.aliases.values()) or any(
        "scaler" in tail for tail in _tails(module)
    )


def _tails(module: Module) -> Iterator[str]:
    for node in module.live.get(ast.Attribute, []):
        if isinstance(node, ast.Attribute):
            yield node.attr


def _holds(owner: ast.ClassDef) -> bool:
    """Return whether a class keeps a scaler that it is handed: a field, or an attribute set to an argument."""
    for node in ast.walk(owner):
        if (
            isinstance(node, ast.AnnAssign)
            and "scaler" in tail_of(node.target)
            and "GradScaler" in ast.unparse(node.annotation)
        ):
            return True
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Name)
            and "scaler" in node.value.id
            and any(isinstance(t, ast.Attribute) and "scaler" in t.attr for t in node.targets)
        ):
            return True
    return False


def _is_parameter(body: ast.AST) -> bool:
    if not isinstance(body, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return any("scaler" in arg.arg.lower() for arg in (*body.args.args, *body.args.kwonlyargs))


def _target(call: ast.Call, module: Module) -> ast.expr | None:
    parent = module.parents.get(call)
    if isinstance(parent, ast.IfExp):
        parent = module.parents.get(parent)
    return parent.targets[0] if isinstance(parent, ast.Assign) else None


def _elsewhere(module: Module, body: ast.AST, verb: str) -> bool:
    """Return whether the scaler's state is dealt with by another function that this one's file has for it."""
    owner = class_of(body, module) if isinstance(body, ast.FunctionDef | ast.AsyncFunctionDef) else None
    beside = owner or module.tree
    return any(
        isinstance(n, ast.Call) and tail_of(n.func) == verb and _is_scaler(n) for n in ast.walk(beside) if n is not body
    )
