"""Names in code: the lines that use one, those that a module knows, and what a class has by one."""

import ast
import builtins
from collections.abc import Collection, Iterator

from gates.code import meanings
from gates.code.syntax import Definition, SourceModule, first_line, live_nodes, live_statements
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import chain_of, walk
from gates.scan.program.project import Project

TYPE_TESTS = {"isinstance", "issubclass"}
LOOKS_UP = {"getattr", "globals", "vars", "eval", "exec", "__import__", "import_module", "attrgetter"}


def use_lines(name: str, within: Collection[ast.stmt], module: Module, program: Project) -> set[int]:
    """Return the lines of live code where a name, in full or not, does something; a mere mention is no use."""
    first, dot, rest = name.partition(".")
    called = program.scope_of(module.tree, module).dotted(ast.Name(first))
    wanted = {program.canonical(f"{top}{dot}{rest}", module) for top in (first, called)}
    mentioned = {inner for outer in walk(module.tree) for part in _mentions(outer) for inner in walk(part)}
    nodes: list[ast.Name | ast.Attribute] = [*module.names, *module.attributes]
    found = set()
    for node in (each for each in nodes if isinstance(each.ctx, ast.Load) and each not in mentioned):
        if any(first_line(part) <= node.lineno <= (part.end_lineno or 0) for part in within):
            plain = chain_of(node) == name and first not in module.aliases
            if plain or program.scope_at(node, module).dotted(node) in wanted:
                found.add(node.lineno)
    return found


def looks_up(node: ast.AST) -> bool:
    """Return whether live code may come by names that are not written in it."""
    return any(isinstance(inner, ast.Call) and tail_of(inner.func) in LOOKS_UP for inner in live_nodes(node))


def names_in(module: SourceModule) -> set[str]:
    """Return every name that a module writes or imports, and those that Python has by itself."""
    found = {*dir(builtins), *module.aliases}
    found |= {part for full in module.aliases.values() for part in full.split(".")}
    for node in ast.walk(module.tree):
        for key in ("id", "attr", "arg", "name", "asname", "module"):
            value = getattr(node, key, None)
            found |= {*value.split(".")} if isinstance(value, str) else set()
    return found


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
        yield from node.args


def parts_of(node: ast.expr) -> list[str]:
    """Return the names in `a.b.c` and `a.b.c[T]`; none of any other expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute | ast.Subscript):
        parts += [node.attr] if isinstance(node, ast.Attribute) else []
        node = node.value
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else []


def member_of(module: SourceModule, node: ast.ClassDef, name: str) -> ast.stmt | None:
    """Return what a class itself has by a name; a method that has two names is that method."""
    found = meanings.member(node.body, name)
    if isinstance(found, ast.Assign) and isinstance(found.value, ast.Name) and found.value.id != name:
        other = meanings.member(node.body, found.value.id) or meanings.member(module.tree.body, found.value.id)
        return other if isinstance(other, Definition) else found
    return found or _set_on_self(node, name) or _field_of(node, name)


def _field_of(node: ast.ClassDef, name: str) -> ast.stmt | None:
    """Return the annotation that makes a field of a dataclass, a named tuple or a model; a plain class has none."""
    bases = {parts[-1] if parts else "" for parts in map(parts_of, node.bases)}
    if not node.decorator_list and bases <= meanings.EMPTY_BASES:
        return None
    fields = (part for part in live_statements(node.body) if isinstance(part, ast.AnnAssign) and part.value is None)
    return next((part for part in fields if isinstance(part.target, ast.Name) and part.target.id == name), None)


def _set_on_self(node: ast.ClassDef, name: str) -> ast.stmt | None:
    for method in node.body:
        for inner in live_nodes(method) if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) else ():
            if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store) and inner.attr == name:
                return method
    return None


def bases_of(node: ast.ClassDef) -> Iterator[list[str]]:
    """Yield the names of the classes that a class extends, those that hold nothing left out; `[]` is an expression."""
    for base in node.bases:
        parts = parts_of(base)
        if not parts or parts[-1] not in meanings.EMPTY_BASES:
            yield parts
