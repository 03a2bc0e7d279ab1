"""Conditions that hold only now and then: every so many steps, where something is due, not with each step."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.reading.code import callee, calls, class_of, constant, function_of, keyword, loop_of, tail_text
from gates.scan.analyses.reading.flow import set_before
from gates.scan.analyses.reading.origins import Origins
from gates.scan.program.known import OPTIMIZER
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project

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
OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
NUMBERS = frozenset({"enumerate", "range", "trange", "count"})
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


def is_optimizer_step(call: ast.Call) -> bool:
    """Return whether a call is a step of an optimizer or of the scaler of its losses, by its name."""
    if tail_of(call.func) != "step" or not isinstance(call.func, ast.Attribute):
        return False
    return re.search(r"(?i)opt|scaler", tail_of(call.func.value)) is not None


def left_before(statement: ast.stmt, around: ast.AST) -> Iterator[tuple[ast.If, list[ast.stmt]]]:
    """Yield where most turns leave a block before they come to a statement, `if step % 100: continue`, and the rest."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(around, name, None)
        if not isinstance(block, list) or statement not in block:
            continue
        for at, before in enumerate(block[: block.index(statement)]):
            leaves = isinstance(before, ast.If) and isinstance(before.body[-1], ast.Continue | ast.Return)
            if leaves and isinstance(before, ast.If) and _is_seldom(before.test):
                yield before, block[at + 1 :]


def left_until(project: Project, module: Module, statement: ast.stmt, around: ast.AST) -> list[ast.stmt]:
    """Return what runs only now and then, as most turns leave its block before: until so many are counted, once."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(around, name, None)
        if not isinstance(block, list) or statement not in block:
            continue
        for at, before in enumerate(block[: block.index(statement)]):
            if isinstance(before, ast.If) and isinstance(before.body[-1], ast.Continue | ast.Return):
                turn = Turn(project, module, before, block[at + 1 :])
                if turn.is_mostly_left(before.test, holds=True):
                    return block[at + 1 :]
    return []


class Turn:
    """A branch that leaves a loop or a function, and what follows where it does not."""

    def __init__(self, project: Project, module: Module, branch: ast.If, after: list[ast.stmt]) -> None:
        self._project, self._module, self._branch, self._after = project, module, branch, after
        self._function = function_of(branch, module) or module.tree
        self._loop = loop_of(branch, module)

    def is_mostly_left(self, test: ast.expr, *, holds: bool, hops: int = 2) -> bool:
        """Return whether a condition holds, or does not, in all turns but a few."""
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, holds = test.operand, not holds
        if isinstance(test, ast.BoolOp):
            return any(self.is_mostly_left(value, holds=holds, hops=hops) for value in test.values)
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            op = type(test.ops[0])
            return self._is_outside(test.left, op if holds else OPPOSITE.get(op, op), test.comparators[0])
        if isinstance(test, ast.Name) and hops:
            found = set_before(self._function, test.id, test.lineno)
            if len(found) == 1 and isinstance(found[0][0], ast.Compare | ast.UnaryOp | ast.BoolOp):
                return self.is_mostly_left(found[0][0], holds=holds, hops=hops - 1)
        if not isinstance(test, ast.Name | ast.Attribute) or not self._lasts(test):
            return False
        given = self._given(text_of(test))
        if holds and self._is_counted_down(test):
            return bool(given)
        is_once = holds or not self._set_elsewhere(text_of(test))
        return is_once and any(isinstance(v, ast.Constant) and bool(v.value) is holds for v in given)

    def _is_outside(self, left: ast.expr, op: type[ast.cmpop], right: ast.expr) -> bool:
        """Return whether turns are left while a counter has not come to its end, is past it, or is not the one."""
        if op is ast.IsNot:
            is_held = isinstance(right, ast.Constant) and right.value is None and self._lasts(left)
            return is_held and any(not isinstance(v, ast.Constant) for v in self._given(text_of(left)))
        if op in (ast.NotEq, ast.NotIn):
            return any(self._is_counter(side) for side in (left, right))
        if op in (ast.Gt, ast.GtE):
            left, right = right, left
        elif op not in (ast.Lt, ast.LtE):
            return False
        if any(self._lasts(n) and self._given(text_of(n)) for n in _parts(self._meant(left))):
            return not self._is_counted_down(left)
        if self._is_counter(right) and not self._given(text_of(right)):
            return True
        given = self._given(text_of(right))
        if self._is_counted_down(right):
            return bool(given)
        return self._lasts(right) and any(isinstance(v, ast.BinOp) for v in given)

    def _meant(self, node: ast.expr) -> ast.expr:
        """Return what a variable of the turn is reckoned from: of `gone = step - self.last`, the difference."""
        if not isinstance(node, ast.Name):
            return node
        found = set_before(self._function, node.id, self._branch.lineno)
        return found[0][0] if len(found) == 1 and isinstance(found[0][0], ast.BinOp) else node

    def _is_counter(self, node: ast.expr) -> bool:
        """Return whether an expression is counted up: a number of the turn, an attribute that is added to."""
        if not isinstance(node, ast.Name | ast.Attribute):
            return False
        for loop in self._module.ancestors(self._branch):
            if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and tail_of(loop.iter.func) in NUMBERS:
                first = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else loop.target
                if text_of(first) == text_of(node):
                    return True
        return self._lasts(node) and self._counted(text_of(node), ast.Add)

    def _is_counted_down(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Name | ast.Attribute):
            return False
        return self._counted(text_of(node), ast.Sub) and not self._counted(text_of(node), ast.Add)

    def _lasts(self, node: ast.expr) -> bool:
        """Return whether what is set in one turn is there in the next."""
        if isinstance(node, ast.Attribute):
            return tail_of(node.value) == "self"
        if not isinstance(node, ast.Name):
            return False
        outer = (
            n.names for n in inner(self._function, ast.Global, ast.Nonlocal) if isinstance(n, ast.Global | ast.Nonlocal)
        )
        if any(node.id in names for names in outer):
            return True
        if self._loop is None or any(isinstance(n, ast.Name) and n.id == node.id for n in walk(self._target())):
            return False
        sets = (
            n for n in inner(self._loop, ast.Assign) if isinstance(n, ast.Assign) and n.lineno < self._branch.lineno
        )
        return not any(node.id in map(text_of, _targets(n)) and not _adds(n, node.id, ast.Add) for n in sets)

    def _target(self) -> ast.AST:
        return self._loop.target if isinstance(self._loop, ast.For | ast.AsyncFor) else ast.Pass()

    def _counted(self, text: str, way: type[ast.operator]) -> bool:
        """Return whether a name or an attribute is counted up, or down, in the function or its class."""
        where = class_of(self._branch, self._module) if text.startswith("self.") else None
        return any(_adds(n, text, way) for n in walk(where or self._function))

    def _set_elsewhere(self, text: str) -> bool:
        """Return whether another method than the constructor sets an attribute, too."""
        owner = class_of(self._branch, self._module)
        methods = (n for n in (owner.body if owner is not None else ()) if isinstance(n, ast.FunctionDef))
        others = (m for m in methods if m.name != "__init__" and m is not self._function)
        return any(_set_in(method, text) for method in others)

    def _given(self, text: str) -> list[ast.expr]:
        """Return what a name is set to after the branch: there, or in a method of the object that is called there."""
        found = [value for part in self._after for value in _set_in(part, text)]
        for part in self._after if text.startswith("self.") else ():
            for call in calls(part):
                target = callee(self._project, self._module, call) if tail_text(call.func).startswith("self ") else None
                found += _set_in(target, text) if target is not None else []
        return found


def _parts(node: ast.expr) -> list[ast.expr]:
    """Return what a number is reckoned from: of `step - self.last`, what is taken off; of `len(rows)`, the rows."""
    if isinstance(node, ast.BinOp):
        return [*_parts(node.left), *_parts(node.right)]
    if isinstance(node, ast.Call):
        return [part for arg in node.args for part in _parts(arg)] if tail_of(node.func) in {"len", "sum"} else []
    return [node] if isinstance(node, ast.Name | ast.Attribute) else []


def _set_in(node: ast.AST, text: str) -> list[ast.expr]:
    """Return what a name is set to, or emptied or taken from by, other than by counting it up."""
    found: list[ast.expr] = []
    for n in (node, *inner(node, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Call)):
        if isinstance(n, ast.Call):
            is_emptied = isinstance(n.func, ast.Attribute) and n.func.attr == "clear" and text_of(n.func.value) == text
            found += [n] if is_emptied else []
        elif isinstance(n, ast.Assign | ast.AnnAssign | ast.AugAssign) and n.value is not None:
            is_new = not any(isinstance(part, ast.Mult) for part in walk(n.value)) and not _adds(n, text, ast.Add)
            found += [n.value] if is_new and text in map(text_of, _targets(n)) else []
    return found


def _targets(node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> list[ast.expr]:
    listed = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [part for each in listed for part in (each.elts if isinstance(each, ast.Tuple) else [each])]


def _adds(node: ast.AST, text: str, way: type[ast.operator]) -> bool:
    """Return whether a statement counts: `n += 1`, `n = n + 1`."""
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, way) and text_of(node.target) == text
    if (
        not isinstance(node, ast.Assign)
        or not isinstance(node.value, ast.BinOp)
        or text not in map(text_of, node.targets)
    ):
        return False
    return isinstance(node.value.op, way) and text_of(node.value.left) == text


def _is_seldom(test: ast.expr) -> bool:
    return counts(test) or _is_in_rounds(test) or SELDOM.search(text_of(test)) is not None


def _is_in_rounds(test: ast.expr) -> bool:
    """Return whether a condition asks whether a round is over: `seen // 4000 == told`."""
    sides = [test.left, *test.comparators] if isinstance(test, ast.Compare) else []
    return any(isinstance(side, ast.BinOp) and isinstance(side.op, ast.FloorDiv) for side in sides)


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
