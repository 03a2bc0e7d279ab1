"""Readings of a clock: of the standard library, by a helper that does nothing else, by what holds one."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.reading.code import callee, calls, functions
from gates.scan.analyses.settings.defaults import behind_of
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.program.signatures import parameters

CLOCKS = {
    "time.time",
    "time.perf_counter",
    "time.monotonic",
    "time.perf_counter_ns",
    "time.monotonic_ns",
    "timeit.default_timer",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
}
TAILS = frozenset(name.rpartition(".")[2] for name in CLOCKS)
HELD = frozenset({"clock", "_clock", "timer", "_timer", "now", "_now", "timer_func"})


def is_clock(call: ast.expr, scope: Scope) -> bool:
    """Return whether a call reads a clock: itself, in a helper that does nothing else, or by a variable."""
    if not isinstance(call, ast.Call):
        return False
    if scope.dotted(call.func) in CLOCKS:
        return True
    readers = scope.project.once(_readers)[0]
    if not call.args and tail_of(call.func) in readers:
        return callee(scope.project, scope.module, call) in readers[tail_of(call.func)]
    return not call.args and tail_of(call.func) in HELD and _holds(call.func, scope)


def clock_names(project: Project, module: Module) -> frozenset[str]:
    """Return the last parts of the names by which a file may read a clock."""
    renamed = {name for name, dotted in module.aliases.items() if dotted in CLOCKS}
    return TAILS | renamed | project.once(_readers)[0].keys() | HELD


def _holds(func: ast.expr, scope: Scope) -> bool:
    """Return whether a variable was set to a clock, or is a parameter's whose default is one."""
    behind = behind_of(func, scope) or scope.through(func)
    if behind is None:
        return False
    value, there = behind
    handed = parameters(there.function) if isinstance(there.function, ast.FunctionDef) else {}
    if isinstance(value, ast.Name) and value.id in handed and there.outer is not None:
        given, there = handed[value.id], there.outer
        return given is not None and there.dotted(given) in CLOCKS
    return there.dotted(value) in CLOCKS


def _readers(project: Project) -> Iterator[dict[str, set[Function]]]:
    """Yield the functions of a program that return the reading of a clock and do nothing else, by their names."""
    found: dict[str, set[Function]] = {}
    for module in project.modules.values():
        known = TAILS | {name for name, dotted in module.aliases.items() if dotted in CLOCKS}
        for function in functions(module) if known & module.calls.keys() else ():
            if _only_reads(project.scope_of(function, module), function):
                found.setdefault(function.name, set()).add(function)
    yield found


def _only_reads(scope: Scope, function: Function) -> bool:
    """Return whether all that a function calls is a clock, whose reading it returns, in other units maybe."""
    made = list(calls(function))
    given = [n.value for n in inner(function, ast.Return) if isinstance(n, ast.Return) and n.value is not None]
    if not made or len(given) != 1 or any(scope.dotted(call.func) not in CLOCKS for call in made):
        return False
    return made == [n for n in walk(given[0]) if isinstance(n, ast.Call)] and not any(
        isinstance(n, ast.Sub) for n in walk(given[0])
    )
