"""What a condition asks, itself or in a helper: whether gradients are finite, whether mixed precision is on.

And what turns scalers and contexts on, followed to the settings of those who make them.
"""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from gates.scan.analyses.precision.finiteness import is_finite
from gates.scan.analyses.precision.precision import autocasts, is_scaler
from gates.scan.analyses.reading.code import callee, constant, function_of, keyword, module_of
from gates.scan.analyses.reading.flow import set_before
from gates.scan.analyses.settings.defaults import callers_pass
from gates.scan.program.module import Function, Module, is_property, tail_of
from gates.scan.program.nodes import inner
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

AMP = re.compile(
    r"(?i)(^|_)(use_|enable_|with_)?(amp|fp16|float16|autocast|mixed_?precision|half|mixed)"
    r"(_(enabled|on|run|training|mode|active|flag))?$"
)
SAYS_BAD = re.compile(
    r"(?i)overflow|bad|nan|(^|_)inf|skip|non_?finite|not_finite|infinite|invalid|diverge|unstable|explod"
)
SAYS_FINE = re.compile(r"(?i)finite|(^|_)(ok|okay|good|healthy|valid|sane|stable)(_|$)")
PROMISES = re.compile(r"(?i)(^|_)((is|are|all)_(all_)?finite|(and|should|may|can)_(continue|proceed|step))(_|$)")
HALF = {"float16", "fp16", "half", "16", 16, "16-mixed", "amp"}
OTHER = {"float32", "fp32", "full", "32", 32, "32-true", "bfloat16", "bf16", "bf16-mixed", "no", "none", "off"}
TURNS = {"not_", "logical_not", "logical_not_"}
MAX_HOPS = 5


@dataclass(frozen=True)
class Answer:
    """What holds where a condition is true, where that is asked, and where its name says the opposite if one does."""

    holds: bool
    wrong: tuple[ast.AST, Module] | None = None
    written: tuple[tuple[ast.AST, Module], ...] = ()

    def turned(self) -> "Answer":
        """Return the answer of the opposite condition."""
        return replace(self, holds=not self.holds)


Step = tuple[ast.expr, bool, Scope]
Place = tuple[ast.Call, Scope]


@dataclass(frozen=True)
class Switch:
    """What turns something on: each name for it, whether that is turned round, and the call that turns it round."""

    steps: tuple[Step, ...]
    place: Place

    def opposes(self, other: "Switch", *, near: bool) -> bool | None:
        """Return whether one is on where the other is off; `None` where they have no name in common, near or set."""
        pairs = [(a, b) for a in self.steps for b in other.steps if named(a[0]) == named(b[0]) != ""]
        same = {a[1] == b[1] for a, b in pairs if (_around(a) & _around(b) if near else _is_set(a) and _is_set(b))}
        return None if not same else True not in same


Ask = Callable[[Project, Module, ast.expr], "bool | None"]


def finite(project: Project, module: Module, test: ast.expr) -> Answer | None:
    """Return whether gradients are finite where a condition is true; `None` where it does not ask that."""
    return _answer(project, module, test, is_finite, MAX_HOPS)


def misnamed(project: Project, module: Module, function: Function) -> ast.AST | None:
    """Return where a function says that gradients are finite where they are not, which its name promises to tell."""
    if not PROMISES.search(function.name):
        return None
    last = function.body[-1]
    if not isinstance(last, ast.Return) or last.value is None:
        return None
    found = _answer(project, module, last.value, is_finite, MAX_HOPS)
    return last if found is not None and not found.holds else None


def mixed(project: Project, module: Module, test: ast.expr) -> Answer | None:
    """Return whether mixed precision is on where a condition is true; `None` where it does not ask that."""
    return _answer(project, module, test, _is_mixed, MAX_HOPS)


def _answer(project: Project, module: Module, test: ast.expr, ask: Ask, hops: int) -> Answer | None:
    if (inside := asked(test)) is not None:
        found = _answer(project, module, inside[0], ask, hops)
        return found.turned() if found and inside[1] else found
    if (joined := _joined(test)) is not None:
        values, is_and = joined
        parts = [_answer(project, module, part, ask, hops) for part in values]
        if is_and:
            return next((part for part in parts if part is not None), None)
        return parts[0] if all(part is not None and not part.holds for part in parts) else None
    told = _behind(project, module, test, ask, hops - 1) if hops and isinstance(test, ast.Name) else None
    known = ask(project, module, test) if told is None else None
    if told is not None or known is not None:
        return told or (Answer(known, written=((test, module),)) if known is not None else None)
    within = _inside(test)
    if within is not None and hops:
        return _answer(project, module, within, ask, hops - 1)
    return _behind(project, module, test, ask, hops - 1) if hops else None


def _joined(test: ast.expr) -> tuple[list[ast.expr], bool] | None:
    """Return the parts of `a and b`, `a | b` and `torch.logical_or(a, b)`, and whether all of them must hold."""
    if isinstance(test, ast.BoolOp):
        return test.values, isinstance(test.op, ast.And)
    if isinstance(test, ast.BinOp) and isinstance(test.op, ast.BitOr | ast.BitAnd):
        return [test.left, test.right], isinstance(test.op, ast.BitAnd)
    is_call = isinstance(test, ast.Call) and tail_of(test.func) in {"logical_or", "logical_and"}
    if not isinstance(test, ast.Call) or not is_call or len(test.args) != 2:
        return None
    return test.args, tail_of(test.func) == "logical_and"


def _inside(test: ast.expr) -> ast.expr | None:
    """Return what `bool(x)`, `torch.all(x)`, `x.any()` and `x.item()` ask of."""
    if isinstance(test, ast.GeneratorExp | ast.ListComp):
        return test.elt
    if not isinstance(test, ast.Call) or tail_of(test.func) not in {"bool", "all", "any", "item", "float"}:
        return None
    if test.args:
        return test.args[0]
    return test.func.value if isinstance(test.func, ast.Attribute) else None


def _behind(project: Project, module: Module, test: ast.expr, ask: Ask, hops: int) -> Answer | None:
    """Return what a variable or a small function of the program answers."""
    if isinstance(test, ast.Name):
        body = function_of(test, module) or module.tree
        values = set_before(body, test.id, test.lineno)
        if not values:
            return _handed(project, module, test, ask, hops)
        found = _answer(project, module, values[0][0], ask, hops) if len(values) == 1 else None
        return _told(found, test.id, values[0][0], module, ask) if found else None
    if isinstance(test, ast.Attribute):
        return _of_property(project, module, test, ask, hops)
    target = callee(project, module, test) if isinstance(test, ast.Call) else None
    return _of_function(project, module_of(project, target, module), target, ask, hops) if target is not None else None


def _of_function(project: Project, module: Module, function: Function, ask: Ask, hops: int) -> Answer | None:
    for place, found in _returned(project, module, function, ask, hops):
        return _told(found, function.name, place, module, ask)
    return None


def _of_property(project: Project, module: Module, test: ast.Attribute, ask: Ask, hops: int) -> Answer | None:
    owner = project.scope_at(test, module).class_of(test.value)
    method = project.method(owner, test.attr) if owner is not None else None
    if method is None or not is_property(method[0]):
        return None
    return _of_function(project, method[1], method[0], ask, hops)


def _handed(project: Project, module: Module, test: ast.Name, ask: Ask, hops: int) -> Answer | None:
    """Return what all that callers pass for a parameter answers, if that is one thing."""
    if ask is not is_finite:
        return None
    given = list(callers_pass(test.id, project.scope_at(test, module)))
    found = [(v, s.module, _answer(project, s.module, v, ask, hops)) for v, s in given]
    told = [_told(answer, test.id, value, there, ask) for value, there, answer in found if answer is not None]
    return told[0] if told and len(told) == len(given) and len({each.holds for each in told}) == 1 else None


def _told(found: Answer, name: str, place: ast.AST, module: Module, ask: Ask) -> Answer:
    """Return an answer with its place, where the name that it was given says the opposite."""
    if found.wrong or ask is not is_finite:
        return found
    bad = SAYS_BAD.search(name) is not None
    says = False if bad else True if SAYS_FINE.search(name) else None
    return replace(found, wrong=(place, module)) if says is not None and says is not found.holds else found


def _returned(
    project: Project, module: Module, function: Function, ask: Ask, hops: int
) -> Iterator[tuple[ast.AST, Answer]]:
    """Yield what a function returns: one expression, or one constant where a condition is true and else the other."""
    returns = [n for n in inner(function, ast.Return) if isinstance(n, ast.Return) and n.value is not None]
    if len(returns) == 1 and returns[0].value is not None:
        found = _answer(project, module, returns[0].value, ask, hops)
        if found is not None:
            yield returns[0], found
        return
    last = function.body[-1]
    if not isinstance(last, ast.Return) or not all(isinstance(constant(r.value), bool) for r in returns):
        return
    for node in inner(function, ast.If):
        if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Return):
            found = _answer(project, module, node.test, ask, hops)
            if found is not None and constant(node.body[-1].value) is not constant(last.value):
                yield last, found if constant(node.body[-1].value) else found.turned()


def _is_mixed(project: Project, module: Module, test: ast.expr) -> bool | None:
    if isinstance(test, ast.Call) and tail_of(test.func) == "is_enabled" and isinstance(test.func, ast.Attribute):
        return True if is_scaler(test.func.value, project.scope_at(test, module)) else None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compared(test)
    return True if AMP.search(named(test)) or _switches(project, module, test) else None


def _switches(project: Project, module: Module, test: ast.expr) -> bool:
    """Return whether a setting is what turns an autocast context of the same file on."""
    name = named(test)
    if not name or isinstance(test, ast.Constant):
        return False
    return (module.path, name) in project.once(_enabled)


def _enabled(project: Project) -> Iterator[tuple[str, str]]:
    """Yield the settings that turn autocast contexts on, each with its file."""
    for module in project.modules.values():
        for call, _ in autocasts(project, module):
            on = keyword(call, "enabled")
            if on is not None:
                yield module.path, named(on)


def _compared(test: ast.Compare) -> bool | None:
    right = test.comparators[0]
    items = right.elts if isinstance(right, ast.Tuple | ast.List | ast.Set) else [right]
    values = {constant(item) if isinstance(item, ast.Constant) else tail_of(item) for item in items}
    half = True if values and values <= HALF else False if values and values <= OTHER else None
    if half is None or not isinstance(test.ops[0], ast.Eq | ast.NotEq | ast.Is | ast.IsNot | ast.In | ast.NotIn):
        return None
    return half is not isinstance(test.ops[0], ast.NotEq | ast.IsNot | ast.NotIn)


def switches(node: ast.expr, scope: Scope, place: Place, before: tuple[Step, ...] = ()) -> Iterator[Switch]:
    """Yield what a switch is on each way to where it is set: through variables, and by what each caller passes."""
    inside, is_turned = _straight(node)
    steps = (*before, (inside, is_turned is not (before[-1][1] if before else False), scope))
    behind = scope.through(inside) if len(steps) < MAX_HOPS else None
    if behind is not None and isinstance(_straight(behind[0])[0], ast.Name | ast.Attribute | ast.Subscript | ast.Call):
        yield from switches(*behind, place, steps)
        return
    is_open = behind is None and isinstance(inside, ast.Name) and len(steps) < MAX_HOPS
    given = list(callers_pass(inside.id, scope)) if is_open and isinstance(inside, ast.Name) else []
    if not given:
        yield Switch(steps, place)
    for value, where in given:
        call = _call_around(value, where.module) if _straight(value)[1] else None
        yield from switches(value, where, (call, where) if call is not None else place, steps)


def _straight(node: ast.expr) -> tuple[ast.expr, bool]:
    """Return what a switch asks of, and whether it turns that round: `not x`, `x is False`, `False if x else True`."""
    turned = False
    while (found := asked(node)) is not None:
        node, turned = found[0], turned is not found[1]
    return node, turned


def asked(node: ast.expr) -> tuple[ast.expr, bool] | None:
    """Return what an expression only repeats, or turns round."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
        return node.operand, True
    if isinstance(node, ast.NamedExpr):
        return node.value, False
    if isinstance(node, ast.Call) and tail_of(node.func) in {"bool", *TURNS} and len(node.args) == 1:
        return node.args[0], tail_of(node.func) in TURNS
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TURNS - {"not_"}:
        return node.func.value, True
    if isinstance(node, ast.Compare) and isinstance(side := constant(node.comparators[0]), bool):
        differs = isinstance(node.ops[0], ast.IsNot | ast.NotEq)
        return (node.left, side is differs) if differs or isinstance(node.ops[0], ast.Is | ast.Eq) else None
    if isinstance(node, ast.IfExp) and {constant(node.body), constant(node.orelse)} == {True, False}:
        return node.test, constant(node.orelse) is True
    return None


def _call_around(node: ast.AST, module: Module) -> ast.Call | None:
    """Return the call that an expression is passed in."""
    return next((around for around in module.ancestors(node) if isinstance(around, ast.Call)), None)


def _is_set(step: Step) -> bool:
    """Return whether a name is that of a setting, which means the same wherever it stands."""
    node = step[0].func if isinstance(step[0], ast.Call) else step[0]
    return isinstance(node, ast.Attribute | ast.Subscript) and tail_of(node.value) not in {"self", "cls"}


def _around(step: Step) -> set[ast.AST]:
    """Return the function and the class that a name stands in, and what binds it."""
    node, _, scope = step
    found = scope.lookup(node.id) if isinstance(node, ast.Name) else None
    bound = (found[0].function or found[0].module.tree) if found is not None else None
    owner = scope.owner.node if scope.owner is not None else None
    return {each for each in (scope.function, owner, bound) if each is not None}


def named(node: ast.expr) -> str:
    """Return the name of a setting: of `args.amp`, `config["amp"]`, `config.get("amp")` and `getattr(args, "amp")`."""
    if isinstance(node, ast.Subscript):
        return str(constant(node.slice) or "")
    if isinstance(node, ast.Call):
        at = {"get": 0, "getattr": 1}.get(tail_of(node.func))
        return str(constant(node.args[at]) or "") if at is not None and len(node.args) > at else ""
    return tail_of(node)
