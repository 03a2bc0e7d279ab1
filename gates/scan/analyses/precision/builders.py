"""Functions that a program keeps under keys of a mapping, and what a call of what stands there hands them."""

import ast
from collections.abc import Iterator
from dataclasses import replace

from gates.scan.analyses.precision.left_out import is_left_out, leaves_unscaled
from gates.scan.analyses.precision.precision import scalers
from gates.scan.analyses.reading.called import Called, Made, called
from gates.scan.analyses.reading.code import constant, function_of, functions, keyword
from gates.scan.analyses.reading.flow import Source
from gates.scan.analyses.settings.defaults import under
from gates.scan.analyses.settings.settings import setting
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.program.signatures import parameters
from gates.scan.ways.registries import held, keyed

MAX_WAYS = 8
Ran = tuple[ast.Call, Scope]  # a call, and where it stands


def entered(project: Project, function: Function, near: Module, ways: list[Source]) -> list[Called]:
    """Return the scopes of a function in those of some calls that run it."""
    scope = project.scope_of(function, near)
    ran = ((w.node, w.scope) for w in ways if isinstance(w.node, ast.Call))
    return [_entered(scope, *each, None) for each in ran if project.types.function(*each) is function]


def is_off(project: Project, made: ast.Call, module: Module, ways: list[Source]) -> bool:
    """Return whether the settings leave a call out, in each of the ways by which its function is run.

    What the switch of a scaler turns on is not left out: it is there where the scaler is.
    """
    function = function_of(made, module)
    if _is_unscaled(project, made, module) or leaves_unscaled(project, made, module):
        return True
    if function is None:
        return False
    scopes = list(
        {id(w.scope): w.scope for w in ways if w.scope.function is function and isinstance(w.scope, Called)}.values()
    )
    scopes = scopes or entered(project, function, module, ways)
    found = (keyword(call, "enabled") for m in project.modules.values() for call, _ in scalers(project, m))
    switches = {text_of(enabled) for enabled in found if enabled is not None}
    return bool(scopes) and all(is_left_out(made, module, s) and not _is_switched(made, s, switches) for s in scopes)


def _is_unscaled(project: Project, made: ast.Call, module: Module) -> bool:
    """Return whether a call stands under one value of a setting, and all scalers are on for another one alone."""
    enabled = [keyword(call, "enabled") for m in project.modules.values() for call, _ in scalers(project, m)]
    above = [made, *module.ancestors(made)]
    choices = (a for a in above if isinstance(a, ast.If | ast.IfExp))
    tests = [a.test for a in choices if set(above) & set(a.body if isinstance(a.body, list) else [a.body])]
    return bool(enabled) and any(all(_excludes(test, switch) for switch in enabled) for test in tests)


def _excludes(test: ast.expr, switch: ast.expr | None) -> bool:
    """Return whether two conditions ask for different values of one thing: `kind == "half"`, `kind == "mixed"`."""
    both = [each for each in (test, switch) if isinstance(each, ast.Compare) and len(each.ops) == 1]
    if len(both) < 2 or not all(isinstance(each.ops[0], ast.Eq | ast.Is) for each in both):
        return False
    things, values = zip(*((tail_of(each.left), text_of(each.comparators[0])) for each in both), strict=True)
    return len(set(things)) == 1 and len(set(values)) == 2


def _is_switched(made: ast.Call, scope: Called, switches: set[str]) -> bool:
    """Return whether what a call stands under is what turns a scaler on."""
    tests = [a.test for a in scope.module.ancestors(made) if isinstance(a, ast.If | ast.IfExp)]
    passed = [scope.given[t.id][0] if isinstance(t, ast.Name) and t.id in scope.given else t for t in tests]
    return any(text_of(test) in switches for test in passed)


def built_by(project: Project, source: Source, ways: list[Source]) -> Iterator[tuple[Called, ast.expr]]:
    """Yield what the functions return that stand under the key which a call asks for: `BUILDERS[name](**kw)`."""
    call, function = source.node, source.scope.function
    found = _taken(call.func, source.scope) if isinstance(call, ast.Call) else None
    if found is None or not isinstance(call, ast.Call):
        return
    outer = [(w.node, w.scope) for w in ways if isinstance(w.node, ast.Call)]
    outer = [each for each in outer if function is not None and project.types.function(*each) is function]
    ways_in: list[Ran | None] = [*outer] or [None]
    for ran in ways_in:
        where = _entered(source.scope, *ran, None) if ran is not None else source.scope
        key = setting(found[1], where)
        known = _kept(project, tail_of(found[0])).get(key, []) if key is not None else []
        for target, module in known if len(known) == 1 else ():  # two mappings of one name are not told apart
            inside = _entered(project.scope_of(target, module), call, where, ran)
            for result in inner(target, ast.Return):
                if isinstance(result, ast.Return) and result.value is not None:
                    yield inside, result.value


def _taken(func: ast.expr, scope: Scope) -> tuple[ast.expr, ast.expr] | None:
    """Return the mapping that what is called is taken out of, and the key."""
    holder, key = keyed(func)
    if key is None and isinstance(func, ast.Name) and (behind := scope.through(func)) is not None:
        holder, key = held(*behind)
    return (holder, key) if key is not None else None


def _entered(scope: Scope, call: ast.Call, caller: Scope, outer: Ran | None) -> Called:
    """Return the scope of a function in a call of it, with what `**options` hand it that are told."""
    inside = called(scope, call, caller)
    given = dict(inside.given)
    function = scope.function
    spread = [k.value for k in call.keywords if k.arg is None]
    for name in parameters(function) if spread and isinstance(function, ast.FunctionDef) else ():
        found = next((m for each in spread if (m := _option(each, name, caller, outer)) is not None), None)
        if name not in given and found is not None:
            given[name] = found
    return replace(inside, given=given)


def _option(rest: ast.expr, name: str, caller: Scope, outer: Ran | None) -> Made | None:
    """Return what `**rest` has under a name: of a function's own `**rest` what its caller hands it."""
    function = caller.function
    own = function.args.kwarg if isinstance(function, ast.FunctionDef) else None
    if outer is None or own is None or tail_of(rest) != own.arg:
        return under(rest, name, caller, MAX_WAYS)
    call, scope = outer
    value = keyword(call, name)
    if value is not None:
        return value, scope
    spread = (k.value for k in call.keywords if k.arg is None)
    return next((m for each in spread if (m := under(each, name, scope, MAX_WAYS)) is not None), None)


def _kept(project: Project, holder: str) -> dict[object, list[tuple[Function, Module]]]:
    """Return the functions that are put into a mapping of a name, by their keys."""
    found: dict[object, list[tuple[Function, Module]]] = {}
    for module in project.modules.values():
        for node in module.live.get(ast.Assign, []):
            if not isinstance(node, ast.Assign):
                continue
            target = node.targets[0]
            around = function_of(node, module)
            if tail_of(target) == holder and isinstance(node.value, ast.Dict):
                for name, value in zip(node.value.keys, node.value.values, strict=True):
                    _add(found, constant(name), project.scope_at(node, module), value)
            elif isinstance(target, ast.Subscript) and tail_of(target.value) == holder:
                _add(found, constant(target.slice), project.scope_at(node, module), node.value)
                outer = function_of(around, module) or around if around is not None else None
                if around is not None and outer is not None and tail_of(node.value) in _names(around):
                    for key, function, there in _decorated(project, outer.name):
                        found.setdefault(key, []).append((function, there))
    return found


def _add(found: dict[object, list[tuple[Function, Module]]], key: object, scope: Scope, value: ast.expr) -> None:
    known = scope.project.functions.get(scope.dotted(value) or "")
    if key is not None and known is not None:
        found.setdefault(key, []).append(known)


def _names(function: Function) -> set[str]:
    return {arg.arg for arg in function.args.args}


def _decorated(project: Project, name: str) -> Iterator[tuple[object, Function, Module]]:
    """Yield the functions that a decorator keeps, under the key that it is given, else their own names."""
    for module in project.modules.values():
        for function in functions(module):
            for made in function.decorator_list:
                func = made.func if isinstance(made, ast.Call) else made
                if tail_of(func) == name:
                    args = [*made.args, *(k.value for k in made.keywords)] if isinstance(made, ast.Call) else []
                    yield constant(args[0]) if args else function.name, function, module
