"""Loops that gather what a measuring function returns for one entry of a table after the other."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.benchmarks.benching import is_benchmark
from gates.scan.analyses.reading.code import Comprehension, callee, function_of, statement_of, tail_text
from gates.scan.analyses.settings.series import STREAM, TURN, is_series
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project

MAX_CALLS = 10
HOPS = 2


def gathered(project: Project, module: Module, reading: ast.Call) -> Iterator[ast.AST]:
    """Yield the loops over a series that keep what a benchmark returns with a reading of its own in it."""
    function = function_of(reading, module)
    if function is not None and is_benchmark(reading, module) and _is_returned(reading, function, module):
        yield from _around_calls(project, function, HOPS)


def _around_calls(project: Project, function: Function, hops: int) -> Iterator[ast.AST]:
    for call, module in project.named.get(function.name, [])[:MAX_CALLS]:
        if callee(project, module, call) is not function:
            continue
        if (loop := _keeping(call, module)) is not None:
            yield loop
        outer = function_of(call, module)
        if hops and outer is not None and _is_returned(call, outer, module):
            yield from _around_calls(project, outer, hops - 1)


def _is_returned(value: ast.expr, function: Function, module: Module) -> bool:
    """Return whether a function returns a value, or a variable that it is put in."""
    statement = statement_of(value, module)
    if isinstance(statement, ast.Return):
        return True
    names = {tail_of(t) for t in statement.targets} if isinstance(statement, ast.Assign) else set()
    returned = (n.value for n in inner(function, ast.Return) if isinstance(n, ast.Return) and n.value is not None)
    return any(isinstance(n, ast.Name) and n.id in names for each in returned for n in walk(each))


def _keeping(call: ast.Call, module: Module) -> ast.For | Comprehension | None:
    """Return the loop that makes a call with what tells its turns apart, and keeps each result."""
    below: ast.AST = call
    for around in module.ancestors(call):
        if isinstance(around, ast.For) and below in around.body:
            return around if _is_kept(call, module) and is_series(module, around, call) else None
        if isinstance(around, Comprehension) and not isinstance(below, ast.comprehension):
            return around if _goes_over(around, call) else None
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.While):
            return None
        below = around
    return None


def _is_kept(call: ast.Call, module: Module) -> bool:
    """Return whether the result of a call is added to others, or put in a variable, and not only printed."""
    statement = statement_of(call, module)
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        return True
    added = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(added, ast.Call) and tail_text(added.func).split()[-1:] == ["append"]


def _goes_over(around: Comprehension, call: ast.Call) -> bool:
    """Return whether a call in a comprehension gets what tells the turns apart, which are no repetitions."""
    over = around.generators[0]
    names = {n.id for n in walk(over.target) if isinstance(n, ast.Name)}
    is_counted = isinstance(over.iter, ast.Call) and tail_of(over.iter.func) == "range"
    if len(around.generators) > 1 or is_counted or STREAM.search(text_of(over.iter)) or any(map(TURN.search, names)):
        return False
    passed = (*call.args, *(option.value for option in call.keywords))
    return any(isinstance(n, ast.Name) and n.id in names for value in passed for n in walk(value))
