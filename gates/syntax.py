"""Python source as a tree: names resolved through imports, live code only."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from gates.stub import is_overload, is_stub, stands_for_nothing

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
ENDS_PROCESS = frozenset({"sys.exit", "os._exit", "os.abort"})


@dataclass(frozen=True)
class SourceModule:
    """One parsed file: its path relative to the project, its tree, and what its imports are called in full."""

    path: str
    tree: ast.Module
    aliases: dict[str, str] = field(default_factory=dict)

    def dotted(self, node: ast.expr) -> str | None:
        """Return the full dotted name of `a.b.c`, imports resolved; `None` for anything else."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        return ".".join([self.aliases.get(node.id, node.id), *reversed(parts)])


class Unparsed(Exception):
    """A file that cannot be read as Python, and why; it is never taken for clean."""


def parse(text: bytes, path: str, package: str) -> SourceModule:
    """Parse a module; raise `Unparsed` with the place and the reason."""
    try:
        tree = ast.parse(text, filename=path)
    except SyntaxError as error:
        raise Unparsed(f"{path}:{error.lineno or 1}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unparsed(f"{path}:1: {error or type(error).__name__}") from error
    return SourceModule(path, tree, dict(_aliases(tree, package)))


def member(body: list[ast.stmt], name: str) -> ast.stmt | None:
    """Return the live statement that gives a name its meaning: a definition before an assignment before an import.

    A name has none that is deleted, or in the end set to `None` or defined to do nothing (see `stub_of`); in a `try`
    or `if` with a fallback the definition that does something counts. What is given another value below is that.
    """
    found = _meanings(body, name)
    node = found.get("definition")
    later = replaced_by(body, name, node.lineno) if node else None
    if later is not None:
        other = later.value.id if isinstance(later.value, ast.Name) else ""
        return _meanings(body, other).get("definition", later)
    return found.get("definition") or found.get("assignment") or found.get("import")


def stub_of(body: list[ast.stmt], name: str) -> ast.stmt | None:
    """Return the statement by which a name stands for nothing: an empty body, a refusal, or `None` after all."""
    return _meanings(body, name).get("stub")


def emptied(body: list[ast.stmt], name: str) -> ast.stmt | None:
    """Return the statement that in any case sets an attribute of a class to what does nothing: `A.go = None`."""
    for node in _settled(body):
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Attribute) and ast.unparse(target) == name for target in node.targets
        ):
            return node if _is_nothing(node.value, name, body) else None
    return None


def _meanings(body: list[ast.stmt], name: str) -> dict[str, ast.stmt]:
    found: dict[str, ast.stmt] = {}
    settled = {id(node) for node in _settled(body)}
    for node in live_statements(body):
        kind = _meaning(node, name, body)
        if kind == "stub" and id(node) not in settled:
            found.setdefault(kind, node)  # one way among others
        elif kind:
            if kind in {"stub", "deleted"}:
                found.clear()
            found[kind] = node
            if kind == "definition":
                found.pop("stub", None)
    return found


def _meaning(node: ast.stmt, name: str, body: list[ast.stmt]) -> str:
    """Return what a statement makes of a name, or nothing where it does not speak of it."""
    if isinstance(node, ast.Delete):
        named = any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
        return "deleted" if named else ""
    if isinstance(node, Definition):
        if node.name != name or is_overload(node):
            return ""
        return "stub" if is_stub(node) else "definition"
    if isinstance(node, ast.Import | ast.ImportFrom):
        return "import" if any((alias.asname or alias.name.split(".")[0]) == name for alias in node.names) else ""
    if name not in _assigned(node):
        return ""
    plain = isinstance(node, ast.Assign) and any(isinstance(target, ast.Name) for target in node.targets)
    return "stub" if plain and _is_nothing(node.value, name, body) else "assignment"  # type: ignore[attr-defined]  # it is one


def _is_nothing(value: ast.expr, name: str, body: list[ast.stmt]) -> bool:
    """Return whether a name is set to `None`, or to what does nothing."""
    if isinstance(value, ast.Name) and value.id != name:
        other = [part for part in body if isinstance(part, Definition) and part.name == value.id]
        return bool(other) and is_stub(other[-1])
    return stands_for_nothing(value)


def _settled(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a body that run in any case."""
    for node in body:
        yield node
        if isinstance(node, ast.If) and (truth := constant_truth(node.test)) is not None:
            yield from _settled(node.body if truth else node.orelse)
        elif isinstance(node, ast.With):
            yield from _settled(node.body)
        if leaves(node):
            return


def star_imports(body: list[ast.stmt]) -> list[ast.ImportFrom]:
    """Return the `from x import *` of a body."""
    return [n for n in live_statements(body) if isinstance(n, ast.ImportFrom) and n.names[0].name == "*"]


def _assigned(node: ast.stmt) -> set[str]:
    """Return the names that a statement itself binds; a bare annotation binds nothing."""
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return set()
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.For | ast.AsyncFor):
        targets = [node.target]
    elif isinstance(node, ast.With | ast.AsyncWith):
        targets = [item.optional_vars for item in node.items if item.optional_vars]
    elif isinstance(node, ast.Expr):
        targets = [inner.target for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr)]
    inside = [inner for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)]
    return {name.id for name in inside if isinstance(name.ctx, ast.Store)}  # `a.b = 1` gives `a` no other value


def live_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that can run, those of `if`, `try` and `with` blocks too, definitions unopened."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            truth = constant_truth(node.test)
            yield from live_statements(node.body if truth is not False else [])
            yield from live_statements(node.orelse if truth is not True else [])
        elif isinstance(node, ast.Try | ast.TryStar):
            for block in (node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody):
                yield from live_statements(block)
        elif isinstance(node, ast.With | ast.AsyncWith | ast.For | ast.AsyncFor | ast.While):
            yield from live_statements([] if never_loops(node) else node.body)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                yield from live_statements(case.body)
        if leaves(node):
            return


def live_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield every node that can run: not under `if False`, not after a `return` or an endless loop."""
    yield node
    dead = _dead_fields(node)
    for name, value in ast.iter_fields(node):
        if name in dead:
            continue
        if isinstance(value, ast.AST):
            yield from live_nodes(value)
        elif isinstance(value, list):
            for item in _until_dead(node, value):
                yield from live_nodes(item)


def _dead_fields(node: ast.AST) -> set[str]:
    """Return the parts of a node that its own constant condition keeps from running."""
    if not isinstance(node, ast.If | ast.While | ast.IfExp):
        return {"body"} if isinstance(node, ast.For) and never_loops(node) else set()
    truth = constant_truth(node.test)
    if truth is False:
        return {"body"}
    return {"orelse"} if truth is True else set()


def _until_dead(node: ast.AST, items: list[object]) -> Iterator[ast.AST]:
    """Yield the items of a list up to the one after which nothing runs."""
    decided = isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or)
    for item in items:
        if not isinstance(item, ast.AST):
            continue
        yield item
        if isinstance(item, ast.stmt) and leaves(item):
            return
        if isinstance(node, ast.BoolOp) and isinstance(item, ast.expr) and constant_truth(item) is decided:
            return


def leaves(node: ast.stmt) -> bool:
    """Return whether nothing after a statement of the same block can run."""
    if isinstance(node, ast.Return | ast.Raise | ast.Break | ast.Continue):
        return True
    if isinstance(node, ast.Assert):
        return constant_truth(node.test) is False
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in ENDS_PROCESS
    if isinstance(node, ast.With | ast.AsyncWith):
        return False  # it may swallow what its body raises
    if isinstance(node, ast.If):
        truth = constant_truth(node.test)
        body, orelse = any(map(leaves, node.body)), any(map(leaves, node.orelse))
        return body if truth is True else orelse if truth is False else body and orelse
    if isinstance(node, ast.While) and constant_truth(node.test) is True:
        return not any(isinstance(inner, ast.Break) for inner in ast.walk(node))
    return False


def constant_truth(test: ast.expr) -> bool | None:
    """Return what a condition always is, or `None`; `TYPE_CHECKING` is never true at run time."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = constant_truth(test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        truths = [constant_truth(value) for value in test.values]
        decided = isinstance(test.op, ast.Or)
        return decided if decided in truths else None if None in truths else not decided
    if isinstance(test, ast.Tuple | ast.List | ast.Compare):
        return _compared(test) if isinstance(test, ast.Compare) else None if test.elts else False
    name = test.id if isinstance(test, ast.Name) else test.attr if isinstance(test, ast.Attribute) else ""
    return {"TYPE_CHECKING": False, "__debug__": True}.get(name)


def _compared(test: ast.Compare) -> bool | None:
    """Return what a comparison of two constants always is: `1 == 2`."""
    values = [part.value for part in (test.left, *test.comparators) if isinstance(part, ast.Constant)]
    if len(values) != 2 or len(test.ops) > 1 or not isinstance(test.ops[0], ast.Eq | ast.NotEq):
        return None
    return (values[0] == values[1]) is isinstance(test.ops[0], ast.Eq)


def never_loops(node: ast.stmt) -> bool:
    """Return whether a loop is over nothing: `for _ in ():`, `for _ in range(0):`, `while False:`."""
    test = node.test if isinstance(node, ast.While) else node.iter if isinstance(node, ast.For) else None
    return test is not None and (constant_truth(test) is False or ast.unparse(test) == "range(0)")


def replaced_by(body: list[ast.stmt], name: str, after: int) -> ast.Assign | None:
    """Return the assignment that in any case gives a name another value after a line, not made of the old one."""
    found: ast.Assign | None = None
    for node in _settled(body):
        if isinstance(node, ast.Assign) and node.lineno > after and name in _assigned(node):
            made_of_it = any(isinstance(inner, ast.Name) and inner.id == name for inner in ast.walk(node.value))
            found = None if made_of_it else node
    return found


def _blocks(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the statements of a file, and what holds some, level by level; expressions hold none."""
    level: list[ast.AST] = [tree]
    while level:
        yield from level
        level = [
            child
            for node in level
            for name in ("body", "handlers", "orelse", "finalbody", "cases")
            if isinstance(found := getattr(node, name, None), list)
            for child in found
        ]


def _aliases(tree: ast.Module, package: str) -> Iterator[tuple[str, str]]:
    for node in _blocks(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                short = alias.asname or alias.name.split(".")[0]
                yield short, alias.name if alias.asname else short
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{origin(node, package)}.{alias.name}"


def origin(node: ast.ImportFrom, package: str) -> str:
    """Return the absolute name of the module that a `from` import names."""
    if not node.level:
        return node.module or ""
    parts = package.split(".") if package else []
    base = parts[: len(parts) - (node.level - 1)]
    return ".".join([*base, *([node.module] if node.module else [])])
