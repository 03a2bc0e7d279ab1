"""Where a window of micro-batches ends: what a condition says of that, and whether gradients are gathered so at all."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from gates.scan.analyses.precision.guards import asked, named
from gates.scan.analyses.precision.precision import is_step
from gates.scan.analyses.reading.asides import is_aside
from gates.scan.analyses.reading.code import (
    callee,
    calls,
    constant,
    function_of,
    is_backward,
    loop_of,
    module_of,
    statement_of,
)
from gates.scan.analyses.reading.flow import runs, set_before
from gates.scan.analyses.reading.origins import Origins
from gates.scan.analyses.settings.given import given
from gates.scan.analyses.training.amounts import amounts, names_of
from gates.scan.analyses.training.counters import counted
from gates.scan.program.module import Function, Module, is_property, tail_of
from gates.scan.program.nodes import inner, text_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

MAX_HOPS = 5
TRUTH = "__bool__"
GATHERS = re.compile(r"(?i)accum|micro|(^|_)acc(_|$)|grad_acc|virtual_batch")
OF_LOSS = re.compile(r"(?i)loss|backward|\bscale\b|^\w*(weight|factor|scale)\w* =")
Is = Callable[[Project, Module, ast.Call], bool]


@dataclass(frozen=True)
class Boundary:
    """Whether a condition holds where a window ends, the numbers that may be its size, and the files of these."""

    holds: bool
    sizes: tuple[tuple[ast.expr, Scope], ...]
    modules: tuple[Module, ...]

    def turned(self) -> "Boundary":
        """Return what the opposite condition says."""
        return replace(self, holds=not self.holds)

    def by(self, scope: Scope, told: Iterable[ast.expr] = ()) -> "Boundary":
        """Return the same, asked from elsewhere of a function that may be told the size."""
        sizes = (*self.sizes, *((value, scope) for value in told))
        return replace(self, sizes=sizes, modules=(*self.modules, scope.module))

    @property
    def is_gathering(self) -> bool:
        """Return whether the size is that of an accumulation: it is called so, or losses are divided by it."""
        found = [node for size, scope in self.sizes for node in amounts(scope.project, size, scope)]
        names = names_of(found)
        if any(GATHERS.search(name) for name in names):
            return True
        numbers = {constant(size) for size in found if isinstance(size, ast.Constant)}
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
    if (inside := asked(test)) is not None:
        found = boundary(project, module, inside[0], hops)
        return found.turned() if found and inside[1] else found
    if isinstance(test, ast.BoolOp | ast.IfExp):
        parts = test.values if isinstance(test, ast.BoolOp) else [test.body, test.orelse]
        return _agreed(boundary(project, module, part, hops) for part in parts)
    if isinstance(test, ast.Compare | ast.BinOp):
        return _counted(project.scope_at(test, module), test)
    return _behind(project, module, test, hops - 1) if hops else None


def _agreed(parts: Iterable[Boundary | None]) -> Boundary | None:
    found = [part for part in parts if part is not None]
    return found[0] if found and len({part.holds for part in found}) == 1 else None


def _counted(scope: Scope, test: ast.Compare | ast.BinOp) -> Boundary | None:
    """Return what `i % n`, `i % n == 0`, `i % n != n - 1`, a counter that is put back by hand, and their like say."""
    part, holds = (test, False) if isinstance(test, ast.BinOp) else _compared(_spelt_out(test, scope))
    if not (isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod)):
        full = counted(test, scope.module) if isinstance(test, ast.Compare) else None
        return Boundary(full[0], ((full[1], scope),), (scope.module,)) if full is not None else None
    if holds is None or isinstance(part.left, ast.Constant | ast.JoinedStr) or constant(part.right) in {1, 2}:
        return None  # of two, the first is as good as the last
    return Boundary(holds, ((part.right, scope),), (scope.module,))


def _spelt_out(test: ast.Compare, scope: Scope) -> ast.Compare:
    """Return a comparison of a remainder that a variable holds with that remainder in its place."""
    if not isinstance(test.left, ast.Name):
        return test
    values = set_before(scope.function or scope.module.tree, test.left.id, test.lineno)
    is_one = len(values) == 1 and isinstance(values[0][0], ast.BinOp)
    return ast.copy_location(ast.Compare(values[0][0], test.ops, test.comparators), test) if is_one else test


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
        held = test.func
        own = _method(project, module, held.value, held.attr) if isinstance(held, ast.Attribute) else None
        target = callee(project, module, test) or own
        found = _returned(project, module, target, hops) if target is not None else None
        told = (*test.args, *(k.value for k in test.keywords))
        return found.by(project.scope_at(test, module), told) if found else None
    truth = _method(project, module, test, TRUTH) if isinstance(test, ast.Name | ast.Attribute) else None
    if truth is not None:
        said = _returned(project, module, truth, hops)
        return said.by(project.scope_at(test, module)) if said else None
    if isinstance(test, ast.Attribute):
        return _of_attribute(project, module, test, hops)
    return _of_name(project, module, test, hops) if isinstance(test, ast.Name) else None


def _of_name(project: Project, module: Module, test: ast.Name, hops: int) -> Boundary | None:
    """Return what a variable was set to last, here or around the function, or what callers pass for a parameter."""
    scope = project.scope_at(test, module)
    found = scope.lookup(test.id)
    own = function_of(test, module)
    for body in dict.fromkeys((own or module.tree, (found[0].function if found else None) or module.tree)):
        values = set_before(body, test.id, test.lineno)
        if values:
            return boundary(project, module, values[0][0], hops) if len(values) == 1 else None
    passed = given(test.id, scope)
    said = [boundary(project, where.module, value, hops) for value, where in passed]
    return _agreed(said) if all(said) else None


def _of_attribute(project: Project, module: Module, test: ast.Attribute, hops: int) -> Boundary | None:
    scope = project.scope_at(test, module)
    method = _method(project, module, test.value, test.attr)
    if method is not None:
        said = _returned(project, module, method, hops) if is_property(method) else None
        return said.by(scope) if said else None
    own = inner(scope.function, ast.Assign) if scope.function is not None else ()
    here = [n.value for n in own if isinstance(n, ast.Assign) and text_of(n.targets[0]) == text_of(test)]
    bound = [(b.node, there.module) for b, there in scope.attribute(test)] if not here else []
    told = [*((n, module) for n in here), *((n, m) for n, m in bound if isinstance(n, ast.expr))]
    if len(told) < len(here) + len(bound):
        return None
    found = [boundary(project, m, n, hops) for n, m in told if not isinstance(n, ast.Constant)]
    return _agreed(found) if all(found) else None


def _method(project: Project, module: Module, held: ast.expr, name: str) -> Function | None:
    """Return an object's method of a name: of its class, or of the only one that is handed in."""
    if not project.method_names[name]:
        return None
    scope = project.scope_at(held, module)
    owner = scope.class_of(held)
    owners = [owner] if owner is not None else Origins(project).classes(held, scope)
    found = project.method(owners[0], name) if len(owners) == 1 else None
    return found[0] if found is not None else None


def _returned(project: Project, near: Module, function: Function, hops: int) -> Boundary | None:
    """Return what a function says that returns a condition, or one constant where some hold and else the other."""
    module = module_of(project, function, near)
    returns = [n for n in inner(function, ast.Return) if isinstance(n, ast.Return) and n.value is not None]
    given = [n.value for n in returns if n.value is not None and not isinstance(constant(n.value), bool)]
    if given:
        return _agreed(boundary(project, module, value, hops) for value in given) if len(given) == 1 else None
    return _by_branches(project, module, function, hops)


def _by_branches(project: Project, module: Module, function: Function, hops: int) -> Boundary | None:
    """Return what a function says that returns one constant where some conditions hold, and else the other."""
    tests = [n for n in inner(function, ast.If) if isinstance(n, ast.If)]
    ends, last = {_ending(n.body[-1]) for n in tests}, function.body[-1]
    while isinstance(last, ast.If) and last.orelse:
        last = last.orelse[-1]
    if len(ends) != 1 or {*ends, _ending(last)} != {True, False}:
        return None
    found = _agreed(boundary(project, module, n.test, hops) for n in tests)
    return found.turned() if found and False in ends else found


def _ending(last: ast.stmt) -> object:
    """Return the constant that a branch returns at its end; `None` where that is not yes or no."""
    value = constant(last.value) if isinstance(last, ast.Return) else None
    return value if isinstance(value, bool) else None


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
    found = [c for c in calls(body) if c not in own and not is_aside(c, node, module)]
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
