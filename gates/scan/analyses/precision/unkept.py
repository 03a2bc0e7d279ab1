"""States that a class returns without that of its scaler, which it loads, or loads without that which it returns."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.precision.keepers import is_of_scaler
from gates.scan.analyses.reading.code import broken, calls
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.site import Site


def unkept(project: Project, info: ClassInfo) -> Iterator[Site]:
    """Yield the state that a class returns, where it lacks the key under which the class looks for its scaler's."""
    saving, loading = (info.methods.get(verb) for verb in ("state_dict", "load_state_dict"))
    if saving is None or loading is None:
        return
    scope = project.scope_of(loading, info.scope.module)
    asked = [c for c in calls(loading) if tail_of(c.func) == "load_state_dict" and c.args and is_of_scaler(c, scope)]
    wanted = {key.value for c in asked if isinstance(key := _key(c.args[0]), ast.Constant)}
    kept = {n.value for n in walk(saving) if isinstance(n, ast.Constant)}
    made = [n.value for n in inner(saving, ast.Return) if isinstance(n, ast.Return)]
    is_plain = len(made) == 1 and _is_known(made[0], project.scope_of(saving, info.scope.module))
    if is_plain and wanted and not wanted & kept and not any(is_of_scaler(c, scope) for c in calls(saving)):
        yield broken(info.scope.module, made[0] or saving, "the state lacks the scaler's, which is loaded from it")


def unloaded(project: Project, info: ClassInfo) -> Iterator[Site]:
    """Yield where a class loads the state that it returns with its scaler's, and nothing of it asks for that one."""
    saving, loading = (info.methods.get(verb) for verb in ("state_dict", "load_state_dict"))
    if saving is None or loading is None:
        return
    scope = project.scope_of(saving, info.scope.module)
    kept = [call for call in calls(saving) if tail_of(call.func) == "state_dict" and is_of_scaler(call, scope)]
    above = (owner.methods.get("load_state_dict") for owner in project.ancestors_of(info))
    family = [loading, *(method for method in above if method is not None)]
    elsewhere = ((c, project.scope_at(c, there)) for c, there in project.named.get("load_state_dict", ()))
    if not kept or any(_may_load(method) for method in family) or any(is_of_scaler(*each) for each in elsewhere):
        return
    first = next((c for c in calls(loading) if tail_of(c.func) == "load_state_dict"), None)
    yield broken(info.scope.module, first or loading, "the scaler's state is returned, and never loaded")


def _may_load(loading: ast.AST) -> bool:
    """Return whether a method speaks of a scaler, or goes over what it loads by names that are not written out."""
    reads = {tail_of(call.func) for call in calls(loading)} & {"setattr", "getattr", "vars"}
    done = inner(loading, ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.withitem)
    said = (text_of(node) for node in done if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)))
    return bool(reads) or any("scal" in each.lower() for each in said) or any(True for _ in inner(loading, ast.For))


def _key(node: ast.expr) -> ast.expr | None:
    """Return the key under which a state is looked for: `state["scaler"]`, `state.pop("scaler")`."""
    if isinstance(node, ast.Call) and tail_of(node.func) in {"pop", "get"} and node.args:
        return node.args[0]
    return node.slice if isinstance(node, ast.Subscript) else None


def _is_known(node: ast.expr | None, scope: Scope) -> bool:
    """Return whether a state is written out, or is that of the class above."""
    behind = scope.through(node) if isinstance(node, ast.Name) else None
    made = behind[0] if behind is not None else node
    return (isinstance(made, ast.Dict) and None not in made.keys) or (
        isinstance(made, ast.Call) and text_of(made.func) == "super().state_dict"
    )
