"""Python source as a tree: names resolved through imports, live code only."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


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

    A name that is deleted, or set to `None` at the end, has none; in a `try` with a fallback the definition counts.
    """
    found: dict[str, ast.stmt] = {}
    for node in live_statements(body):
        if isinstance(node, ast.Delete):
            if any(isinstance(target, ast.Name) and target.id == name for target in node.targets):
                found.clear()
        elif isinstance(node, Definition):
            if node.name == name and not is_hollow(node):
                found["definition"] = node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            if any((alias.asname or alias.name.split(".")[0]) == name for alias in node.names):
                found["import"] = node
        elif name in _assigned(node):
            if isinstance(node, ast.Assign) and _is_none(node.value) and node in body:
                found.clear()  # `name = None` after all
            else:
                found["assignment"] = node
    return found.get("definition") or found.get("assignment") or found.get("import")


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def star_imports(body: list[ast.stmt]) -> list[ast.ImportFrom]:
    """Return the `from x import *` of a body."""
    return [n for n in live_statements(body) if isinstance(n, ast.ImportFrom) and n.names[0].name == "*"]


def is_hollow(node: Definition) -> bool:
    """Return whether a definition is only a promise: an `@overload`, or a body that is nothing but a refusal."""
    names = [
        d.attr if isinstance(d, ast.Attribute) else d.id
        for d in node.decorator_list
        if isinstance(d, ast.Name | ast.Attribute)
    ]
    if "overload" in names:
        return True
    if "abstractmethod" in names or isinstance(node, ast.ClassDef):
        return False
    rest = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    if len(rest) != 1 or not isinstance(rest[0], ast.Raise) or rest[0].exc is None:
        return False
    raised = rest[0].exc.func if isinstance(rest[0].exc, ast.Call) else rest[0].exc
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"


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
    return {inner.id for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)}


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
            yield from live_statements(node.body)
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
        return set()
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
    name = test.id if isinstance(test, ast.Name) else test.attr if isinstance(test, ast.Attribute) else ""
    return False if name == "TYPE_CHECKING" else None


def _aliases(tree: ast.Module, package: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
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
