"""Loops over a series of settings, of which each has a result of its own: `for size in sizes: peaks[size] = ...`."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.reading.code import statement_of
from gates.scan.analyses.settings.defaults import behind_of, defaults
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project

SAME = frozenset({"sorted", "list", "tuple", "reversed", "tqdm", "trange", "enumerate", "set"})
TURN = re.compile(
    r"(?i)^_*(epoch|step|[ijknt_]|it|iter|iteration|batch|idx|index|trial|run|rep|repeat|repetition|round|turn|sample|x|"
    r"inputs?|data|images?)s?$"
)
STREAM = re.compile(r"(?i)load|batch(es)?\b(?!_?size)|dataset|\bdata\b|stream|epochs|samples|prompts|inputs|requests")


def written_out(project: Project, module: Module, iterated: ast.expr) -> list[ast.expr]:
    """Return what a loop goes over, where it is written out: there, behind its name, or as a default."""
    node = _unwrapped(iterated)
    scope = project.scope_at(iterated, module)
    if isinstance(node, ast.Name | ast.Attribute):
        behind = behind_of(node, scope) or next(defaults(node, scope), None)
        node = _unwrapped(behind[0]) if behind is not None else node
    return node.elts if isinstance(node, ast.Tuple | ast.List) else []


def is_series(module: Module, loop: ast.For, result: ast.AST) -> bool:
    """Return whether a loop over settings, not over batches or repetitions, tells each with its result."""
    over = _unwrapped(loop.iter)
    is_counted = isinstance(over, ast.Call) and tail_of(over.func) == "range" and len(over.args) < 3
    names = {n.id for n in walk(loop.target) if isinstance(n, ast.Name)}
    if is_counted or STREAM.search(text_of(over)) or any(map(TURN.search, names)):
        return False
    return any(names & {n.id for n in walk(said) if isinstance(n, ast.Name)} for said in _saying(module, loop, result))


def _saying(module: Module, loop: ast.For, result: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements in a loop that a result stands in, by itself or by its name."""
    first = statement_of(result, module)
    if first is None:
        return
    yield first
    targets = first.targets if isinstance(first, ast.Assign) else []
    held = {t.id for t in targets if isinstance(t, ast.Name)}
    for later in inner(loop, ast.Assign, ast.Expr):
        if held & {n.id for n in walk(later) if isinstance(n, ast.Name)}:
            yield later


def _unwrapped(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Call) and tail_of(node.func) in SAME and node.args:
        node = node.args[0]
    return node
