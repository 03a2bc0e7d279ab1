"""Forward passes of a scaled loss that stand outside of the autocast block."""

import ast
import re
from collections.abc import Iterable, Iterator

from gates.scan.analyses._code import broken, calls, functions, inner
from gates.scan.analyses._evaluating import NO_GRAD
from gates.scan.analyses._flow import Source, is_forward, sources
from gates.scan.analyses._precision import around, context_of, entered_by
from gates.scan.module import Function, Module, tail_of
from gates.scan.project import ClassInfo, Project
from gates.scan.scope import Scope
from gates.scan.site import Site

WORDS = ("autocast*",)
Body = Function | ast.Lambda | ast.Module
CAST = re.compile(r"(?i)cast|amp|ctx|context|precision")


def look(project: Project) -> Iterator[Site]:
    """Yield each model call, outside of autocast, that a scaled loss comes from, where its code uses autocast."""
    seen: set[ast.AST] = set()
    for module in project.modules.values():
        for function in (*functions(module), module.tree) if "scale" in module.calls else ():
            scope = project.scope_of(function, module)
            for call in calls(function):
                if _is_scale(call):
                    for found in _outside(project, call, scope):
                        forward, there = found
                        if forward not in seen:
                            seen.add(forward)
                            yield broken(there, forward, f"{ast.unparse(forward)} runs outside of autocast")


def _outside(project: Project, call: ast.Call, scope: Scope) -> Iterator[tuple[ast.Call, Module]]:
    found = sources(project, call.args[0], scope, call.lineno)
    if not _use_autocast(project, found):
        return
    for source in found:
        for node in ast.walk(source.node):
            if isinstance(node, ast.Call) and is_forward(project, source.module, node):
                if not _runs(project, scope, source):
                    continue
                chain = ((node, source.module), *source.through)
                if not any(_covered(project, there, each) for each, there in chain) and not _own(project, source, node):
                    yield _place(project, source, node)


def _place(project: Project, source: Source, node: ast.Call) -> tuple[ast.Call, Module]:
    """Return what stands beside an autocast block: a forward pass, or the call by which a helper runs it."""
    for call, module in ((node, source.module), *reversed(source.through)):
        body = _body(project, call, module)
        if isinstance(body, ast.Lambda):
            continue
        if any(context_of(i, project.scope_of(body, module)) for w in inner(body, ast.With) for i in w.items):  # type: ignore[attr-defined]  # a with
            return call, module
    return node, source.module


def _runs(project: Project, scope: Scope, source: Source) -> bool:
    """Return whether an object whose method scales a loss runs a method, rather than one that takes its place."""
    owner, other = scope.owner, source.scope.owner
    if owner is None or other is None or owner is other:
        return True
    if other in project.ancestors_of(owner):
        return _is_own(project, owner, source.scope.function)
    return owner not in project.ancestors_of(other) or _is_own(project, other, scope.function)


def _is_own(project: Project, owner: ClassInfo, function: object) -> bool:
    """Return whether the objects of a class have a method as it is, and no other in its place."""
    found = project.method(owner, getattr(function, "name", ""))
    return found is None or found[0] is function


def _use_autocast(project: Project, found: Iterable[Source]) -> bool:
    """Return whether any function that a loss comes from enters autocast."""
    bodies = {source.body: source.scope for source in found}
    bodies |= {
        b: project.scope_of(b, m) for s in found for c, m in s.through if (b := _body(project, c, m)) is not None
    }
    return any(
        context_of(item, scope) is not None
        for body, scope in bodies.items()
        for node in inner(body, ast.With)
        if isinstance(node, ast.With)
        for item in node.items
    )


def _body(project: Project, call: ast.Call, module: Module) -> Body:
    return project.scope_at(call, module).function or module.tree


def _is_scale(call: ast.Call) -> bool:
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr == "scale" and bool(call.args)
    return is_method and isinstance(call.func, ast.Attribute) and "scaler" in tail_of(call.func.value).lower()


def _own(project: Project, source: Source, call: ast.Call) -> bool:
    """Return whether a model enters autocast by itself, in its forward method."""
    owner = source.scope.class_of(call.func)
    if owner is None:
        return _some_model_does(project)
    found = project.method(owner, "forward")
    return found is not None and any(True for _ in entered_by(project, found[0], found[1]))


def _some_model_does(project: Project) -> bool:
    """Return whether the forward pass of some model of the program enters autocast by itself."""
    return any(
        info.methods.get("forward") is not None
        and any(True for _ in entered_by(project, info.methods["forward"], info.scope.module))
        for info in project.classes.values()
    )


def _covered(project: Project, module: Module, node: ast.AST) -> bool:
    if any(True for _ in around(project, module, node)):
        return True
    for outer in module.ancestors(node):
        if isinstance(outer, ast.With | ast.AsyncWith):
            texts = [ast.unparse(item.context_expr) for item in outer.items]
            if any(CAST.search(text) or NO_GRAD.search(text) for text in texts):
                return True
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
            return any(CAST.search(text) or NO_GRAD.search(text) for text in map(ast.unparse, outer.decorator_list))
    return False
