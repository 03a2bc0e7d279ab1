"""How often a test is tried: its parametrizations, and the loops in it, as far as their lengths are written out."""

import ast
from collections.abc import Iterator, Mapping

from gates.evidence._goalposts.assertions import written

Cases = tuple[str, tuple[str, ...] | None]
MOST = 10_000


def cases(decorators: list[ast.expr], tables: Mapping[str, ast.expr]) -> Iterator[Cases]:
    """Yield the cases of each parametrization; of one that is made while running, nothing but its names."""
    for mark in decorators:
        if isinstance(mark, ast.Call) and written(mark.func).endswith("parametrize"):
            said = {keyword.arg: keyword.value for keyword in mark.keywords}
            said.update(zip(("argnames", "argvalues"), mark.args, strict=False))
            if "argnames" in said and "argvalues" in said:
                yield _names(said["argnames"]), items(said["argvalues"], tables)


def loops(body: list[ast.stmt], tables: Mapping[str, ast.expr]) -> Iterator[Cases]:
    """Yield what each loop goes over."""
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.For):
                yield written(node.target), items(node.iter, tables)


def items(table: ast.expr, tables: Mapping[str, ast.expr]) -> tuple[str, ...] | None:
    """Return the items of a table that is written out, or of a range of numbers."""
    table = tables.get(written(table), table) if isinstance(table, ast.Name | ast.Attribute) else table
    if isinstance(table, ast.List | ast.Tuple | ast.Set):
        starred = any(isinstance(item, ast.Starred) for item in table.elts)
        return None if starred else tuple(written(item) for item in table.elts)
    if isinstance(table, ast.Dict):
        return tuple(written(key) for key in table.keys) if all(table.keys) else None  # type: ignore[arg-type]
    return _range(table) if isinstance(table, ast.Call) and written(table.func) == "range" else None


def _range(call: ast.Call) -> tuple[str, ...] | None:
    try:
        numbers = range(*(int(ast.literal_eval(arg)) for arg in call.args))
    except (ValueError, TypeError):
        return None
    return tuple(map(str, numbers)) if len(numbers) <= MOST else None


def _names(names: ast.expr) -> str:
    """Return the names of a parametrization, in whichever way they are written."""
    parts = names.elts if isinstance(names, ast.List | ast.Tuple) else [names]
    text = ",".join(str(part.value) if isinstance(part, ast.Constant) else written(part) for part in parts)
    return ", ".join(name.strip() for name in text.split(",") if name.strip())
