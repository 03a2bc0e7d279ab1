"""Clocks for which the code waits at one end only: whoever waits before a clock is started times a device."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.benchmarks.spans import clocks_in, spans
from gates.scan.analyses.benchmarks.waiting import waits
from gates.scan.analyses.reading.code import calls, class_of, constant, statement_of
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, walk
from gates.scan.program.project import Project

NEAR = 3


def lopsided(project: Project, module: Module, function: Function) -> Iterator[ast.Call]:
    """Yield each reading at the end of a time that nothing waits for, where something waits before its start."""
    gives = any(True for _ in inner(function, ast.Yield))  # what is timed then is elsewhere, and may wait itself
    for span in spans(function, module, project.scope_of(function, module)) if not gives else ():
        if _waits_before(module, span.begin) and span.calls and not any(waits(project, module, c) for c in span.calls):
            yield span.end


def begun_elsewhere(project: Project, module: Module, function: Function) -> tuple[ast.Call, Function] | None:
    """Return the only reading of a method, that of an end which nothing waits for, and the method that waits first."""
    clocks, owner = clocks_in(function, project.scope_of(function, module)), class_of(function, module)
    if len(clocks) != 1 or owner is None:
        return None
    if any(waits(project, module, c) for c in calls(function) if _is_before(c, clocks[0])):
        return None
    begun = set(_begun(function, clocks[0], module))
    for method in (n for n in walk(owner) if isinstance(n, ast.FunctionDef) and n is not function):
        for start in clocks_in(method, project.scope_of(method, module)):
            if begun & _kept_as(start, module) and _waits_before(module, start):
                return clocks[0], method
    return None


def _is_before(call: ast.Call, clock: ast.Call) -> bool:
    return (call.lineno, call.col_offset) < (clock.lineno, clock.col_offset)


def _waits_before(module: Module, clock: ast.Call) -> bool:
    """Return whether one of the few statements before a reading, the first after it, waits for the device."""
    statement = statement_of(clock, module)
    around = module.parents.get(statement) if statement is not None else None
    for name in ("body", "orelse", "finalbody"):
        block = getattr(around, name, None)
        if isinstance(block, list) and statement in block:
            at = block.index(statement)
            before = [tail_of(c.func) for s in block[max(at - NEAR, 0) : at] for c in calls(s)]
            waited = [number for number, tail in enumerate(before) if "synchronize" in tail]
            return bool(waited) and tail_of(clock.func) not in before[waited[-1] :]
    return False


def _kept_as(clock: ast.Call, module: Module) -> set[str]:
    """Return what a reading is kept under where it is made."""
    around = module.parents.get(clock)
    if isinstance(around, ast.Dict):
        keyed = zip(around.keys, around.values, strict=True)
        return {f"[{constant(key)}]" for key, value in keyed if value is clock and key is not None}
    targets = around.targets if isinstance(around, ast.Assign) else []
    return {name for target in targets for name in _named(target)}


def _begun(function: Function, clock: ast.Call, module: Module) -> Iterator[str]:
    """Yield what the start of a time is kept under that a function takes from a reading: `clock() - self.begun`."""
    held = _kept_as(clock, module)
    for node in inner(function, ast.BinOp):
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)):
            continue
        if node.left is clock or held & set(_named(node.left)):
            yield from _named(node.right)


def _named(node: ast.expr) -> Iterator[str]:
    """Yield the name of an attribute, or the key, that a value is kept under: `self.begun`, `row.pop("begun")`."""
    key = node.args[0] if isinstance(node, ast.Call) and tail_of(node.func) in {"pop", "get"} and node.args else None
    key = node.slice if isinstance(node, ast.Subscript) else key
    if isinstance(node, ast.Attribute):
        yield f".{node.attr}"
    elif key is not None and isinstance(text := constant(key), str):
        yield f"[{text}]"
    elif isinstance(node, ast.Name):
        yield node.id
