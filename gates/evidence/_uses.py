"""The lines of live code that do something with a name."""

import ast
from collections.abc import Iterator, Sequence

from gates.syntax import SourceModule, live_nodes

TYPE_TESTS = {"isinstance", "issubclass"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def use_lines(name: str, node: ast.AST, module: SourceModule) -> Iterator[int]:
    """Yield the lines of live code where a dotted name does something; a mere mention is no use."""
    live = list(live_nodes(node))
    idle = unread_in(live)
    idle |= {inner for outer in live for part in _mentions(outer) for inner in ast.walk(part)}
    own = _bound_here(node)
    short = {**_shortened(module.tree.body, module), **_shortened(live, module)}
    seen = set()
    for inner in live:
        if not isinstance(inner, ast.Attribute | ast.Name) or inner in idle or inner.lineno in seen:
            continue
        if not isinstance(inner.ctx, ast.Load) or (_root(inner) in own and _root(inner) in module.aliases):
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


def _bound_here(node: ast.AST) -> set[str]:
    """Return the names that a definition binds itself, as parameters or by assignment: they hide imports."""
    bound = {inner.arg for inner in ast.walk(node) if isinstance(inner, ast.arg)}
    return bound | {i.id for i in ast.walk(node) if isinstance(i, ast.Name) and isinstance(i.ctx, ast.Store)}


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
