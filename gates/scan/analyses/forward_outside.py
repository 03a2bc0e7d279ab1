"""Forward passes of a scaled loss that stand outside of the autocast block."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses._code import broken, callee, calls, functions, inner, is_model_call
from gates.scan.analyses._precision import context_of
from gates.scan.module import Function, Module, tail_of
from gates.scan.project import Project
from gates.scan.site import Site
from gates.scan.types import argument

WORDS = ("autocast",)
Body = Function | ast.Module
CAST = re.compile(r"(?i)cast|amp|ctx|context|precision")


def look(project: Project) -> Iterator[Site]:
    """Yield each model call, outside of autocast, that a scaled loss comes from, where its function uses autocast."""
    for module in project.modules.values():
        if not any("cast" in tail for tail in module.calls):
            continue
        if _decorated(project):
            return
        for function in (*functions(module), module.tree):
            if _uses_autocast(project, module, function):
                yield from _outside(project, module, function)


def _decorated(project: Project) -> bool:
    """Return whether some forward pass of the program enters autocast by itself."""
    for module in project.modules.values():
        for node in (*functions(module),):
            decorators = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
            if any("autocast" in tail_of(d) or "amp" in tail_of(d) for d in decorators):
                return True
            if node.name == "forward" and any("autocast" in tail_of(c.func) for c in calls(node)):
                return True
    return False


def _uses_autocast(project: Project, module: Module, function: Body) -> bool:
    scope = project.scope_of(function, module)
    return any(
        context_of(item, scope) is not None
        for node in inner(function, ast.With)
        if isinstance(node, ast.With)
        for item in node.items
    )


def _outside(project: Project, module: Module, function: Body) -> Iterator[Site]:
    made = _made_by(function)
    seen: set[ast.AST] = set()
    for loss, line in _scaled(project, module, function, 2):
        for source in _sources(loss, made, line, 4):
            for forward in (n for n in ast.walk(source) if isinstance(n, ast.Call) and _is_forward(n)):
                if forward not in seen and not _covered(project, module, forward):
                    seen.add(forward)
                    yield broken(module, forward, f"{ast.unparse(forward)} runs outside of autocast")


def _scaled(project: Project, module: Module, function: Body, depth: int) -> Iterator[tuple[ast.expr, int]]:
    """Yield the expressions that a function scales, or hands to one that does."""
    for call in calls(function):
        if _is_scale(call):
            yield call.args[0], call.lineno
            continue
        target = callee(project, module, call) if depth else None
        if target is None or target is function:
            continue
        there = project.scope_of(target, module)
        names = {loss.id for loss, _ in _scaled(project, there.module, target, depth - 1) if isinstance(loss, ast.Name)}
        for name in sorted(names):
            value = argument(call, target, name, bound=there.owner is not None)
            if value is not None:
                yield value, call.lineno


def _is_scale(call: ast.Call) -> bool:
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr == "scale" and bool(call.args)
    return is_method and isinstance(call.func, ast.Attribute) and "scaler" in tail_of(call.func.value).lower()


def _is_forward(call: ast.Call) -> bool:
    return (is_model_call(call) and not isinstance(call.func, ast.Attribute)) or (
        is_model_call(call) and isinstance(call.func, ast.Attribute) and tail_of(call.func.value) == "self"
    )


def _made_by(function: Body) -> dict[str, list[ast.Assign | ast.AugAssign]]:
    found: dict[str, list[ast.Assign | ast.AugAssign]] = {}
    for node in inner(function, ast.Assign, ast.AugAssign):
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        found.setdefault(name.id, []).append(node)
    return found


def _sources(
    node: ast.expr, made: dict[str, list[ast.Assign | ast.AugAssign]], line: int, hops: int
) -> Iterator[ast.expr]:
    """Yield the expressions that a loss comes from: the nearest binding of each name before it."""
    yield node
    if not hops:
        return
    for name in ast.walk(node):
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load):
            before = [n for n in made.get(name.id, []) if n.lineno < line]
            if before:
                last = max(before, key=lambda n: n.lineno)
                yield from _sources(last.value, made, last.lineno, hops - 1)


def _covered(project: Project, module: Module, node: ast.AST) -> bool:
    for around in module.ancestors(node):
        if isinstance(around, ast.With | ast.AsyncWith):
            for item in around.items:
                if CAST.search(ast.unparse(item.context_expr)) or context_of(item, project.scope_at(around, module)):
                    return True
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            return any(CAST.search(ast.unparse(d)) for d in around.decorator_list)
    return False
