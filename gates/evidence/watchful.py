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
    telling = dict(_telling(module.tree, first, last))
    for choice in inside:
        asked = choice.subject if isinstance(choice, ast.Match) else choice.test
        for node in ast.walk(asked):
            said = _asks(node) or telling.get(_name(node))
            if said:
                return Watchful(symbol=symbol, location=Location(path=place.path, line=choice.lineno), asks=said)
    return None


def _telling(tree: ast.Module, first: int, last: int) -> Iterator[tuple[str, str]]:
    """Yield the names that stand for whether a test looks on, and the functions that return it, with how they ask.

    Names are those of the module, and those between two lines.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node not in tree.body and not first <= node.lineno <= last:
            continue
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign | ast.Return) else None
        said = next((text for inner in ast.walk(value) if (text := _asks(inner))), "") if value else ""
        if not said:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        yield from ((target.id, said) for target in targets if isinstance(target, ast.Name))
        if isinstance(node, ast.Return):
            functions = (one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
            yield from ((function.name, said) for function in functions if _returns(function, node))


def _returns(function: ast.AST, statement: ast.Return) -> bool:
    return any(node is statement for node in ast.walk(function))


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


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


__all__ = ["Watchful", "watchful"]
