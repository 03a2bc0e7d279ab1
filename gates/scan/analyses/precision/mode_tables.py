"""Modes of precision that are rows of a table: which of them has a scaler on beside which type."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from gates.scan.analyses.precision.precision import autocasts, holds, option, scalers, type_named
from gates.scan.analyses.reading.branches import LEAVES
from gates.scan.analyses.reading.code import function_of, keyword
from gates.scan.analyses.reading.keyed import MAPPINGS, field_of
from gates.scan.analyses.settings.defaults import behind_of
from gates.scan.analyses.settings.tables import table_of
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

Found = tuple[ast.Call, Module]


class Pick(NamedTuple):
    """A part of whichever row of a table: the table that is written out, where, and the name or place of the part."""

    table: ast.Dict
    scope: Scope
    part: str | int

    def of(self, row: ast.expr) -> ast.expr | None:
        """Return the part of one row."""
        if isinstance(self.part, int):
            parts = row.elts if isinstance(row, ast.Tuple | ast.List) else []
            return parts[self.part] if self.part < len(parts) else None
        if isinstance(row, ast.Call) and tail_of(row.func) in MAPPINGS:
            return keyword(row, self.part)
        if isinstance(row, ast.Dict):
            return ast.Subscript(row, ast.Constant(self.part), ast.Load())
        return ast.Attribute(row, self.part, ast.Load())


def scaled_in_rows(project: Project, kind: str) -> Iterator[Found]:
    """Yield the scalers that a row of a table turns on, beside the type that the same row has for autocast."""
    for module in project.modules.values():
        for call, scope in scalers(project, module):
            switch = _picked(option(call, "enabled", scope), scope)
            is_known = switch is not None and not _is_chosen(call, module, scope)
            types = _types(project, switch) if switch is not None and is_known else ()
            if switch is not None and any(_is_beside(switch, each, kind) for each in types):
                yield call, module


def _is_chosen(call: ast.Call, module: Module, scope: Scope) -> bool:
    """Return whether a scaler may be made for some of the rows alone: by a choice above it, or one that leaves."""
    enabled = text_of(option(call, "enabled", scope) or call)
    below: ast.AST = call
    for around in module.ancestors(call):
        if isinstance(around, ast.match_case):
            return True
        if isinstance(around, ast.If | ast.IfExp) and below is not around.test and not _is_same(around.test, enabled):
            return True
        block = next((b for _, b in ast.iter_fields(around) if isinstance(b, list) and below in b), [])
        before = (s for s in block[: block.index(below)] if isinstance(s, ast.If)) if block else ()
        if any(_leaves_by_row(each, enabled, function_of(call, module) or module.tree) for each in before):
            return True
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
        below = around
    return False


def _is_same(test: ast.expr, enabled: str) -> bool:
    """Return whether a choice asks for the switch itself, or for nothing but the device."""
    is_device = not isinstance(test, ast.BoolOp) and re.search(r"\bcuda\b|\bdevice\b", text_of(test)) is not None
    return text_of(test) == enabled or is_device


def _leaves_by_row(node: ast.If, enabled: str, body: ast.AST) -> bool:
    """Return whether a branch leaves by what a row holds, or by its key: not where there is no such row."""
    test = node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test
    is_absent = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotIn)
    if not isinstance(node.body[-1], LEAVES) or is_absent or text_of(test) == enabled:
        return False
    return any(re.search(rf"\b{re.escape(word)}\b", text_of(test)) for word in _words(enabled, body))


def _words(enabled: str, body: ast.AST) -> set[str]:
    """Return what a row of a switch and its key go by: `spec` and `mode`, of `spec = MODES[mode]`."""
    found = {enabled, "float16", "bfloat16"}
    for node in inner(body, ast.Assign):
        targets = node.targets if isinstance(node, ast.Assign) else []
        parts = [e for t in targets for e in (t.elts if isinstance(t, ast.Tuple) else [t])]
        if isinstance(node, ast.Assign) and any(re.match(rf"{re.escape(text_of(p))}(?!\w)", enabled) for p in parts):
            found |= {text_of(part) for part in parts} | {n.id for n in walk(node.value) if isinstance(n, ast.Name)}
    return found


def _types(project: Project, switch: Pick) -> Iterator[Pick]:
    """Yield the types of autocast contexts that are parts of the rows of the same table."""
    for module in project.modules.values():
        for call, scope in autocasts(project, module):
            found = _picked(option(call, "dtype", scope), scope)
            if found is not None and found.table is switch.table:
                yield found


def _is_beside(switch: Pick, kinds: Pick, kind: str) -> bool:
    """Return whether some row turns the scaler on and has the type."""
    for row in switch.table.values:
        is_on, told = switch.of(row), kinds.of(row)
        if is_on is None or told is None:
            continue
        if type_named(told, kinds.scope) == kind and holds(is_on, switch.scope) is True:
            return True
    return False


def _picked(node: ast.expr | None, scope: Scope) -> Pick | None:
    """Return which part of a row an expression is: `spec.dtype`, `spec["dtype"]`, a name of `a, b = TABLE[key]`."""
    if isinstance(node, ast.Name):
        found = scope.lookup(node.id)
        items = [b for b in found[1] if b.kind == "item"] if found is not None else []
        if found is None or len(found[1]) != 1 or len(items) != 1:
            return None
        made = items[0].node
        return _part(made, found[0], items[0].index) if isinstance(made, ast.expr) else None
    field = field_of(node) if node is not None else None
    behind = behind_of(field[0], scope) if field is not None else None
    if field is None:
        return None
    return _part(*(behind or (field[0], scope)), field[1])


def _part(node: ast.expr, scope: Scope, part: str | int) -> Pick | None:
    """Return the part of a row that is taken out of a table by a key."""
    found = table_of(node, scope)
    return Pick(*found, part) if found is not None else None
