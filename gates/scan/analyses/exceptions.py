"""Exceptions of a training step or of a tracker that nobody hears of."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.precision.precision import is_step
from gates.scan.analyses.reading.code import broken, callee, calls, function_of, module_of, nodes, tail_text
from gates.scan.analyses.reading.flow import passed
from gates.scan.analyses.training.trackers import QUIET, is_tracker_method, is_tracking
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.site import Site
from gates.scan.ways.hooks import hooks_of

WORDS = ("except", "suppress", "__exit__")
WIDE = {"Exception", "BaseException", "RuntimeError"}
RAISED = {"AssertionError", "ValueError"}  # by the scaler, where it is used wrongly
SCALERS = re.compile(r"(?i)scaler")
MUTE = {"debug"}  # of a logger: what is said there is not shown
TIDY = {"empty_cache", "collect", "zero_grad", "sleep"}
DEPTH = 2


def look(project: Project) -> Iterator[Site]:
    """Yield each wide `except` that says nothing, around calls of a scaler or a tracker."""
    for module in project.modules.values():
        for node in nodes(module, ast.Try):
            for handler in node.handlers if isinstance(node, ast.Try) else ():
                about = _unheard(project, module, handler, node.body) if isinstance(node, ast.Try) else None
                if about:
                    yield broken(module, handler, f"what goes wrong in {about} is not told to anybody")
            yield from _dropped(project, module, node) if isinstance(node, ast.Try) else ()
        for call in module.calls.get("suppress", []):
            around = module.parents.get(module.parents.get(call, call))
            wide = any(tail_of(arg) in WIDE for arg in call.args)
            step = not wide and any(tail_of(arg) in RAISED for arg in call.args)
            about = _tried(project, module, around.body, step) if wide | step and isinstance(around, ast.With) else None
            if about:
                yield broken(module, call, f"what goes wrong in {about} is not told to anybody")
        for node in nodes(module, ast.With):
            for item in node.items if isinstance(node, ast.With) else ():
                found = _mute_exit(project, module, item.context_expr)
                about = _tried(project, module, node.body) if found and isinstance(node, ast.With) else None
                if about and found:
                    yield broken(found[1], found[0], f"what goes wrong in {about} is not told to anybody")


def _dropped(project: Project, module: Module, node: ast.Try) -> Iterator[Site]:
    """Yield the end of a `finally` that leaves it, by which an exception is dropped."""
    last = node.finalbody[-1] if node.finalbody and not node.handlers else None
    if isinstance(last, ast.Return | ast.Break | ast.Continue) and (about := _tried(project, module, node.body)):
        yield broken(module, last, f"what goes wrong in {about} is not told to anybody")


def _mute_exit(project: Project, module: Module, context: ast.expr) -> tuple[ast.Return, Module] | None:
    """Return where a context manager of the program keeps every exception to itself, and says nothing."""
    info = project.classes.get(project.types.of(context, project.scope_at(context, module)) or "")
    method = project.method(info, "__exit__") if info is not None else None
    last = method[0].body[-1] if method is not None else None
    alone = method is not None and all(isinstance(s, ast.Return | ast.Pass) for s in method[0].body)
    is_true = isinstance(last, ast.Return) and isinstance(last.value, ast.Constant) and last.value.value is True
    return (last, method[1]) if alone and is_true and method is not None and isinstance(last, ast.Return) else None


def _unheard(project: Project, module: Module, handler: ast.ExceptHandler, body: list[ast.stmt]) -> str | None:
    """Return the call that a handler keeps all exceptions of to itself; of a step, what is said in a whisper, too."""
    if _is_wide(handler, WIDE) and _is_silent(handler, module):
        return _tried(project, module, body)
    silent = _is_wide(handler, WIDE | RAISED) and _is_silent(handler, module, whispers=True)
    return _tried(project, module, body, step=True) if silent else None


def _tried(project: Project, module: Module, body: list[ast.stmt], step: bool = False) -> str | None:
    """Return the call of a step, or of a tracker, in what is tried, itself or in a function that runs."""
    if any(isinstance(statement, ast.Import | ast.ImportFrom) for statement in body):
        return None
    for statement in body:
        for call in calls(statement):
            if _is_about(project, module, call, step) or _runs(project, module, call, DEPTH):
                return f"{text_of(call.func)}()"
            if not step and any(is_tracking(project, there, c) for c, there in _run_by(project, module, call)):
                return f"{text_of(call.func)}()"
            if not step and any(is_tracker_method(func) for func, _ in _handed(project, module, call)):
                return f"{text_of(call.func)}()"
            handed = next((arg for arg in call.args if _is_step(project, module, arg)), None)
            if handed is not None:
                return f"{text_of(handed)}()"
    return None


def _runs(project: Project, module: Module, call: ast.Call, depth: int) -> bool:
    """Return whether the function that a call runs steps an optimizer or a scaler."""
    target = callee(project, module, call)
    hooks = project.once(hooks_of)[0].run_by.get(call, ()) if target is None else ()
    for hook in hooks:
        there = module_of(project, hook, module)
        if any(_is_step(project, there, c.func) for c in calls(hook)):
            return True
    if target is None:
        handed = any(_is_step(project, there, func) for func, there in _handed(project, module, call))
        return handed or any(
            _is_step(project, there, c.func) for function, there in _decorated(project, module, call)
            for c in inner(function, ast.Call) if isinstance(c, ast.Call)
        )  # fmt: skip
    there = module_of(project, target, module)
    return any(
        _is_step(project, there, c.func) or (depth > 1 and _runs(project, there, c, depth - 1))
        for c in inner(target, ast.Call) if isinstance(c, ast.Call)
    )  # fmt: skip


def _run_by(project: Project, module: Module, call: ast.Call) -> Iterator[tuple[ast.Call, Module]]:
    """Yield the calls in the function that a call runs, and in those that are decorated with the one around it."""
    target = callee(project, module, call)
    if target is not None:
        there = module_of(project, target, module)
        yield from ((c, there) for c in calls(target) if not any(isinstance(a, ast.Try) for a in there.ancestors(c)))
    for function, where in _decorated(project, module, call) if target is None else ():
        yield from ((c, where) for c in calls(function))


def _handed(project: Project, module: Module, call: ast.Call) -> Iterator[tuple[ast.expr, Module]]:
    """Yield the methods that callers hand to a function which calls its parameter."""
    found = project.scope_at(call, module).lookup(call.func.id) if isinstance(call.func, ast.Name) else None
    if found is None or not isinstance(call.func, ast.Name) or any(b.kind != "parameter" for b in found[1]):
        return
    for value, scope, _ in passed(project, call.func.id, found[0]):
        yield value, scope.module


def _decorated(project: Project, module: Module, call: ast.Call) -> Iterator[tuple[Function, Module]]:
    """Yield the functions that a decorator is written at, where a call in it runs what it decorates."""
    found = project.scope_at(call, module).lookup(call.func.id) if isinstance(call.func, ast.Name) else None
    decorator = found[0].function if found and all(b.kind == "parameter" for b in found[1]) else None
    for each in project.modules.values() if isinstance(decorator, ast.FunctionDef) else ():
        for function in nodes(each, ast.FunctionDef):
            named = [tail_of(d) for d in function.decorator_list] if isinstance(function, ast.FunctionDef) else []
            if isinstance(decorator, ast.FunctionDef) and decorator.name in named:
                yield function, each  # type: ignore[misc]  # it has decorators


def _is_step(project: Project, module: Module, func: ast.expr) -> bool:
    """Return whether a method is one of a training step: a backward pass, or a step of an optimizer or a scaler."""
    if not isinstance(func, ast.Attribute):
        return False
    return func.attr in {"backward", "unscale_"} or is_step(project, module, func)


def _is_about(project: Project, module: Module, call: ast.Call, step: bool) -> bool:
    """Return whether a call is one of a training step, or of a tracker unless steps alone are asked for."""
    if not step and is_tracking(project, module, call):
        return True
    if not isinstance(call.func, ast.Attribute) or any(isinstance(n, ast.Call) for n in walk(call.func.value)):
        return False
    if _is_step(project, module, call.func):
        return True
    return SCALERS.search(tail_text(call.func.value)) is not None and call.func.attr not in QUIET


def _is_wide(handler: ast.ExceptHandler, wide: set[str]) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(tail_of(kind) in wide for kind in kinds)


def _is_silent(handler: ast.ExceptHandler, module: Module, *, whispers: bool = False) -> bool:
    """Return whether nothing in a handler says, keeps or passes on what happened."""
    for statement in handler.body:
        if isinstance(statement, ast.Pass | ast.Continue | ast.Break):
            continue
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        if isinstance(statement, ast.Return) and (statement.value is None or isinstance(statement.value, ast.Constant)):
            continue
        if isinstance(statement, ast.Assign) and _is_forgotten(statement, handler.name, module):
            continue
        is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        if is_call and _is_mute(statement.value, handler.name, whispers):  # type: ignore[attr-defined]  # it is an ast.Expr
            continue
        return False
    return True


def _is_forgotten(statement: ast.Assign, caught: str | None, module: Module) -> bool:
    """Return whether a constant, or what was caught, is kept under a name that the function never reads."""
    target, body = statement.targets[0], function_of(statement, module)
    is_it = isinstance(statement.value, ast.Name) and statement.value.id == caught
    if not isinstance(target, ast.Name) or not (isinstance(statement.value, ast.Constant) or is_it) or body is None:
        return False
    outer = [name for n in inner(body, ast.Global, ast.Nonlocal) for name in n.names]  # type: ignore[attr-defined]
    if target.id in outer:
        return False
    return not any(isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load) for n in walk(body))


def _is_mute(call: ast.Call, name: str | None, whispers: bool) -> bool:
    """Return whether a call says nothing of what went wrong: it tidies up, or says at most that something did."""
    tail = tail_of(call.func)
    if tail in TIDY:
        return True
    told = any(isinstance(n, ast.Name) and n.id == name for arg in call.args for n in walk(arg))
    return tail in MUTE and (whispers or (not told and not call.keywords))
