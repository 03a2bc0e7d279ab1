"""Where a window of micro-batches ends: what a condition says of that, and whether gradients are gathered so at all."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from gates.scan.analyses._code import (
    callee,
    calls,
    constant,
    function_of,
    is_backward,
    loop_of,
    module_of,
    statement_of,
)
from gates.scan.analyses._defaults import callers_pass
from gates.scan.analyses._flow import runs, set_before
from gates.scan.analyses._guards import named
from gates.scan.analyses._origins import Origins
from gates.scan.analyses._precision import is_step
from gates.scan.module import Function, Module, is_property, tail_of
from gates.scan.nodes import inner, text_of
from gates.scan.project import Project

MAX_HOPS = 5
GATHERS = re.compile(r"(?i)accum|micro|(^|_)acc(_|$)|grad_acc|virtual_batch")
OF_LOSS = re.compile(r"(?i)loss|backward|\bscale\b|^\w*(weight|factor|scale)\w* =")
Is = Callable[[Project, Module, ast.Call], bool]


@dataclass(frozen=True)
class Boundary:
    """Whether a condition holds where a window ends, the numbers that may be its size, and the files of these."""

    holds: bool
    sizes: tuple[ast.expr, ...]
    modules: tuple[Module, ...]

    def turned(self) -> "Boundary":
        """Return what the opposite condition says."""
        return replace(self, holds=not self.holds)

    def by(self, call: ast.Call, module: Module) -> "Boundary":
        """Return the same, asked of a function that may be told the size."""
        told = (*call.args, *(k.value for k in call.keywords))
        return replace(self, sizes=(*self.sizes, *told), modules=(*self.modules, module))

    @property
    def is_gathering(self) -> bool:
        """Return whether the size is that of an accumulation: it is called so, or losses are divided by it."""
        names = {named(size) for size in self.sizes} - {""}
        if any(GATHERS.search(name) for name in names):
            return True
        numbers = {constant(size) for size in self.sizes if isinstance(size, ast.Constant)}
        parts = [part for module in self.modules for part in _divisors(module)]
        return any(named(part) in names or (_is_number(part) and constant(part) in numbers) for part in parts)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _divisors(module: Module) -> Iterator[ast.expr]:
    """Yield what a file divides a loss by."""
    for node in (*module.live.get(ast.BinOp, ()), *module.live.get(ast.AugAssign, ())):
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div) and _is_of_loss(node, module):
            yield node.right if isinstance(node, ast.BinOp) else node.value
    for name in ("div", "div_"):
        for call in module.calls.get(name, ()):
            yield from call.args[:1] if _is_of_loss(call, module) else ()


def _is_of_loss(node: ast.AST, module: Module) -> bool:
    around = statement_of(node, module)
    return around is not None and OF_LOSS.search(text_of(around)) is not None


def boundary(project: Project, module: Module, test: ast.expr, hops: int = MAX_HOPS) -> Boundary | None:
    """Return whether a condition holds where a window ends; `None` where it does not count turns."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        found = boundary(project, module, test.operand, hops)
        return found.turned() if found else None
    if isinstance(test, ast.BoolOp):
        return _agreed(boundary(project, module, part, hops) for part in test.values)
    if isinstance(test, ast.NamedExpr):
        return boundary(project, module, test.value, hops)
    if isinstance(test, ast.Call) and tail_of(test.func) == "bool" and len(test.args) == 1:
        return boundary(project, module, test.args[0], hops)
    if isinstance(test, ast.Compare | ast.BinOp):
        return _counted(test, module)
    return _behind(project, module, test, hops - 1) if hops else None


def _agreed(parts: Iterable[Boundary | None]) -> Boundary | None:
    found = [part for part in parts if part is not None]
    return found[0] if found and len({part.holds for part in found}) == 1 else None


def _counted(test: ast.Compare | ast.BinOp, module: Module) -> Boundary | None:
    """Return what `i % n`, `i % n == 0`, `i % n != n - 1` and their like say."""
    counted, holds = (test, False) if isinstance(test, ast.BinOp) else _compared(test)
    is_count = isinstance(counted, ast.BinOp) and isinstance(counted.op, ast.Mod)
    if holds is None or not isinstance(counted, ast.BinOp) or not is_count:
        return None
    if isinstance(counted.left, ast.Constant | ast.JoinedStr) or constant(counted.right) in {1, 2}:
        return None  # of two, the first is as good as the last
    return Boundary(holds, (counted.right,), (module,))


def _compared(test: ast.Compare) -> tuple[ast.expr, bool | None]:
    """Return what is compared with a number, and whether that is true of one turn in a window, or of all the others."""
    left, op, right = test.left, test.ops[0], test.comparators[0]
    if isinstance(left, ast.Constant) and isinstance(op, ast.Eq | ast.NotEq):
        left, right = right, left
    if len(test.ops) > 1 or not isinstance(left, ast.BinOp):
        return left, None
    if isinstance(op, ast.Eq | ast.NotEq):
        return left, isinstance(op, ast.Eq)
    is_last = text_of(right) == f"{text_of(left.right)} - 1"
    if isinstance(op, ast.Gt | ast.GtE):
        is_rest = constant(right) == (0 if isinstance(op, ast.Gt) else 1)
        return left, False if is_rest else True if is_last and isinstance(op, ast.GtE) else None
    is_first = constant(right) == (1 if isinstance(op, ast.Lt) else 0)
    return left, True if is_first else False if is_last and isinstance(op, ast.Lt) else None


def _behind(project: Project, module: Module, test: ast.expr, hops: int) -> Boundary | None:
    """Return what a variable, an attribute, a property or a small function says."""
    if isinstance(test, ast.Call):
        target = callee(project, module, test)
        found = _returned(project, module, target, hops) if target is not None else None
        return found.by(test, module) if found else None
    if isinstance(test, ast.Attribute):
        return _of_attribute(project, module, test, hops)
    if not isinstance(test, ast.Name):
        return None
    values = set_before(function_of(test, module) or module.tree, test.id, test.lineno)
    if values:
        return boundary(project, module, values[0][0], hops) if len(values) == 1 else None
    given = list(callers_pass(test.id, project.scope_at(test, module)))
    found_all = [boundary(project, scope.module, value, hops) for value, scope in given]
    return _agreed(found_all) if all(found_all) else None


def _of_attribute(project: Project, module: Module, test: ast.Attribute, hops: int) -> Boundary | None:
    scope = project.scope_at(test, module)
    owner = scope.class_of(test.value)
    method = project.method(owner, test.attr) if owner is not None else None
    if method is not None:
        return _returned(project, method[1], method[0], hops) if is_property(method[0]) else None
    bound = [(b.node, there) for b, there in scope.attribute(test) if not isinstance(b.node, ast.Constant)]
    found = [boundary(project, s.module, n, hops) if isinstance(n, ast.expr) else None for n, s in bound]
    return _agreed(found) if all(found) else None


def _returned(project: Project, near: Module, function: Function, hops: int) -> Boundary | None:
    """Return what a function says that returns a condition, or one constant where one holds and else the other."""
    module = module_of(project, function, near)
    returns = [n for n in inner(function, ast.Return) if isinstance(n, ast.Return) and n.value is not None]
    asked = [n.value for n in returns if n.value is not None and not isinstance(constant(n.value), bool)]
    if asked:
        return _agreed(boundary(project, module, value, hops) for value in asked) if len(asked) == 1 else None
    last, tests = function.body[-1], [n for n in inner(function, ast.If) if isinstance(n, ast.If)]
    if len(tests) != 1 or not isinstance(last, ast.Return) or not isinstance(tests[0].body[-1], ast.Return):
        return None
    found = boundary(project, module, tests[0].test, hops)
    if found is None or constant(tests[0].body[-1].value) is constant(last.value):
        return None
    return found if constant(tests[0].body[-1].value) else found.turned()


def does(project: Project, module: Module, call: ast.Call, asked: Is, depth: int, *, looped: bool = True) -> bool:
    """Return whether a call is of a kind, or the function that it runs has one such."""
    if asked(project, module, call):
        return True
    for target in runs(project, module, call) if depth else ():
        there = module_of(project, target, module)
        own = [c for c in calls(target) if looped or loop_of(c, there) is None]
        if any(does(project, there, c, asked, depth - 1, looped=looped) for c in own):
            return True
    return False


def within(project: Project, module: Module, branch: list[ast.stmt], asked: Is) -> bool:
    """Return whether a branch has a call of a kind, itself or in what it runs."""
    return any(does(project, module, call, asked, 3) for statement in branch for call in calls(statement))


def steps(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call steps an optimizer, or a scaler with one."""
    is_schedule = isinstance(call.func, ast.Attribute) and "sched" in text_of(call.func.value).lower()
    return not is_schedule and is_step(project, module, call.func)


def backs(_project: Project, _module: Module, call: ast.Call) -> bool:
    """Return whether a call runs a backward pass."""
    return is_backward(call)


def clears(_project: Project, _module: Module, call: ast.Call) -> bool:
    """Return whether a call clears gradients."""
    return tail_of(call.func) == "zero_grad"


def is_asked_each_turn(project: Project, module: Module, node: ast.AST, own: set[ast.Call], hops: int = 2) -> bool:
    """Return whether a place stands after the backward pass of its turn, with no step elsewhere in the same turn."""
    loop, function = loop_of(node, module), function_of(node, module)
    body = loop or function or module.tree
    found = [c for c in calls(body) if c not in own]
    if any(does(project, module, c, steps, 3) for c in found):
        return False
    before = [c for c in found if loop_of(c, module) is loop and c.lineno < node.lineno]  # type: ignore[attr-defined]
    if any(does(project, module, c, backs, 2, looped=False) for c in before):
        return True
    if loop is not None or function is None or not hops or any(does(project, module, c, backs, 2) for c in found):
        return False
    return any(
        is_asked_each_turn(project, there, call, {call, *calls(call)}, hops - 1)
        for call, there in Origins(project).called(function)
        if call not in own
    )
