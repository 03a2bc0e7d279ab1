"""What takes a model over to train it, beside its optimizer or before, and what makes its parameters in a type."""

import ast
from collections.abc import Iterator
from dataclasses import replace

from gates.scan.analyses.precision.frozen import is_frozen, root_of
from gates.scan.analyses.precision.precision import STEPPED, type_named
from gates.scan.analyses.reading.code import calls, constant, function_of, statement_of
from gates.scan.analyses.reading.flow import Source
from gates.scan.analyses.settings.defaults import behind_of
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

HOPS = 4
PARAMETER = "torch.nn.Parameter"
HOLDS = frozenset({"torch.nn.Sequential", "torch.nn.ModuleList"})
Found = tuple[ast.Call, Module]
Option = tuple[str | None, ast.expr]


def received(project: Project, model: Source, optimizer: ast.Call) -> Iterator[Source]:
    """Yield what a model is called in the functions that get it with its optimizer, or before that is made."""
    name, near = text_of(model.node), list(calls(model.body))
    for call in near if isinstance(model.node, ast.Name | ast.Attribute) else ():
        options = list(_options(call, model.scope))
        if name not in {text_of(value) for value in (*call.args, *(value for _, value in options))}:
            continue
        is_early = function_of(optimizer, model.module) is function_of(call, model.module)
        is_early = is_early and call.lineno < optimizer.lineno and not _made_whole(near, name, call)
        is_early = is_early or (
            (optimizer in walk(call) or _trains(call, options)) and _is_followed(project, call, near, model.scope)
        )
        if is_early:
            yield from _names(project, call, options, name, model.scope)


def _is_followed(project: Project, call: ast.Call, near: list[ast.Call], scope: Scope) -> bool:
    """Return whether training comes after a call, or in what it runs: not where it saves what was trained."""
    target, _ = _target(project, call, scope)
    inside = list(calls(target)) if target is not None else []
    is_made = getattr(target, "name", "") == "__init__"
    return is_made or any(map(_steps, inside)) or any(_steps(c) and c.lineno > call.lineno for c in near)


def trains_after(halving: ast.Call, body: ast.AST) -> bool:
    """Return whether a function trains after a call in it, or is not what trains: it makes an object, or prepares."""
    if not any(map(_steps, calls(body))):
        return True
    return any(_steps(call) and call.lineno > halving.lineno for call in calls(body))


def _steps(call: ast.Call) -> bool:
    return tail_of(call.func) == "backward" or _trains(call, [(k.arg, k.value) for k in call.keywords])


def _trains(call: ast.Call, options: list[Option]) -> bool:
    """Return whether a call is handed an optimizer or a scaler, or is a step of one."""
    given = (*((tail_of(arg), arg) for arg in call.args), *((name or "", value) for name, value in options))
    return any(
        STEPPED.search(text) or STEPPED.search(tail_of(value))
        for text, value in given
        if isinstance(value, ast.Name | ast.Attribute)
    )


def _options(call: ast.Call, scope: Scope) -> Iterator[Option]:
    """Yield what a call hands by name, in `**options` that are written out too."""
    for option in call.keywords:
        if option.arg is not None:
            yield option.arg, option.value
            continue
        behind = (option.value, scope) if isinstance(option.value, ast.Dict) else behind_of(option.value, scope)
        table = behind[0] if behind is not None else None
        for key, value in zip(table.keys, table.values, strict=True) if isinstance(table, ast.Dict) else ():
            yield str(constant(key)), value
        if isinstance(table, ast.Call) and tail_of(table.func) == "dict":
            yield from ((k.arg, k.value) for k in table.keywords)


def _made_whole(near: list[ast.Call], name: str, since: ast.Call) -> bool:
    """Return whether a model is cast back after a call."""
    later = (c for c in near if c.lineno > since.lineno and tail_of(c.func) in {"float", "to"})
    return any(text_of(root) == name and "float" in text_of(c) for c in later if (root := root_of(c.func)) is not None)


def _names(project: Project, call: ast.Call, options: list[Option], name: str, scope: Scope) -> Iterator[Source]:
    """Yield what a function calls something that a call hands it, and what attributes it puts that in."""
    target, is_bound = _target(project, call, scope)
    if target is None:
        return
    where = project.scope_of(target, scope.module)
    known = [arg.arg for arg in (*target.args.posonlyargs, *target.args.args, *target.args.kwonlyargs)]
    handed = dict(options)
    for each in known:
        value = handed.get(each) or argument(call, target, each, bound=is_bound)
        if value is not None and text_of(value) == name:
            yield from _aliases(target, Source(ast.Name(each, ast.Load()), where))
    rest = target.args.kwarg
    for key, value in options if rest is not None else ():
        if rest is not None and key not in known and text_of(value) == name:
            part = ast.Subscript(ast.Name(rest.arg, ast.Load()), ast.Constant(key), ast.Load())
            yield from _aliases(target, Source(part, where))


def _target(project: Project, call: ast.Call, scope: Scope) -> tuple[Function | None, bool]:
    """Return the function that a call runs, that which makes an object of a class too, and whether it has a `self`."""
    target = project.types.function(call, scope)
    if target is not None:
        return target, project.scope_of(target, scope.module).owner is not None
    info = project.classes.get(scope.dotted(call.func) or "")
    found = project.method(info, "__init__") if info is not None else None
    return (found[0], True) if found is not None else (None, False)


def _aliases(function: Function, given: Source) -> Iterator[Source]:
    """Yield something that a function is handed, and the variables and attributes that it is put in."""
    yield given
    for node in inner(function, ast.Assign):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=False))
            same = (one for one, value in pairs if text_of(value) == text_of(given.node))
            yield from (replace(given, node=one) for one in same if isinstance(one, ast.Name | ast.Attribute))


def built(project: Project, call: ast.Call, scope: Scope, kind: str, hops: int = HOPS) -> Iterator[Found]:
    """Yield the calls that ask for trained parameters in a type: `nn.Linear(9, 9, dtype=half)`, `Own(9, kind=half)`.

    A class that asks for its own layers in the type is followed into, where its objects are made.
    """
    given = [value for value in (*call.args, *(k.value for k in call.keywords)) if not _is_asked_for(value, scope)]
    told = {text_of(value): "" for value in given if type_named(value, scope) == kind}
    if told and _makes_in(project, call, scope, told, hops):
        yield call, scope.module
        return
    for part in walk(call) if scope.dotted(call.func) in HOLDS else ():
        if isinstance(part, ast.Call) and part is not call and hops and scope.dotted(part.func) not in HOLDS:
            yield from built(project, part, scope, kind, 0)
    target, _ = _target(project, call, scope) if hops else (None, False)
    if target is None or target.name != "__init__":
        return
    where = project.scope_of(target, scope.module)
    handed = {arg.arg for arg in (*target.args.args, *target.args.kwonlyargs)}
    for each in _kept_parts(target, where):
        if not handed & {text_of(k.value) for k in each.keywords}:
            yield from built(project, each, where, kind, hops - 1)


def _is_asked_for(value: ast.expr, scope: Scope) -> bool:
    """Return whether a factory is told by its callers what it hands on for what it returns."""
    is_returned = isinstance(statement_of(value, scope.module), ast.Return)
    function = scope.function if is_returned and isinstance(value, ast.Name) else None
    return function is not None and text_of(value) in {
        arg.arg for arg in walk(function.args) if isinstance(arg, ast.arg)
    }


def _kept_parts(target: Function, scope: Scope) -> Iterator[ast.Call]:
    """Yield what a constructor makes and keeps in its object, but what it freezes."""
    for node in inner(target, ast.Assign):
        if not isinstance(node, ast.Assign) or not any(text_of(t).startswith("self.") for t in node.targets):
            continue
        for call in walk(node.value):
            if isinstance(call, ast.Call) and not is_frozen(call, scope.module, target):
                yield call


def _makes_in(project: Project, call: ast.Call, scope: Scope, told: dict[str, str], hops: int) -> bool:
    """Return whether a call makes trained parameters of the type that some of its arguments mean, or hands that on.

    Of options that are handed on together it is known under which key the type stands in them.
    """
    name = scope.dotted(call.func) or ""
    if name.startswith("torch."):
        return any(k.arg in {"dtype", None} and text_of(k.value) in told for k in call.keywords) and (
            _is_layer(name) or _is_parameter(call, scope)
        )
    target, is_bound = _target(project, call, scope) if hops else (None, False)
    if target is None:
        return False
    known = [arg.arg for arg in (*target.args.posonlyargs, *target.args.args, *target.args.kwonlyargs)]
    options = {k.arg or told.get(text_of(k.value), ""): k.value for k in call.keywords}
    handed = {each: options.get(each) or argument(call, target, each, bound=is_bound) for each in known}
    means = {each: "" for each, value in handed.items() if value is not None and text_of(value) in told}
    if target.args.kwarg is not None:
        keys = [key for key, value in options.items() if key not in known and text_of(value) in told]
        means |= {target.args.kwarg.arg: keys[0]} if keys else {}
    where = project.scope_of(target, scope.module)
    return bool(means) and any(
        _makes_in(project, c, where, means, hops - 1) and not is_frozen(c, where.module, target) for c in calls(target)
    )


def _is_layer(name: str) -> bool:
    place, _, tail = name.rpartition(".")
    return place == "torch.nn" and tail[:1].isupper() and name != PARAMETER


def _is_parameter(call: ast.Call, scope: Scope) -> bool:
    """Return whether what a call makes becomes a parameter that is trained: `nn.Parameter(torch.zeros(9))`."""
    return any(
        isinstance(around, ast.Call) and scope.dotted(around.func) == PARAMETER
        and not any(k.arg == "requires_grad" and constant(k.value) is False for k in around.keywords)
        for around in scope.module.ancestors(call)
    )  # fmt: skip
