"""Scalers for bfloat16, which needs none."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.evaluation.evaluating import NAMED
from gates.scan.analyses.half_parameters import trained
from gates.scan.analyses.precision.chosen_types import scaled_for_all
from gates.scan.analyses.precision.contexts import contexts_of
from gates.scan.analyses.precision.left_out import is_left_out, is_other_case
from gates.scan.analyses.precision.mode_tables import scaled_in_rows
from gates.scan.analyses.precision.policies import scaled_in
from gates.scan.analyses.precision.precision import (
    AUTOCAST,
    BRAIN,
    autocasts,
    dtype_of,
    holds,
    is_on,
    option,
    scalers,
    type_named,
)
from gates.scan.analyses.precision.records import scaled_in_record, switched_in_record
from gates.scan.analyses.reading.code import broken, class_of, function_of, keyword, nodes
from gates.scan.analyses.settings.defaults import callers_pass, preset
from gates.scan.analyses.training.forwards import NO_GRAD
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.site import Site

WORDS = ("bfloat16*",)
NEAR = 3  # lines, within which one finding tells of both
POLICIES = ("MixedPrecision", "MixedPrecisionPolicy")
PROBLEM = "a dynamic loss scale is used with bfloat16, which needs none"


def look(project: Project) -> Iterator[Site]:
    """Yield each dynamic scaler in the function, class or file whose autocast contexts are all in bfloat16.

    A context that says so itself is told of, too.
    """
    seen: set[ast.AST] = set()
    switched = list(switched_in_record(project, BRAIN))
    for call, module in (
        *_of_files(project),
        *_whole(project),
        *scaled_in(project, BRAIN),
        *scaled_in_rows(project, BRAIN),
        *scaled_in_record(project, BRAIN),
        *switched,
        *(scaled_for_all(project, _is_on, project.once(_training)) if not switched else ()),
    ):
        if call not in seen:
            seen.add(call)
            yield broken(module, call, PROBLEM)
    for info in project.classes.values() if any("caler" in name for name in project.named) else ():
        for place in _of_class(project, info):
            if place not in seen:
                seen.add(place)
                yield broken(info.scope.module, place, PROBLEM)


def _training(project: Project) -> Iterator[tuple[ast.Call, Scope]]:
    """Yield the autocast contexts of a program, but for those that it evaluates in."""
    made = (each for module in project.modules.values() for each in autocasts(project, module))
    yield from (each for each in made if not _evaluates(each[0], each[1].module))


def _connected(project: Project, module: Module) -> list[tuple[ast.Call, Scope]]:
    """Return all autocast contexts that a program trains in, where each stands in a file that belongs to one."""
    made = list(project.once(_training))
    paths = {scope.module.path for _, scope in made}
    if {dtype_of(*preset(*each)) for each in made} != {BRAIN}:
        return []  # what belongs together is asked of few programs: it takes long
    unknown = any(dotted in AUTOCAST for dotted in module.aliases.values()) and module.path not in paths
    if not unknown and all(path == module.path or _meets(project, module, path) for path in paths):
        return made
    return []


def _meets(project: Project, module: Module, path: str) -> bool:
    """Return whether two files belong to one program: one package, or by the imports of some file, theirs too."""
    if module.package and project.modules[path].package == module.package:
        return True
    return any({module.path, path} <= _reached(project, each) for each in project.modules.values())


def _reached(project: Project, module: Module) -> set[str]:
    """Return the paths of a file and of all that it imports."""
    seen, todo = {module.path}, [module]
    while todo:
        near = todo.pop()
        for dotted in near.aliases.values():
            for name in (dotted, dotted.rpartition(".")[0]):
                found = project.find_module(name, near) if name else None
                if found is not None and found.path not in seen:
                    seen.add(found.path)
                    todo.append(found)
    return seen


def _is_chosen(call: ast.Call, module: Module, scope: Scope) -> bool:
    """Return whether a scaler is made on a side of a choice that is not known."""
    cases = (a for a in module.ancestors(call) if isinstance(a, ast.match_case))
    choices = (a for a in module.ancestors(call) if isinstance(a, ast.If | ast.IfExp))
    return any(is_other_case(a, module, scope) is not False for a in cases) or any(
        call not in set(walk(a.test)) and holds(a.test, scope) is None for a in choices
    )


def _of_files(project: Project) -> Iterator[tuple[ast.Call, Module]]:
    """Yield the scalers whose file, or the files that these belong to, trains in bfloat16 alone."""
    for module in project.modules.values():
        found = list(scalers(project, module))
        contexts = _around(project, module, [call for call, _ in found]) if found else []
        if found and not contexts:
            contexts = _connected(project, module)
            found = [(call, scope) for call, scope in found if not _is_chosen(call, module, scope)]
        if {dtype_of(*preset(*made)) for made in contexts} != {BRAIN}:
            continue
        for call, scope in found:
            known = _is_on(call, scope) or _same(call, scope, contexts)
            if known and not is_left_out(call, module, scope):
                yield call, module
                named = ((made, there) for made, there in contexts if _is_written(made, there))
                yield from ((made, there.module) for made, there in named if _is_far(made, there, call, module))


def _is_far(context: ast.Call, scope: Scope, call: ast.Call, module: Module) -> bool:
    return scope.module is not module or abs(context.lineno - call.lineno) > NEAR


def _is_written(context: ast.Call, scope: Scope) -> bool:
    """Return whether a context names bfloat16 itself, rather than a setting that is kept elsewhere."""
    dtype = keyword(context, "dtype") or (context.args[1] if len(context.args) > 1 else None)
    return dtype is not None and tail_of(dtype) == "bfloat16" and type_named(dtype, scope) == BRAIN


def _whole(project: Project) -> Iterator[tuple[ast.Call, Module]]:
    """Yield the scalers of a program without autocast whose models are in bfloat16 as a whole, or sharded so."""
    made = [(c, m, s) for m in project.modules.values() for c, s in scalers(project, m)]
    if not made or any(True for m in project.modules.values() for _ in autocasts(project, m)):
        return
    policies = [(c, m) for name in POLICIES for c, m in project.named.get(name, [])]
    kinds = {type_named(v, project.scope_at(c, m)) for c, m in policies if (v := keyword(c, "param_dtype")) is not None}
    if kinds == {BRAIN} or (not kinds and any(True for _ in trained(project, BRAIN))):
        for call, module, scope in made:
            if _is_on(call, scope):
                yield call, module


def _is_on(call: ast.Call, scope: Scope) -> bool:
    """Return whether a scaler is on where nobody changes the settings, for all callers of what makes it."""
    enabled = option(call, "enabled", scope)
    if enabled is None:
        return all(_are_on(k.value, scope) for k in call.keywords if k.arg is None)
    given = list(callers_pass(enabled.id, scope)) if isinstance(enabled, ast.Name) else []
    return all(holds(value, where) is True for value, where in given) if given else holds(enabled, scope) is True


def _are_on(rest: ast.expr, scope: Scope) -> bool:
    """Return whether no caller switches off what a function makes with the `**options` that it is given."""
    function = scope.function
    if not isinstance(function, ast.FunctionDef) or function.args.kwarg is None:
        return True
    if tail_of(rest) != function.args.kwarg.arg:
        return True
    name = scope.owner.node.name if scope.owner is not None and function.name == "__init__" else function.name
    for call, module in scope.project.named.get(name, []):
        enabled = keyword(call, "enabled")
        if enabled is not None and holds(enabled, scope.project.scope_at(call, module)) is not True:
            return False
    return True


def _around(project: Project, module: Module, made: list[ast.Call]) -> list[tuple[ast.Call, Scope]]:
    """Return the autocast contexts of the file that makes scalers, and of those which it makes them for."""
    near = {m.path: m for m in (module, *(user for call in made for user in _users(project, module, call)))}
    return [found for each in near.values() for found in _trained(project, each)]


def _users(project: Project, module: Module, call: ast.Call) -> Iterator[Module]:
    """Yield the files that call the function which makes a scaler, where the scaler's own file has no autocast."""
    function = function_of(call, module)
    if function is not None and not any(True for _ in _trained(project, module)):
        owner = class_of(function, module)
        name = owner.name if owner is not None else function.name
        yield from (other for _, other in project.named.get(name, []) if other is not module)


def _trained(project: Project, module: Module) -> Iterator[tuple[ast.Call, Scope]]:
    """Yield the autocast contexts of a file, but for those that it evaluates in."""
    for node in nodes(module, ast.With):
        if isinstance(node, ast.With) and not _evaluates(node, module):
            yield from contexts_of(node, project.scope_at(node.items[0].context_expr, module))


def _of_class(project: Project, info: ClassInfo) -> Iterator[ast.AST]:
    """Yield where a class takes bfloat16 for what it has of its base, and a scaler besides."""
    bases = project.ancestors_of(info)
    own = {b.node for name in info.attributes for b, _ in info.attributes[name] if isinstance(b.node, ast.expr)}
    if not bases or not any(type_named(node, info.scope) == BRAIN for node in own if isinstance(node, ast.Attribute)):
        return
    names = {name for each in (info, *bases) for name in each.methods}
    methods = [found for name in sorted(names) if (found := project.method(info, name)) is not None]
    kinds = [kind for function, module, _ in methods for kind in _kinds(project, info, function, module)]
    if not kinds or {kind for kind, _ in kinds} != {BRAIN}:
        return
    for function, module, owner in methods:
        inside = {id(node) for node in inner(function, ast.Call)}
        for call, _ in scalers(project, module):
            if id(call) in inside and is_on(call):
                yield call if owner is info else next(place for _, place in kinds)


def _kinds(
    project: Project, info: ClassInfo, function: Function, module: Module
) -> Iterator[tuple[str | None, ast.AST]]:
    """Yield the types that the autocast contexts of a method have for a class, and where it says so."""
    scope = project.scope_of(function, module)
    for call in inner(function, ast.Call):
        if not isinstance(call, ast.Call) or scope.dotted(call.func) not in AUTOCAST:
            continue
        dtype = keyword(call, "dtype")
        is_own = isinstance(dtype, ast.Attribute) and _is_own(dtype, scope)
        bound = project.attribute(info, dtype.attr) if is_own and isinstance(dtype, ast.Attribute) else []
        if len(bound) == 1 and isinstance(bound[0][0].node, ast.expr):
            yield type_named(bound[0][0].node, bound[0][1]), bound[0][0].node
        else:
            yield dtype_of(call, scope), call


def _is_own(node: ast.Attribute, scope: Scope) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == scope.self_name


def _evaluates(node: ast.AST, module: Module) -> bool:
    """Return whether a block runs without gradients, or in a function that evaluates."""
    for around in (node, *module.ancestors(node)):
        if isinstance(around, ast.With) and any(NO_GRAD.search(text_of(i.context_expr)) for i in around.items):
            return True
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            off = any(NO_GRAD.search(text_of(d)) for d in around.decorator_list)
            return off or NAMED.search(around.name) is not None
    return False


def _same(call: ast.Call, scope: Scope, contexts: list[tuple[ast.Call, Scope]]) -> bool:
    """Return whether a scaler is on where some context is: by the same switch, or by asking the scaler."""
    enabled = keyword(call, "enabled")
    others = ((option, where) for context, where in contexts if (option := keyword(context, "enabled")) is not None)
    return enabled is not None and any(_is_of(other, where, enabled, scope) for other, where in others)


def _is_of(node: ast.expr, where: Scope, enabled: ast.expr, scope: Scope) -> bool:
    if isinstance(node, ast.Call) and tail_of(node.func) == "is_enabled":
        return True
    behind = where.through(node) if isinstance(node, ast.Attribute) else None
    is_kept = behind is not None and behind[1].function is scope.function and behind[1].module is scope.module
    return text_of(node) == text_of(enabled) or (is_kept and text_of(behind[0]) == text_of(enabled))  # type: ignore[index]
