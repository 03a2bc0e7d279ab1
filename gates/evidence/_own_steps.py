"""The statements of a function that a call runs, each with its lines: those of which a record of lines can speak."""

import ast
from collections.abc import Iterator

from gates.code.syntax import live_statements

Function = ast.FunctionDef | ast.AsyncFunctionDef
UNSEEN = (ast.Global, ast.Nonlocal, ast.Try, ast.TryStar)  # nothing of their own is run


def steps_of(node: Function) -> tuple[tuple[int, int], ...]:
    """Return the first and last line of each live statement, of a compound one its head; the first that is on a line.

    What stands in a function inside of this one is a matter of that one.
    """
    found: dict[int, tuple[int, int]] = {}
    for first, last in _spans(node.body):
        found.setdefault(first, (first, last))
    return tuple(found[first] for first in sorted(found))


def _spans(statements: list[ast.stmt]) -> Iterator[tuple[int, int]]:
    for node in live_statements(statements):
        if isinstance(node, UNSEEN) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            continue
        if isinstance(node, ast.AnnAssign) and node.value is None:
            continue
        first, last = node.lineno, node.end_lineno or node.lineno
        inside = [*getattr(node, "body", ()), *getattr(node, "cases", ())]
        if inside:
            begins = min(getattr(part, "lineno", None) or part.pattern.lineno for part in inside)
            last = max(first, begins - 1)
        yield first, last


def as_text(steps: tuple[tuple[int, int], ...]) -> str:
    """Return steps as short text: `2,3-5` is one in line 2 and one in lines 3 to 5."""
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in steps)


def as_steps(text: str) -> tuple[tuple[int, int], ...]:
    """Return steps from their text."""
    rows = (part.partition("-") for part in text.split(",") if part)
    return tuple((int(first), int(last or first)) for first, _, last in rows)
