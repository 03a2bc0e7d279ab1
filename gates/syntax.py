"""Python source as a tree: names resolved through imports, live code only."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

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


def module_file(name: str, roots: tuple[Path, ...]) -> Path | None:
    """Return the file of a dotted module name under one of the roots."""
    relative = Path(*name.split("."))
    for root in roots:
        for candidate in (root / relative.with_suffix(".py"), root / relative / "__init__.py"):
            if candidate.is_file():
                return candidate
    return None


def member(body: list[ast.stmt], name: str) -> ast.stmt | None:
    """Return the last live definition, assignment or import of a name in a body."""
    found: ast.stmt | None = None
    for node in live_statements(body):
        if isinstance(node, Definition) and node.name == name:
            found = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                found = node
        elif isinstance(node, ast.Import | ast.ImportFrom) and any(
            (alias.asname or alias.name.split(".")[0]) == name for alias in node.names
        ):
            found = node
    return found


def live_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that can run, those of `if`, `try` and `with` blocks included, definitions unopened."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            truth = constant_truth(node.test)
            yield from live_statements(node.body if truth is not False else [])
            yield from live_statements(node.orelse if truth is not True else [])
        elif isinstance(node, ast.Try | ast.TryStar):
            for block in (
                node.body,
                *(handler.body for handler in node.handlers),
                node.orelse,
                node.finalbody,
            ):
                yield from live_statements(block)
        elif isinstance(node, ast.With | ast.AsyncWith):
            yield from live_statements(node.body)
        if isinstance(node, ast.Return | ast.Raise | ast.Break | ast.Continue):
            return


def live_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield every node that can run: not under `if False`, not after a `return`; docstrings are only text."""
    yield node
    for name, value in ast.iter_fields(node):
        if isinstance(node, ast.If | ast.While) and name in {"body", "orelse"}:
            truth = constant_truth(node.test)
            if (name == "body" and truth is False) or (isinstance(node, ast.If) and name == "orelse" and truth is True):
                continue
        if isinstance(value, ast.AST):
            yield from live_nodes(value)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, ast.AST):
                    yield from live_nodes(item)
                if isinstance(item, ast.Return | ast.Raise | ast.Break | ast.Continue):
                    break


def constant_truth(test: ast.expr) -> bool | None:
    """Return what a condition always is, or `None`; `TYPE_CHECKING` is never true at run time."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = constant_truth(test.operand)
        return None if inner is None else not inner
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
