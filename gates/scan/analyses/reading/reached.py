"""The calls of one turn of a loop or one call of a function, each with the conditions that it stands under."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gates.scan.analyses.reading.code import LOOPS, Comprehension, callee, calls, module_of
from gates.scan.program.known import OPTIMIZER, SCHEDULER, is_called
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

DEPTH = 3
MAX_CALLS = 600
LEAVES = (ast.Continue, ast.Return, ast.Break)


@dataclass(frozen=True)
class Guard:
    """A condition that a call stands under, or that leaves before it comes to it; `None` for what is no condition."""

    test: ast.expr | None
    scope: Scope


@dataclass(frozen=True)
class Reached:
    """A call, its file, and all the conditions on the way to it."""

    call: ast.Call
    module: Module
    guards: tuple[Guard, ...]


def reached(project: Project, module: Module, root: ast.AST) -> list[Reached]:
    """Return the calls of one turn of a loop, or of one call of a function, those in the program's functions too."""
    found: list[Reached] = []
    todo: list[tuple[ast.AST, Module, tuple[Guard, ...], int]] = [(root, module, (), DEPTH)]
    entered: set[ast.AST] = {root}
    while todo and len(found) < MAX_CALLS:
        body, there, before, depth = todo.pop()
        for call in calls(body):
            own = _guards(project, there, call, body)
            if own is None:
                continue
            each = Reached(call, there, (*before, *own))
            found.append(each)
            target = callee(project, there, call) if depth else None
            if target is not None and target not in entered:
                entered.add(target)
                todo.append((target, module_of(project, target, there), each.guards, depth - 1))
    return found


def _guards(project: Project, module: Module, call: ast.Call, root: ast.AST) -> list[Guard] | None:
    """Return the conditions between a call and what is around it; `None` where it does not run once a turn."""
    scope = project.scope_at(call, module)
    found: list[Guard] = []
    inside: ast.AST = call
    for around in module.ancestors(call):
        found += [Guard(test, scope) for test in _left_before(inside, around)]
        if around is root:
            return found if inside in getattr(root, "body", ()) else None
        if isinstance(around, LOOPS) and not _is_over_parts(around):
            return None
        if isinstance(around, Comprehension | ast.ExceptHandler | ast.Lambda):
            return None
        if isinstance(around, ast.If | ast.IfExp) and inside is not around.test:
            found.append(Guard(around.test, scope))
        elif isinstance(around, ast.BoolOp) and inside is not around.values[0]:
            found.append(Guard(around.values[0], scope))
        elif isinstance(around, ast.Match):
            found.append(Guard(None, scope))
        inside = around
    return None


def _left_before(inside: ast.AST, around: ast.AST) -> Iterator[ast.expr]:
    """Yield the conditions on which a block is left before it comes to a statement."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(around, name, None)
        for before in block[: block.index(inside)] if isinstance(block, list) and inside in block else ():
            if isinstance(before, ast.If) and isinstance(before.body[-1], LEAVES):
                yield before.test


def _is_over_parts(loop: ast.AST) -> bool:
    """Return whether a loop goes over optimizers or schedulers: `for each in self.optimizers`."""
    parts = walk(loop.iter) if isinstance(loop, ast.For) else ()
    named = [tail_of(part) for part in parts if isinstance(part, ast.Name | ast.Attribute)]
    return any(is_called(name, kind) for name in named for kind in (OPTIMIZER, SCHEDULER))
