"""The faults that follow from what a criterion is bound to: a use taken away, a statement of a rule out of order."""

import ast
import itertools
from collections import defaultdict
from collections.abc import Iterator

from gates.evidence.code_rules import RuleSite
from gates.evidence.source_tree import SourceTree
from gates.model import Location
from gates.proof import Source
from gates.proving.making import Change
from gates.proving.source import Text, is_docstring, is_log
from gates.syntax import SourceModule, constant_truth, live_nodes
from gates.task.code_binding import CodeBinding

NO_CONTEXT = '__import__("contextlib").nullcontext()'
Simple = ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign


def from_use(binding: CodeBinding, tree: SourceTree, file: Text, module: SourceModule) -> Iterator[Change]:
    """Take away each use that a symbol must make of a name: the call gives its argument, nothing, or no context."""
    trace = tree.symbol(binding)
    if trace is None or trace.location is None:
        return
    for use in trace.uses:
        for node in _nodes_at(file.tree, use.lines):
            for what, text in _without(node, use.name, file, module):
                yield Change(Source.USE, f"{use.name} {what}", file, node.lineno, node.end_lineno or node.lineno, text)


def lines_of(site: RuleSite) -> dict[str, frozenset[int]]:
    """Return the lines by file that a rule speaks of: those of the events on its path, or else of the whole place."""
    found: dict[str, set[int]] = defaultdict(set)
    for event in site.trace:
        path, _, line = event.rpartition(" ")[2].rpartition(":")
        if path and line.isdecimal():
            found[path].add(int(line))
    if not found:
        place = site.location
        found[place.path] = {*range(place.line or 1, (place.last_line or place.line or 1) + 1)}
    return {path: frozenset(lines) for path, lines in found.items()}


def from_rule(rule: str, lines: frozenset[int], file: Text) -> Iterator[Change]:
    """Leave out, and swap, the calls that begin in the lines that a rule speaks of."""
    for body in _bodies(file.tree):
        inside = [node for node in body if node.lineno in lines and _calls(node)]
        for node in inside:
            if isinstance(node, ast.Expr):
                text = file.with_parts((node, "pass"))
                yield _change(f"{rule}: {_short(file.of(node))} left out", file, node, node, text)
        for one, other in itertools.pairwise(inside):
            text = file.with_parts((one, file.of(other)), (other, file.of(one)))
            yield _change(f"{rule}: {_short(file.of(other))} before {_short(file.of(one))}", file, one, other, text)


def from_statements(place: Location, file: Text) -> Iterator[Change]:
    """Leave out each statement that does something, turn each condition round, return nothing in place of something."""
    first, last = place.line or 1, place.last_line or 1
    for node in live_nodes(file.tree):
        if not isinstance(node, ast.expr | ast.stmt) or not (first <= node.lineno <= last):
            continue
        for what, part, text in _spoilt(node, file):
            end = part.end_lineno or part.lineno
            yield Change(Source.GENERAL, what, file, part.lineno, end, file.with_parts((part, text)))


def _spoilt(node: ast.expr | ast.stmt, file: Text) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    if isinstance(node, ast.Expr) and not is_docstring(node) and not is_log(node.value):
        yield "statement left out", node, "yield" if isinstance(node.value, ast.Yield) else "pass"
    elif isinstance(node, ast.AugAssign) or (isinstance(node, ast.Assign) and _is_stored(node)):
        yield "statement left out", node, "pass"
    elif isinstance(node, ast.Raise):
        yield "exception not raised", node, "pass"
    elif isinstance(node, ast.If | ast.IfExp) and constant_truth(node.test) is None:
        yield "condition turned round", node.test, f"(not ({file.of(node.test)}))"
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield "returns None", node, "return None"


def _is_stored(node: ast.Assign) -> bool:
    return all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _without(node: ast.expr, name: str, file: Text, module: SourceModule) -> Iterator[tuple[str, str]]:
    """Yield what takes a use away, in words, and the file's text after it."""
    if not isinstance(node, ast.Call):
        if isinstance(node, ast.Name | ast.Attribute) and module.dotted(node) == name:
            called = any(isinstance(n, ast.Call) and n.func is node for n in ast.walk(file.tree))
            if not called:
                yield "is None", file.with_parts((node, "None"))
        return
    if module.dotted(node.func) != name:
        return
    around = next((n for n in ast.walk(file.tree) if node in ast.iter_child_nodes(n)), None)
    if isinstance(around, ast.withitem):
        yield "is no context", file.with_parts((node, NO_CONTEXT))
    elif isinstance(around, ast.Expr):
        yield "is not called", file.with_parts((around, "pass"))
    else:
        if node.args and not isinstance(node.args[0], ast.Starred):
            yield "gives its argument", file.with_parts((node, f"({file.of(node.args[0])})"))
        yield "gives None", file.with_parts((node, "None"))


def _nodes_at(tree: ast.Module, lines: tuple[int, ...]) -> list[ast.expr]:
    """Return the expressions that begin in some lines, or whose called name stands in them."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.expr):
            named = node.func if isinstance(node, ast.Call) else node
            if named.lineno in lines or (named.end_lineno or 0) in lines:
                found.append(node)
    return found


def _bodies(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                yield body


def _calls(node: ast.stmt) -> bool:
    return (
        isinstance(node, Simple)
        and any(isinstance(inner, ast.Call) for inner in ast.walk(node))
        and not (isinstance(node, ast.Expr) and is_log(node.value))
    )


def _change(title: str, file: Text, first: ast.stmt, last: ast.stmt, text: str) -> Change:
    return Change(Source.RULE, title, file, first.lineno, last.end_lineno or last.lineno, text)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 48 else f"{line[:45]}..."
