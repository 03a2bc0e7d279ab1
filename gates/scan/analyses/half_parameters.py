"""Parameters in float16 that a scaler is to train."""

import ast
from collections.abc import Iterator

from gates.scan.analyses._code import broken, calls, constant, function_of, keyword
from gates.scan.analyses._flow import Source, sources, spine
from gates.scan.analyses._precision import HALF, scalers, type_named
from gates.scan.known import OPTIMIZER
from gates.scan.module import Module, tail_of
from gates.scan.nodes import text_of, walk
from gates.scan.project import Project
from gates.scan.site import Site

WORDS = ("half", "float16")
HELPERS = {"fit", "setup", "prepare", "train"}


def look(project: Project) -> Iterator[Site]:
    """Yield each `model.half()` before an optimizer of the model's parameters, beside a scaler or mixed precision."""
    said: set[ast.AST] = set()
    for module in project.modules.values():
        for call in _halvings(project, module):
            body = function_of(call, module) or module.tree
            if not _mixed(project, module, body):
                continue
            if _handed_to_trainer(call, module) or _optimized(call, body, module) or _is_default(call):
                said.add(call)
                yield broken(module, call, f"{ast.unparse(call)}: a scaler cannot unscale gradients in float16")
    for module in project.modules.values():
        if any(True for _ in scalers(project, module)):
            for call, there in _built(project, module):
                if call not in said:
                    said.add(call)
                    yield broken(there, call, f"{ast.unparse(call)}: a scaler cannot unscale gradients in float16")


def _is_default(call: ast.Call) -> bool:
    return tail_of(call.func) == "set_default_dtype"


def _built(project: Project, module: Module) -> Iterator[tuple[ast.Call, Module]]:
    """Yield the halvings, wherever they stand, of the models whose parameters a file's optimizers are made for."""
    for name, found in module.calls.items():
        for call in found if name[:1].isupper() else ():
            scope = project.scope_at(call, module)
            if call.args and project.types.is_a(scope.dotted(call.func), OPTIMIZER):
                for source in sources(project, call.args[0], scope, call.lineno):
                    yield from _halved_in(project, source)


def _halved_in(project: Project, source: Source) -> Iterator[tuple[ast.Call, Module]]:
    """Yield the halvings of the models whose parameters an expression asks for."""
    for node in walk(source.node):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "parameters"):
            continue
        for each in spine(project, node.func.value, source.scope, node.lineno):
            if isinstance(each.node, ast.Call) and _is_halving(project, each.module, each.node):
                yield each.node, each.module


def _is_halving(project: Project, module: Module, call: ast.Call) -> bool:
    return any(call is other for other in _halvings(project, module))


def _halvings(project: Project, module: Module) -> Iterator[ast.Call]:
    for call in (
        *module.calls.get("half", []),
        *module.calls.get("to", []),
        *module.calls.get("set_default_dtype", []),
    ):
        if not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr == "half":
            if not call.args:
                yield call
            continue
        given = [*call.args, *([v] if (v := keyword(call, "dtype")) is not None else [])]
        if any(type_named(arg, project.scope_at(call, module)) == HALF for arg in given):
            yield call


def _mixed(project: Project, module: Module, body: ast.AST) -> bool:
    """Return whether a scaler, or a trainer in mixed precision, is made in the same function or class."""
    made = {id(call) for call, _ in scalers(project, module)}
    around = body
    if any(isinstance(n, ast.Call) and id(n) in made for n in walk(around)):
        return True
    trainers = [c for c in calls(body) if tail_of(c.func) in {"Trainer", "Fabric", "Accelerator"}]
    told = [constant(keyword(c, "precision") or keyword(c, "mixed_precision")) for c in trainers]
    return any(value in {"16-mixed", "fp16", 16, "16"} for value in told)


def _halved(call: ast.Call, module: Module) -> set[str]:
    """Return the names that a halved model has: that of the object and that of the result."""
    found: set[str] = set()
    node: ast.expr = call
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    if isinstance(node, ast.Name | ast.Attribute):
        found.add(text_of(node))
    parent: ast.AST | None = module.parents.get(call)
    while isinstance(parent, ast.Attribute | ast.Call):
        parent = module.parents.get(parent)
    if isinstance(parent, ast.Assign):
        found |= {text_of(t) for t in parent.targets}
    elif not isinstance(parent, ast.Expr):
        return set()
    return found


def _optimized(call: ast.Call, body: ast.AST, module: Module) -> bool:
    """Return whether an optimizer gets the parameters of the halved model, in the function that halves it."""
    names = _halved(call, module)
    for other in calls(body):
        if tail_of(other.func) != "parameters" or not isinstance(other.func, ast.Attribute):
            continue
        if text_of(other.func.value) not in names:
            continue
        parent = module.parents.get(other)
        while isinstance(
            parent, ast.Call | ast.List | ast.GeneratorExp | ast.comprehension | ast.keyword
        ) and not _is_optimizer(parent):
            parent = module.parents.get(parent)
        if (
            parent is not None
            and _is_optimizer(parent)
            and (other.lineno >= call.lineno or _before_training(call, body))
        ):
            return True
    return False


def _is_optimizer(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and tail_of(node.func)[:1].isupper()
        and tail_of(node.func) not in {"Sequential", "Linear"}
    )


def _before_training(call: ast.Call, body: ast.AST) -> bool:
    """Return whether backward passes come after the halving."""
    return any(tail_of(c.func) == "backward" and c.lineno > call.lineno for c in calls(body))


def _handed_to_trainer(call: ast.Call, module: Module) -> bool:
    parent = module.parents.get(call)
    return isinstance(parent, ast.Call) and tail_of(parent.func) in HELPERS and call in parent.args
