"""The lines of live code that do something with a name."""

import ast
from collections.abc import Iterator, Sequence

from gates.syntax import SourceModule, live_nodes

TYPE_TESTS = {"isinstance", "issubclass"}
Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = Function | ast.Lambda | ast.ClassDef


def use_lines(name: str, node: ast.AST, module: SourceModule) -> Iterator[int]:
    """Yield the lines of live code where a dotted name does something; a mere mention is no use."""
    live = list(live_nodes(node))
    idle = unread_in(live)
    idle |= {inner for outer in live for part in _mentions(outer) for inner in ast.walk(part)}
    own = _taken(node)
    short = {**_shortened(module.tree.body, module), **_shortened(live, module)}
    seen = set()
    for inner in live:
        if not isinstance(inner, ast.Attribute | ast.Name) or inner in idle or inner.lineno in seen:
            continue
        if not isinstance(inner.ctx, ast.Load) or (inner in own and _root(inner) in module.aliases):
            continue
        dotted = module.dotted(inner) or ""
        first, dot, rest = dotted.partition(".")
        if dotted == name or (dot and f"{short.get(first)}.{rest}" == name):
            seen.add(inner.lineno)
            yield inner.lineno


def _shortened(statements: Sequence[ast.AST], module: SourceModule) -> dict[str, str]:
    """Return the names that are given to a part of something imported, once: `amp = torch.amp`."""
    given: dict[str, list[str]] = {}
    for node in statements:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            imported = isinstance(node.value, ast.Attribute | ast.Name) and _root(node.value) in module.aliases
            given.setdefault(node.targets[0].id, []).append((module.dotted(node.value) or "") if imported else "")
    return {name: values[0] for name, values in given.items() if len(values) == 1 and values[0]}


def unread_in(live: list[ast.AST]) -> set[ast.AST]:
    """Return what belongs to local names that nobody reads: a nested function never called, an alias never used."""
    inside = {inner for node in live if isinstance(node, Function) for part in node.body for inner in ast.walk(part)}
    owned = {inner for node in live if isinstance(node, ast.ClassDef) for inner in node.body}
    bindings = [(name, node) for node in live if node in inside and node not in owned and (name := _kept_as(node))]
    idle: set[ast.AST] = set()
    while True:
        found = set(idle)
        for name, node in bindings:
            own = set(ast.walk(node))
            others = own | idle
            if not any(isinstance(n, ast.Name) and n.id == name and _reads(n) for n in live if n not in others):
                found |= own
        if found == idle:
            return idle
        idle = found


def _kept_as(node: ast.AST) -> str:
    """Return the local name under which a statement only keeps code for later, or nothing."""
    if isinstance(node, Function | ast.ClassDef):
        return "" if node.decorator_list else node.name
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id if isinstance(node.value, ast.Attribute | ast.Name | ast.Lambda) else ""
    return ""


def _reads(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Store)


def _taken(node: ast.AST) -> set[ast.AST]:
    """Return the parts whose first name is a parameter or variable of a scope around them: it hides an import.

    What a function binds hides nothing in its defaults and decorators, nor in the other methods of its class.
    """
    taken: set[ast.AST] = set()
    for scope in (node, *(inner for inner in ast.walk(node) if inner is not node and isinstance(inner, Scope))):
        names, deep = _bound_by(scope), isinstance(scope, Function | ast.Lambda)
        for part in _within(scope, deep=deep):
            if isinstance(part, ast.Attribute | ast.Name) and _root(part) in names:
                taken.add(part)
    return taken


def _bound_by(scope: ast.AST) -> set[str]:
    """Return the names that a scope binds itself, as parameters or by assignment."""
    bound = {i.id for i in _within(scope, deep=False) if isinstance(i, ast.Name) and isinstance(i.ctx, ast.Store)}
    if not isinstance(scope, Function | ast.Lambda):
        return bound
    return bound | {inner.arg for inner in ast.walk(scope.args) if isinstance(inner, ast.arg)}


def _within(scope: ast.AST, *, deep: bool) -> Iterator[ast.AST]:
    """Yield what runs in a scope: of a function its body, not its defaults; not what lies in others unless `deep`."""
    body = getattr(scope, "body", [scope]) if isinstance(scope, Scope) else [scope]
    left = list(body) if isinstance(body, list) else [body]
    while left:
        inner = left.pop()
        yield inner
        if deep or not isinstance(inner, Scope):
            left.extend(ast.iter_child_nodes(inner))
        elif isinstance(inner, Function):
            left.extend((*inner.decorator_list, inner.args))


def _root(node: ast.expr) -> str:
    """Return the first name of `a.b.c`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _mentions(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node where a name only stands: annotations, type tests, `except`, bare expressions."""
    if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation:
        yield node.annotation
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns:
        yield node.returns
    elif isinstance(node, ast.ExceptHandler) and node.type:
        yield node.type
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute | ast.Name):
        yield node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in TYPE_TESTS:
        yield from node.args[1:]
        yield from (arg for arg in node.args[:1] if isinstance(arg, ast.Attribute | ast.Name))
