"""Where a program keeps functions in lists and under the names of events, and where it calls what is kept there."""

import ast
from collections.abc import Iterator

from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

ADDS = frozenset({"append", "add", "appendleft", "insert"})
FETCHES = frozenset({"get", "setdefault", "pop"})
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Kept = tuple[ast.expr, ast.expr | None, str, Module]
Dispatched = tuple[ast.Call, Module, ast.expr | None, str]


def added(project: Project, holders: set[str]) -> Iterator[Kept]:
    """Yield what is added to a list under an event, the event, and what the list, or what holds it, is called."""
    for verb in sorted(ADDS):
        for call, module in project.named.get(verb, []):
            if isinstance(call.func, ast.Attribute) and call.args and not isinstance(call.args[-1], ast.Constant):
                scope = project.scope_at(call, module)
                holder, event = held(call.func.value, scope)
                if tail_of(holder) in holders and (event is not None or not _is_local(holder, scope)):
                    yield from ((part, event, tail_of(holder), module) for part in _parts(call.args[-1]))
    for module in project.modules.values():
        for node in module.live.get(ast.Assign, []):
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if isinstance(target, ast.Subscript) and isinstance(node, ast.Assign) and tail_of(target.value) in holders:
                for value in node.value.elts if isinstance(node.value, ast.List) else [node.value]:
                    if isinstance(value, ast.Name | ast.Attribute):
                        yield value, target.slice, tail_of(target.value), module


def _parts(value: ast.expr) -> list[ast.expr]:
    """Return what is kept: of a row such as `(priority, hook)`, what may be a function."""
    if not isinstance(value, ast.Tuple):
        return [value]
    return [part for part in value.elts if isinstance(part, ast.Name | ast.Attribute)]


def dispatched(project: Project) -> Iterator[Dispatched]:
    """Yield the calls of what is taken out under an event, and the events; without a holder that of `getattr`."""
    for module in project.modules.values():
        yield from _in_loops(project, module)
        yield from _by_key(project, module)
        for found in module.calls.get("getattr", ()):
            call = _call_of(found, module)
            if call is not None and len(found.args) > 1 and not isinstance(found.args[1], ast.Constant):
                yield call, module, found.args[1], ""


def _in_loops(project: Project, module: Module) -> Iterator[Dispatched]:
    """Yield the calls of the variable of a loop."""
    for node in (*module.live.get(ast.For, ()), *module.live.get(ast.comprehension, ())):
        target = node.target if isinstance(node, ast.For | ast.comprehension) else None
        around = node if isinstance(node, ast.For) else module.parents.get(node)
        names = {name for name in named_in(target) if name in module.calls}
        if not names or around is None:
            continue
        made = (c for c in inner(around, ast.Call) if isinstance(c, ast.Call) and isinstance(c.func, ast.Name))
        for call in (c for c in made if tail_of(c.func) in names):
            holder, event = held(node.iter, project.scope_at(call, module))
            yield call, module, event, tail_of(holder)


def named_in(target: ast.expr | None) -> list[str]:
    """Return the variables of a loop: of `for priority, hook in hooks`, both."""
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return [part.id for part in parts if isinstance(part, ast.Name)]


def _by_key(project: Project, module: Module) -> Iterator[Dispatched]:
    """Yield the calls of the one function that stands under an event, directly or by a variable."""
    fetched = [*module.live.get(ast.Subscript, ()), *(c for name in FETCHES for c in module.calls.get(name, ()))]
    for node in fetched:
        holder, event = keyed(node) if isinstance(node, ast.expr) else (node, None)
        around = module.parents.get(node)
        if event is None or not tail_of(holder):
            continue
        if isinstance(around, ast.Call) and around.func is node:
            yield around, module, event, tail_of(holder)
        elif isinstance(around, ast.Assign) and isinstance(around.targets[0], ast.Name):
            body = project.scope_at(node, module).function
            for call in module.calls.get(around.targets[0].id, ()):
                if isinstance(call.func, ast.Name) and body is not None and body in module.ancestors(call):
                    yield call, module, event, tail_of(holder)


def _call_of(found: ast.Call, module: Module) -> ast.Call | None:
    """Return the call of what `getattr` gives, directly or by a variable."""
    around = module.parents.get(found)
    if isinstance(around, ast.Assign):
        body = next(a for a in module.ancestors(found) if isinstance(a, (*FUNCTIONS, ast.Module)))
        made = module.calls.get(tail_of(around.targets[0]), ())
        return next((call for call in made if body in module.ancestors(call)), None)
    return around if isinstance(around, ast.Call) and around.func is found else None


def _is_local(node: ast.expr, scope: Scope) -> bool:
    """Return whether a name is one of a function's own variables."""
    found = scope.lookup(node.id) if isinstance(node, ast.Name) else None
    return found is not None and found[0].function is not None


def held(node: ast.expr, scope: Scope) -> tuple[ast.expr, ast.expr | None]:
    """Return the mapping and the event that something is taken out by, through a variable."""
    holder, event = keyed(node)
    behind = scope.through(holder) if event is None and isinstance(holder, ast.Name) else None
    return keyed(behind[0]) if behind is not None and keyed(behind[0])[1] is not None else (holder, event)


def keyed(node: ast.expr) -> tuple[ast.expr, ast.expr | None]:
    """Return the mapping and the event that something is taken out by: of `hooks.get(event, ())`, `hooks`, `event`."""
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
            node = node.args[0]  # list(...), tuple(...)
        elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
            node = node.values[0]
        else:
            break
    if isinstance(node, ast.Subscript):
        return node.value, node.slice
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FETCHES and node.args:
        return node.func.value, node.args[0]
    return node, None


def event_of(node: ast.expr | None, scope: Scope) -> str | None:
    """Return the name of an event: a text, or the full name of a member or a constant."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Attribute):
        return scope.dotted(node)
    behind = scope.through(node) if isinstance(node, ast.Name) else None
    return event_of(*behind) if behind is not None and isinstance(behind[0], ast.Constant) else None


def filled(event: ast.expr, told: str) -> str:
    """Return the name that is put together of a text and an event: of `f"on_{event}"`, `on_step`."""
    if isinstance(event, ast.JoinedStr):
        return "".join(str(p.value) if isinstance(p, ast.Constant) else told for p in event.values)
    if isinstance(event, ast.BinOp) and isinstance(event.left, ast.Constant):
        return str(event.left.value) + told
    return told
