"""Where the part of a function begins that a peak of memory is read for."""

import ast

from gates.scan.analyses.benchmarks.benching import CLOCKS
from gates.scan.analyses.benchmarks.spans import clocks_in
from gates.scan.analyses.reading.code import Told, calls, function_of, loop_of
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, walk
from gates.scan.program.project import Project

NEAR = 3
WAITS = ("synchronize", "empty_cache")


def begun(project: Project, module: Module, reading: ast.Call) -> list[Told]:
    """Return where a peak should be set back, if that is far from its reading: the timer's start, or the loop's."""
    function = function_of(reading, module)
    if function is None:
        return []
    timed = [c for c in clocks_in(function, project.scope_of(function, module)) if _is_start(c, module)]
    waits = [c for c in calls(function) if tail_of(c.func) in WAITS]
    runs = [n for n in inner(function, ast.For, ast.While) if n is not loop_of(reading, module)]
    ended = [n for n in runs if (getattr(n, "end_lineno", 0) or 0) < reading.lineno]
    last = max((getattr(n, "lineno", 0) for n in ended), default=reading.lineno)
    before = [n for n in waits if n.lineno < last and ended]
    for found in (timed, before, ended):
        near = [n for n in found if getattr(n, "lineno", 0) < reading.lineno and _beside(n, reading, module)]
        if near:
            place = max(near, key=lambda n: getattr(n, "lineno", 0))
            is_far = reading.lineno - getattr(place, "lineno", 0) > NEAR
            return [("begins", module, place)] if is_far else []
    return []


def is_repeated(module: Module, reading: ast.Call) -> bool:
    """Return whether a peak is read in each of the turns of a loop that only counts how often its own work is done."""
    loop = loop_of(reading, module)
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call) or tail_of(loop.iter.func) != "range":
        return False
    counters = {n.id for n in walk(loop.target) if isinstance(n, ast.Name)}
    used = {n.id for statement in loop.body for n in walk(statement) if isinstance(n, ast.Name)}
    function = function_of(reading, module)
    handed = {arg.arg for arg in (*function.args.args, *function.args.kwonlyargs)} if function is not None else set()
    runs = {c.func.id for c in inner(loop, ast.Call) if isinstance(c, ast.Call) and isinstance(c.func, ast.Name)}
    return not counters & used and not handed & runs


def is_end_alone(module: Module, reading: ast.Call) -> bool:
    """Return whether a function that reads a peak only ends a time that is begun elsewhere."""
    function = function_of(reading, module)
    clocks = [c for c in calls(function) if tail_of(c.func) in CLOCKS] if function is not None else []
    return bool(clocks) and all(isinstance(module.parents.get(c), ast.BinOp) for c in clocks)


def _is_start(clock: ast.Call, module: Module) -> bool:
    """Return whether a reading of a clock is kept as it is, as one is that others are taken from."""
    return isinstance(module.parents.get(clock), ast.Assign | ast.AnnAssign)


def _beside(node: ast.AST, reading: ast.Call, module: Module) -> bool:
    """Return whether a place belongs to the same turn of a loop as a reading."""
    return loop_of(node, module) is loop_of(reading, module)
