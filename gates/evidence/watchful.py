"""Code that asks whether a test looks on, and does something else where none does."""

import ast
from collections.abc import Iterator

from gates.code.syntax import SourceModule
from gates.model import Location, Model

HARNESSES = frozenset({"pytest", "_pytest", "unittest", "nose", "coverage", "hypothesis"})
VARIABLES = frozenset({"PYTEST_CURRENT_TEST", "PYTEST_VERSION", "PYTEST_XDIST_WORKER", "GATES_WITNESS", "GATES_WORKER"})
TRACERS = frozenset({"sys.gettrace", "sys.getprofile", "sys.monitoring.get_tool"})
CHOICES = (ast.If, ast.IfExp, ast.While)


class Watchful(Model):
    """A symbol that asks whether a test looks on: where, and how."""

    symbol: str
    location: Location
    asks: str


def watchful(symbol: str, place: Location, module: SourceModule) -> Watchful | None:
    """Return where a function or class chooses its way by whether a test looks on; nothing of a plugin of pytest."""
    if any(name.split(".")[0] in {"pytest", "_pytest"} for name in _imported(module.tree)):
        return None
    try:
        return _watchful(symbol, place, module)
    except RecursionError:  # an expression of thousands of parts
        return None


def _watchful(symbol: str, place: Location, module: SourceModule) -> Watchful | None:
    first, last = place.line or 1, place.last_line or place.line or 1
    inside = [
        node for node in ast.walk(module.tree)
        if isinstance(node, (*CHOICES, ast.Match)) and first <= node.lineno <= last
    ]  # fmt: skip
    for choice in inside:
        asked = choice.subject if isinstance(choice, ast.Match) else choice.test
        for node in ast.walk(asked):
            if said := _asks(node):
                return Watchful(symbol=symbol, location=Location(path=place.path, line=choice.lineno), asks=said)
    return None


def _asks(node: ast.AST) -> str:
    """Return how an expression asks for a test, as it is written, or nothing."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn):
        named = isinstance(node.left, ast.Constant) and node.left.value in HARNESSES | VARIABLES
        where = ast.unparse(node.comparators[0])
        return ast.unparse(node) if named and where.endswith(("modules", "environ")) else ""
    if isinstance(node, ast.Call):
        called, first = ast.unparse(node.func), node.args[0] if node.args else None
        of = first.value if isinstance(first, ast.Constant) else None
        if called in TRACERS:
            return ast.unparse(node)
        if called.endswith(("environ.get", "getenv")):
            return ast.unparse(node) if of in VARIABLES else ""
        return ast.unparse(node) if called.endswith("modules.get") and of in HARNESSES else ""
    return ""


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
