"""Whether an evaluation runs without gradients, by its own or by its callers' doing."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.evaluation.evaluating import Evaluation
from gates.scan.analyses.evaluation.rested import callers
from gates.scan.analyses.evaluation.switches import SETS
from gates.scan.analyses.reading.code import callee, function_of
from gates.scan.analyses.training.forwards import CAREFUL, NO_GRAD
from gates.scan.program.module import Module, is_property, tail_of
from gates.scan.program.nodes import inner, text_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

DEPTH = 3
SLOPES = re.compile(r"\bgrad\(|enable_grad(?!ed)")
LASTING = re.compile(r"set_grad_enabled|_disable_grad|without_grad|nograd")


def without_gradients(project: Project, found: Evaluation) -> bool:
    """Return whether an evaluation runs without gradients, or calls what may turn them off by itself."""
    func, target = found.forward.func, callee(project, found.module, found.forward)
    if target is None and isinstance(func, ast.Attribute) and func.attr in CAREFUL:
        return True
    if target is not None and found.loop is found.forward and NO_GRAD.search(text_of(target)):
        return True
    if SLOPES.search(text_of(target)) if target is not None else any(project.once(_of_slopes)):
        return True
    return _covered(project, found.module, found.forward, DEPTH)


def _of_slopes(project: Project) -> Iterator[ast.AST]:
    """Yield the models of a program that need a graph to run: a force is the slope of an energy."""
    for info in project.classes.values():
        forward = info.methods.get("forward")
        if forward is not None and any(SLOPES.search(text_of(m)) for m in info.methods.values()):
            yield forward


def _covered(project: Project, module: Module, node: ast.AST, depth: int) -> bool:
    for around in module.ancestors(node):
        if isinstance(around, ast.With | ast.AsyncWith) and (
            any(_is_off(project, module, i.context_expr) for i in around.items)
        ):
            return True
        decorators = around.decorator_list if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef) else []
        if any(_is_off(project, module, d) for d in decorators):
            return True
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
            alone = (c for c in inner(around, ast.Call) if isinstance(module.parents.get(c), ast.Expr))
            if any(isinstance(c, ast.Call) and LASTING.search(tail_of(c.func)) and not _is_on(c) for c in alone):
                return True  # torch.set_grad_enabled(False)
            if _is_entered_off(project, module, around):
                return True
    return depth > 0 and _by_all_callers(project, module, node, depth)


def _is_entered_off(project: Project, module: Module, around: ast.AST) -> bool:
    """Return whether code enters what turns gradients off by a stack of contexts: `stack.enter_context(no_grad())`."""
    made = (c for c in inner(around, ast.Call) if isinstance(c, ast.Call) and tail_of(c.func) == "enter_context")
    return any(_is_off(project, module, given) for call in made for given in call.args)


def _is_off(project: Project, module: Module, context: ast.expr) -> bool:
    """Return whether a context or a decorator turns gradients off, or may well do so: one that is made elsewhere."""
    if NO_GRAD.search(text_of(context)):
        return not _is_on(context)
    if isinstance(context, ast.Name | ast.Attribute):
        scope = project.scope_at(context, module)
        own = project.functions.get(scope.dotted(context) or "")
        made = own[0] if own is not None else _made_by(project, context, scope)
        if made is not None:
            return NO_GRAD.search(text_of(made)) is not None
        text = text_of(context)
        return isinstance(module.parents.get(context), ast.withitem) and "autocast" not in text and "ctx" not in text
    if not isinstance(context, ast.Call):
        return False
    target = callee(project, module, context)
    if target is not None:
        return NO_GRAD.search(text_of(target)) is not None
    info = project.classes.get(project.types.of(context, project.scope_at(context, module)) or "")
    if info is None:
        return SETS.search(text_of(context.func)) is not None
    return NO_GRAD.search(text_of(info.node)) is not None


def _made_by(project: Project, context: ast.expr, scope: Scope) -> ast.AST | None:
    """Return what makes a context that is kept under a name: the property that an attribute is, or one call."""
    owner = scope.class_of(context.value) if isinstance(context, ast.Attribute) else None
    found = project.method(owner, tail_of(context)) if owner is not None else None
    if found is not None:
        return found[0] if is_property(found[0]) else None
    behind = scope.through(context)
    return behind[0] if behind is not None and isinstance(behind[0], ast.Call) else None


def _is_on(context: ast.expr) -> bool:
    """Return whether a switch of gradients is told to leave them on: `set_grad_enabled(True)`."""
    if not isinstance(context, ast.Call):
        return False
    given = [*context.args, *(k.value for k in context.keywords)][:1]
    value = given[0].value if given and isinstance(given[0], ast.Constant) else None
    return value is (tail_of(context.func) != "inference_mode") if isinstance(value, bool) else False


def _by_all_callers(project: Project, module: Module, node: ast.AST, depth: int) -> bool:
    function = function_of(node, module)
    sites = callers(project, function) if function else []
    return bool(sites) and all(_covered(project, there, call, depth - 1) for call, there in sites)
