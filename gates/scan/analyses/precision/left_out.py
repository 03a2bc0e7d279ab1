"""What a function leaves out by the settings: a side of a choice that they do not take, what follows a return."""

import ast

from gates.scan.analyses.precision.precision import holds, is_on, scalers
from gates.scan.analyses.reading.code import constant, function_of, keyword
from gates.scan.program.module import Module
from gates.scan.program.nodes import walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope


def is_left_out(call: ast.Call, module: Module, scope: Scope) -> bool:
    """Return whether a call stands on a side of a choice that the settings do not take, or after a return."""
    inside: ast.AST = call
    for around in module.ancestors(call):
        for block in (getattr(around, name, None) for name in ("body", "orelse")):
            before = block[: block.index(inside)] if isinstance(block, list) and inside in block else []
            if any(_is_left_by(statement, scope) for statement in before):
                return True
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
        if isinstance(around, ast.match_case) and is_other_case(around, module, scope) is True:
            return True
        if isinstance(around, ast.If | ast.IfExp) and inside is not around.test:
            body = around.body if isinstance(around.body, list) else [around.body]
            if holds(around.test, scope) is (inside not in body):
                return True
        inside = around
    return False


def is_other_case(case: ast.match_case, module: Module, scope: Scope) -> bool | None:
    """Return whether the settings take another case of a `match` than one; `None` where that is not known."""
    match = module.parents.get(case)
    if not isinstance(match, ast.Match) or case.guard is not None:
        return None
    for each in match.cases[: match.cases.index(case) + 1]:
        side = _fits(each, match.subject, scope)
        if side is not False:
            return None if side is None else each is not case
    return True


def _fits(case: ast.match_case, subject: ast.expr, scope: Scope) -> bool | None:
    """Return whether the settings choose a case: by a value that is written out, or since it takes any."""
    parts = case.pattern.patterns if isinstance(case.pattern, ast.MatchOr) else [case.pattern]
    if isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None:
        return True if case.guard is None else None
    sides: list[bool | None] = []
    for part in parts:
        if isinstance(part, ast.MatchValue):
            sides.append(holds(ast.Compare(subject, [ast.Eq()], [part.value]), scope))
        elif isinstance(part, ast.MatchSingleton):
            sides.append(holds(ast.Compare(subject, [ast.Is()], [ast.Constant(part.value)]), scope))
        else:
            sides.append(None)
    if True in sides and case.guard is None:
        return True
    return None if {True, None} & set(sides) else False


def _is_left_by(statement: ast.stmt, scope: Scope) -> bool:
    """Return whether a function is left by a choice that the settings take."""
    leaves = isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Return | ast.Raise)
    return leaves and isinstance(statement, ast.If) and holds(statement.test, scope) is True


def leaves_unscaled(project: Project, made: ast.Call, module: Module) -> bool:
    """Return whether the branch of a call has its scaler off, or leaves where other branches alone have one on."""
    below: ast.AST = made
    for around in module.ancestors(made):
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            break
        block = around.orelse if isinstance(around, ast.If) and below in around.orelse else getattr(around, "body", [])
        if isinstance(around, ast.If | ast.match_case):
            inside = {node for statement in block for node in walk(statement)}
            own = function_of(made, module) or module.tree
            found = [call for call, _ in scalers(project, module) if function_of(call, module) is own]
            if any(call in inside for call in found) and all(_is_turned_off(call) for call in found if call in inside):
                return True
            if not isinstance(block[-1], ast.Return):
                below = around
                continue
            known = [call for call in found if call in inside or call.lineno < _begin(around, module)]
            return len(known) < len(found) and not any(map(is_on, known))
        below = around
    return False


def _is_turned_off(call: ast.Call) -> bool:
    return constant(keyword(call, "enabled")) is False


def _begin(branch: ast.AST, module: Module) -> int:
    """Return the line in which a choice begins, of which a branch is one side."""
    choice = module.parents[branch] if isinstance(branch, ast.match_case) else branch
    while isinstance(choice, ast.If) and isinstance(outer := module.parents[choice], ast.If) and choice in outer.orelse:
        choice = outer
    return getattr(choice, "lineno", 0)
