"""The conditions that a node of a function is run under, and what the function gives in each world."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from gates.scan.analyses.reading.branches import LEAVES
from gates.scan.analyses.settings.truths import same, turned
from gates.scan.analyses.settings.worlds import Asking, Known, Truths, Values, World, common, few, few_truths
from gates.scan.program.module import Module
from gates.scan.program.scope import Scope

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class Guard(NamedTuple):
    """A condition, or a case of a choice between several, and whether it holds where the node is run."""

    test: ast.expr | ast.match_case
    holds: bool
    fails: bool = False  # else the program ends with an error


def guards_of(node: ast.AST, module: Module, *, leaving: bool) -> Iterator[Guard]:
    """Yield the conditions around a node in its function, those that leave before it too if asked, the first last."""
    below = node
    for around in module.ancestors(node):
        if leaving:
            yield from _left_before(below, around)
        if isinstance(around, FUNCTIONS):
            return
        if isinstance(around, ast.If | ast.IfExp) and below is not around.test:
            body = around.body if isinstance(around.body, list) else [around.body]
            yield from _apart(around.test, holds=below in body)
        if isinstance(around, ast.match_case):
            yield Guard(around, holds=True)
        below = around


def _left_before(below: ast.AST, around: ast.AST) -> Iterator[Guard]:
    """Yield the conditions under which a block is left before one of its statements."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(around, name, None)
        if isinstance(block, list) and below in block:
            for statement in reversed(block[: block.index(below)]):
                if isinstance(statement, ast.If) and isinstance(statement.body[-1], LEAVES):
                    yield from _apart(statement.test, holds=False, fails=isinstance(statement.body[-1], ast.Raise))


def _apart(test: ast.expr, *, holds: bool, fails: bool = False) -> Iterator[Guard]:
    """Yield each of the conditions that must all be the same way: the last first."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _apart(test.operand, holds=not holds, fails=fails)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is holds:
        for part in reversed(test.values):
            yield from _apart(part, holds=holds, fails=fails)
    else:
        yield Guard(test, holds, fails)


def met(ask: Asking, guards: list[Guard], scope: Scope, world: World) -> Truths:
    """Return whether all of several conditions are as they must be."""
    open_: Truths = [(True, world)]
    ended: Truths = []
    for guard in reversed(guards):
        following: Truths = []
        for before, where in open_:
            for truth, there in held(ask, guard, scope, where):
                if truth is False:
                    ended.append((False, there))
                else:
                    following.append((None if None in {truth, before} else True, there))
        open_ = few_truths(following)
    return few_truths([*open_, *ended])


def held(ask: Asking, guard: Guard, scope: Scope, world: World) -> Truths:
    """Return whether a condition is as it must be."""
    if isinstance(guard.test, ast.match_case):
        match = scope.module.parents.get(guard.test)
        if not isinstance(match, ast.Match):
            return [(None, world)]
        return [(case is guard.test, where) for case, where in taken(ask, match, scope, world)]
    return turned(ask.truths(guard.test, scope, world), turn=not guard.holds)


def taken(ask: Asking, match: ast.Match, scope: Scope, world: World) -> list[tuple[ast.match_case | None, World]]:
    """Return the cases of a choice that may be taken, each with the world in which it is; `None` for none of them."""
    open_, found = [world], []
    for case in match.cases:
        following: list[World] = []
        for where in open_:
            for truth, there in _fits(ask, case, match.subject, scope, where):
                found += [(case, there)] if truth is not False else []
                following += [there] if truth is not True else []
        open_ = following
    return [*found, *((None, where) for where in open_)]


def _fits(ask: Asking, case: ast.match_case, subject: ast.expr, scope: Scope, world: World) -> Truths:
    patterns = case.pattern.patterns if isinstance(case.pattern, ast.MatchOr) else [case.pattern]
    if isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None:
        return [(True, world)] if case.guard is None else ask.truths(case.guard, scope, world)
    found: Truths = []
    open_ = [world]
    for pattern in patterns:
        pairs: Truths = []
        for where in open_:
            if not isinstance(pattern, ast.MatchValue | ast.MatchSingleton):
                pairs.append((None, where))
                continue
            value = pattern.value if isinstance(pattern, ast.MatchValue) else ast.Constant(pattern.value)
            for left, there in ask.values(subject, scope, where):
                pairs += [p for right, last in ask.values(value, scope, there) for p in same(left, right, last)]
        found += [pair for pair in pairs if pair[0] is not False]
        open_ = [where for truth, where in pairs if truth is False]
    return few_truths([*found, *((False, where) for where in open_)])


def given_back(ask: Asking, body: list[ast.stmt], scope: Scope, world: World) -> Values:
    """Return what the statements of a function give back, each with the world in which they do."""
    found, through = _run(ask, body, scope, world)
    return few([*found, *((Known(None), where) for where in through)])


def _run(ask: Asking, body: list[ast.stmt], scope: Scope, world: World) -> tuple[Values, list[World]]:
    """Return what statements give back, and the worlds in which they are run to their end."""
    found: Values = []
    open_ = [world]
    for statement in body:
        following: list[World] = []
        for where in open_:
            values, through = _of(ask, statement, scope, where)
            found += values
            following += through
        open_ = common(following)
    return few(found), open_


def _of(ask: Asking, statement: ast.stmt, scope: Scope, world: World) -> tuple[Values, list[World]]:
    if isinstance(statement, ast.Return):
        value = statement.value
        return (ask.values(value, scope, world) if value is not None else [(Known(None), world)]), []
    if isinstance(statement, ast.Raise):
        return [], []
    if isinstance(statement, ast.If):
        blocks = [
            (block, where)
            for truth, where in ask.truths(statement.test, scope, world)
            for block, side in ((statement.body, True), (statement.orelse, False))
            if truth is None or truth is side
        ]
    elif isinstance(statement, ast.Match):
        blocks = [(case.body if case else [], where) for case, where in taken(ask, statement, scope, world)]
    elif isinstance(statement, ast.With | ast.AsyncWith | ast.Try):
        blocks = [(statement.body, world)]
    else:
        return [], [world]
    ran = [_run(ask, block, scope, where) for block, where in blocks]
    return [value for values, _ in ran for value in values], [where for _, through in ran for where in through]
