"""The autocast contexts of a program, followed to the calls that make them: what code enters, what a node runs in."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.precision.precision import AUTOCAST, holds
from gates.scan.analyses.reading.code import constant, keyword
from gates.scan.analyses.settings.defaults import behind_of, callers_pass
from gates.scan.analyses.settings.settings import setting
from gates.scan.program.module import Binding, Function, Module, is_property, tail_of
from gates.scan.program.nodes import inner, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

STACKS, ENTERS = {"ExitStack", "AsyncExitStack"}, {"enter_context", "enter_async_context"}
MAX_HOPS = 5
Context = tuple[ast.Call, Scope]


def context_of(item: ast.withitem, scope: Scope) -> Context | None:
    """Return the call that makes the autocast context of a `with`, a stored one followed."""
    return next(_contexts(item.context_expr, scope, MAX_HOPS), None)


def _contexts(node: ast.expr, scope: Scope, hops: int) -> Iterator[Context]:
    """Yield the calls that make the autocast contexts which an expression may be."""
    if isinstance(node, ast.Call) and hops:
        yield from _called(node.func, node, scope, hops - 1)
        owner = scope.class_of(node)
        entering = scope.project.method(owner, "__enter__") if owner is not None else None
        for call in inner(entering[0], ast.Call) if entering is not None else ():
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "__enter__":
                where = scope.project.scope_of(entering[0], entering[1]) if entering is not None else scope
                yield from _contexts(call.func.value, where, hops - 1)
    for part, where in _parts(node, scope) if hops else ():
        yield from _contexts(part, where, hops - 1)


def _called(func: ast.expr, call: ast.Call, scope: Scope, hops: int) -> Iterator[Context]:
    """Yield the calls that make the contexts which calling something may give."""
    if isinstance(func, ast.Lambda):
        yield from _contexts(func.body, scope.project.scope_of(func, scope.module), hops)
    elif isinstance(func, ast.Call) and tail_of(func.func) == "partial" and func.args:
        if scope.dotted(func.args[0]) in AUTOCAST:
            yield func, scope
    elif isinstance(func, ast.Call) and hops:
        for value, where in _given(func, scope):
            yield from _called(value, call, where, hops - 1)
    elif isinstance(func, ast.Name | ast.Attribute) and scope.dotted(func) in AUTOCAST and not _is_kept(func, scope):
        yield call, scope
    elif hops:
        target = scope.project.types.function(call, scope) if func is call.func else _inner_of(func, scope)
        for value, where in _values(target, scope) if target is not None else ():
            yield from _contexts(value, where, hops - 1)
        for part, where in _parts(func, scope):
            yield from _called(part, call, where, hops - 1)


def _is_kept(func: ast.expr, scope: Scope) -> bool:
    """Return whether a name is a variable for a partial, rather than one for what it calls."""
    through = scope.through(func)
    return through is not None and not isinstance(through[0], ast.Name | ast.Attribute)


def _inner_of(func: ast.expr, scope: Scope) -> Function | None:
    """Return the function inside of another one that a name is."""
    found = scope.lookup(func.id) if isinstance(func, ast.Name) else None
    bound = [b.node for b in found[1]] if found is not None else []
    inside = bound[0] if len(bound) == 1 else None
    return inside if isinstance(inside, ast.FunctionDef | ast.AsyncFunctionDef) else None


def _given(call: ast.Call, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    """Yield what the function of the program returns that a call runs."""
    target = scope.project.types.function(call, scope)
    yield from _values(target, scope) if target is not None else ()


def _values(function: Function, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    """Yield what a function returns, or the contexts that it is in around its `yield`."""
    where = scope.project.scope_of(function, scope.module)
    for node in inner(function, ast.Return, ast.With):
        values = [node.value] if isinstance(node, ast.Return) else []
        if isinstance(node, ast.With) and any(True for _ in inner(node, ast.Yield)):
            values = [item.context_expr for item in node.items]
        yield from ((value, where) for value in values if value is not None)


def _parts(node: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    """Yield the expressions of which one is what an expression is: of a choice, a table, a variable, a property."""
    if isinstance(node, ast.IfExp):
        yield from ((part, scope) for part in (node.body, node.orelse))
    elif isinstance(node, ast.Subscript):
        behind = behind_of(node.value, scope)
        tables = [behind] if behind is not None else []
        if behind is not None and isinstance(behind[0], ast.Call):
            tables = list(_given(*behind))  # type: ignore[arg-type]  # a call
        for table, where in tables:
            yield from ((value, where) for value in _under(table, setting(node.slice, scope)))
    elif isinstance(node, ast.Name):
        found = scope.lookup(node.id)
        for binding in found[1] if found is not None else ():
            yield from _bound(binding, node.id, found[0]) if found is not None else ()
            yield from ((each, scope) for each in _on_stack(node, binding, scope))
    elif isinstance(node, ast.Attribute):
        owner = scope.class_of(node.value)
        method = scope.project.method(owner, node.attr) if owner is not None else None
        if method is not None and is_property(method[0]):
            yield from _values(method[0], scope.project.scope_of(method[0], method[1]))
        yield from ((b.node, where) for b, where in scope.attribute(node) if _is_value(b))  # type: ignore[misc]


def _under(table: ast.expr, key: object) -> list[ast.expr]:
    """Return what stands under a key of a table or a tuple that is written out, all of a table if the key is not."""
    if isinstance(table, ast.Tuple | ast.List):
        return table.elts[key : key + 1] if isinstance(key, int) and key >= 0 else []
    keyed = zip(table.keys, table.values, strict=True) if isinstance(table, ast.Dict) else ()
    values = [(k, v) for k, v in keyed if k is not None]
    return [v for k, v in values if constant(k) == key and key is not None] or [v for _, v in values]


def _bound(binding: Binding, name: str, where: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    """Yield what a name is bound to: a value, its part of what a function returns, or what callers pass."""
    if isinstance(binding.node, ast.expr) and binding.kind == "value":
        yield binding.node, where
    elif isinstance(binding.node, ast.Call) and binding.kind == "item":
        for value, there in _given(binding.node, where):
            parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            is_plain = not any(isinstance(part, ast.Starred) for part in parts)
            yield from ((part, there) for part in parts[binding.index : binding.index + 1] if is_plain)
    elif binding.kind == "parameter":
        yield from callers_pass(name, where)


def _on_stack(name: ast.Name, binding: Binding, scope: Scope) -> Iterator[ast.expr]:
    """Yield the contexts that a function has entered on an exit stack which it keeps in a variable."""
    made = binding.node if binding.kind == "value" else None
    if scope.function is None or not isinstance(made, ast.Call) or tail_of(made.func) not in STACKS:
        return
    for call in inner(scope.function, ast.Call):
        func = call.func if isinstance(call, ast.Call) and call.args else None
        if isinstance(func, ast.Attribute) and func.attr in ENTERS and tail_of(func.value) == name.id:
            yield call.args[0]  # type: ignore[attr-defined]  # a call


def _is_value(binding: Binding) -> bool:
    return binding.kind == "value" and isinstance(binding.node, ast.expr)


def around(project: Project, module: Module, node: ast.AST) -> Iterator[tuple[ast.Call, Scope]]:
    """Yield the calls that make the autocast contexts which a node runs in: blocks and decorators."""
    for outer in module.ancestors(node):
        scope = project.scope_at(outer, module)
        if isinstance(outer, ast.With | ast.AsyncWith):
            found = [context_of(item, project.scope_at(item.context_expr, module)) for item in outer.items]
            pushed = ((c, project.scope_at(c, module)) for c in _pushed(outer, node))
            found += [next(_contexts(c.args[0], where, MAX_HOPS), None) for c, where in pushed]
        elif isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
            found = [next(_contexts(d, scope, MAX_HOPS), None) for d in outer.decorator_list]
        else:
            continue
        yield from (made for made in found if made is not None)


def decorating(decorator: ast.expr, scope: Scope) -> Iterator[Context]:
    """Yield the calls that make the contexts which a decorator of the program's own may run a function in."""
    named = scope.dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
    target, module = scope.project.functions.get(named or "", (None, scope.module))
    taken = {node.arg for node in walk(target) if isinstance(node, ast.arg)} if target is not None else set()
    for node in walk(target) if target is not None else ():
        if isinstance(node, ast.With) and any(tail_of(c.func) in taken for c in inner(node, ast.Call)):  # type: ignore[attr-defined]  # calls
            yield from contexts_of(node, scope.project.scope_at(node, module))


def _pushed(block: ast.With | ast.AsyncWith, node: ast.AST | None) -> Iterator[ast.Call]:
    """Yield the calls that enter contexts on the exit stack of a block, above a node in it."""
    before = getattr(node, "lineno", 10**9)
    if any(isinstance(i.context_expr, ast.Call) and tail_of(i.context_expr.func) in STACKS for i in block.items):
        for call in inner(block, ast.Call):
            if isinstance(call, ast.Call) and tail_of(call.func) in ENTERS and call.args:
                yield from (call,) if call.lineno < before else ()


def entered_by(project: Project, method: Function, near: Module) -> Iterator[tuple[ast.Call, Scope]]:
    """Yield the calls that make the autocast contexts which a method enters by itself."""
    scope = project.scope_of(method, near)
    decorators = (next(_contexts(d, scope, MAX_HOPS), None) for d in method.decorator_list)
    yield from (made for made in decorators if made is not None)
    yield from (made for node in inner(method, ast.With) for made in contexts_of(node, scope))  # type: ignore[arg-type]


def casts(project: Project, method: Function, near: Module) -> bool:
    """Return whether a method enters an autocast context by itself that is on where nobody changes the settings."""
    return any(not is_off(call, scope) for call, scope in entered_by(project, method, near))


def is_off(call: ast.Call, scope: Scope) -> bool:
    """Return whether the call that makes a context says that it is off: `autocast("cuda", enabled=False)`."""
    enabled = keyword(call, "enabled")
    return enabled is not None and (constant(enabled) is False or holds(enabled, scope) is False)


def contexts_of(block: ast.With | ast.AsyncWith, scope: Scope) -> Iterator[Context]:
    """Yield the calls that make the autocast contexts of a `with`, of its exit stack too, all that may be chosen."""
    entered = (*(item.context_expr for item in block.items), *(call.args[0] for call in _pushed(block, None)))
    yield from (made for node in entered for made in _contexts(node, scope, MAX_HOPS))
