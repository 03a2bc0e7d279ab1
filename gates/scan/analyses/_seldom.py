"""Conditions that hold only now and then: every so many steps, where something is due, not with each step."""

import ast
import re

from gates.scan.analyses._code import constant, keyword
from gates.scan.analyses._origins import Origins
from gates.scan.known import OPTIMIZER
from gates.scan.module import Module, tail_of
from gates.scan.nodes import text_of, walk
from gates.scan.project import Project

TRANSPARENT = re.compile(r"scaler|amp|half|fp16|mixed|clip|grad_norm|None|precision|sync_gradients")
STEADY = frozenset(
    {"isinstance", "hasattr", "callable", "is_tensor", "is_available", "issubclass", "is_floating_point"}
)
FIXED = re.compile(
    r"\.(is_cuda|requires_grad|ndim|device)\b|\bdevice\b.*['\"]c(uda|pu)|"
    r"(^|[._])(is_(local_|world_|global_)?(main|master|rank|chief)\w*|main_process|master_process|rank0|rank_zero)(\(\))?$|"
    r"rank(\(\))? (==|in|<) [(\[]?-?[01]\b|^not (\w+\.)*(local_|global_)?rank$"
)
USUAL, ODD = frozenset({"isfinite", "is_finite"}), frozenset({"isnan", "isinf"})
LBFGS = "torch.optim.LBFGS"
WRAPS = frozenset({"all", "any", "item", "bool"})
SELDOM = re.compile(r"(?i)every|interval|freq|period|should|(^|_|\b)(log|due|report|print|verbose|debug)(_|\b)")


def runs_closure(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a step of an optimizer is many passes of a closure, as each step of L-BFGS is by itself."""
    if not isinstance(call.func, ast.Attribute) or not (call.args or call.keywords):
        return False
    origins = Origins(project).of(call.func.value, project.scope_at(call, module))
    made = [(o.node, o.scope.dotted(o.node.func)) for o in origins if isinstance(o.node, ast.Call)]
    made = [(one, named) for one, named in made if project.types.is_a(named, OPTIMIZER)]
    passes = [one.args[2] if len(one.args) > 2 else keyword(one, "max_iter") for one, _ in made]
    return bool(made) and all(named == LBFGS for _, named in made) and all(constant(each) != 1 for each in passes)


def is_left_before(statement: ast.stmt, around: ast.AST) -> bool:
    """Return whether most turns leave a block before they come to a statement: `if step % 100: continue`."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(around, name, None)
        if not isinstance(block, list) or statement not in block:
            continue
        for before in block[: block.index(statement)]:
            leaves = isinstance(before, ast.If) and isinstance(before.body[-1], ast.Continue | ast.Return)
            if leaves and isinstance(before, ast.If) and _is_seldom(before.test):
                return True
    return False


def _is_seldom(test: ast.expr) -> bool:
    return counts(test) or SELDOM.search(text_of(test)) is not None


def is_asked_after(node: ast.AST, operation: ast.BoolOp) -> bool:
    """Return whether a part of a condition is asked only where one before it, that counts, holds."""
    for value in operation.values:
        if any(inside is node for inside in walk(value)):
            return False
        if counts(value) or (isinstance(operation.op, ast.And) and is_guard(value) and not is_usual(value)):
            return True
    return False


def other_side(branch: ast.If | ast.IfExp) -> list[ast.AST]:
    """Return what runs where a condition does not hold."""
    return [*branch.orelse] if isinstance(branch, ast.If) else [branch.orelse]


def is_usual(test: ast.expr, *, holds: bool = True) -> bool:
    """Return whether a condition is that a number is one, which it nearly always is."""
    while isinstance(test, ast.UnaryOp) or (isinstance(test, ast.Call) and tail_of(test.func) in WRAPS):
        if isinstance(test, ast.UnaryOp):
            holds = holds is not isinstance(test.op, ast.Not)
            test = test.operand
        elif test.args or isinstance(test.func, ast.Attribute):
            test = test.args[0] if test.args else test.func.value  # type: ignore[attr-defined]  # a method
        else:
            return False
    return isinstance(test, ast.Call) and tail_of(test.func) in (USUAL if holds else ODD)


def counts(test: ast.expr) -> bool:
    """Return whether a condition counts steps."""
    return any(isinstance(n, ast.Mod) for n in walk(test))


def is_guard(test: ast.expr) -> bool:
    """Return whether a condition holds only now and then, as far as its words tell."""
    return counts(test) or not (_is_steady(test) or TRANSPARENT.search(text_of(test)))


def _is_steady(test: ast.expr) -> bool:
    """Return whether a condition asks what does not change from step to step: what something is, where it lies."""
    if isinstance(test, ast.BoolOp):
        return all(map(_is_steady, test.values))
    if isinstance(test, ast.UnaryOp):
        return _is_steady(test.operand)
    if isinstance(test, ast.Call):
        return tail_of(test.func) in STEADY
    return FIXED.search(text_of(test)) is not None
