"""Where a window of micro-batches ends: what a condition says of that, and whether gradients are gathered so at all."""

import ast
from collections.abc import Callable

from gates.scan.analyses.precision.guards import asked
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
)
from gates.scan.analyses.reading.flow import runs, set_before
from gates.scan.analyses.reading.origins import Origins
from gates.scan.analyses.settings.given import given
from gates.scan.analyses.training.boundaries import Boundary, agreed
from gates.scan.analyses.training.counters import counted
from gates.scan.program.module import Function, Module, is_property, tail_of
from gates.scan.program.nodes import inner, text_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

MAX_HOPS = 5
TRUTH = "__bool__"
Is = Callable[[Project, Module, ast.Call], bool]


def boundary(project: Project, module: Module, test: ast.expr, hops: int = MAX_HOPS) -> Boundary | None:
    """Return whether a condition holds where a window ends; `None` where it does not count turns."""
    if (inside := asked(test)) is not None:
        found = boundary(project, module, inside[0], hops)
        return found.turned() if found and inside[1] else found
    if isinstance(test, ast.BoolOp | ast.IfExp):
        parts = test.values if isinstance(test, ast.BoolOp) else [test.body, test.orelse]
        return agreed(boundary(project, module, part, hops) for part in parts)
    if isinstance(test, ast.Compare | ast.BinOp):
        return _counted(project.scope_at(test, module), test)
    return _behind(project, module, test, hops - 1) if hops else None


def _counted(scope: Scope, test: ast.Compare | ast.BinOp) -> Boundary | None:
    """Return what `i % n`, `i % n == 0`, `i % n != n - 1`, a counter that is put back by hand, and their like say."""
    part, holds = (test, False) if isinstance(test, ast.BinOp) else _compared(_spelt_out(test, scope))
    if not (isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod)):
        full = counted(test, scope.module) if isinstance(test, ast.Compare) else None
        return _written(full[0], full[1], test, scope) if full is not None else None
    if holds is None or isinstance(part.left, ast.Constant | ast.JoinedStr) or constant(part.right) in {1, 2}:
        return None  # of two, the first is as good as the last
    return _written(holds, part.right, test, scope)


def _written(holds: bool, size: ast.expr, test: ast.expr, scope: Scope) -> Boundary:
    return Boundary(holds, ((size, scope),), (scope.module,), ((test, scope.module),))


def _called(project: Project, module: Module, value: ast.expr, name: str, hops: int) -> Boundary | None:
    """Return what a condition says that is given a name."""
    found = boundary(project, module, value, hops)
    return found.called(name, value, module) if found is not None else None


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
            return _called(project, module, values[0][0], test.id, hops) if len(values) == 1 else None
    passed = given(test.id, scope)
    said = [_called(project, where.module, value, test.id, hops) for value, where in passed]
    return agreed(said) if all(said) else None


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
    found = [_called(project, m, n, test.attr, hops) for n, m in told if not isinstance(n, ast.Constant)]
    return agreed(found) if all(found) else None


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
        return _called(project, module, given[0], function.name, hops) if len(given) == 1 else None
    return _by_branches(project, module, function, hops)


def _by_branches(project: Project, module: Module, function: Function, hops: int) -> Boundary | None:
    """Return what a function says that returns one constant where some conditions hold, and else the other."""
    tests = [n for n in inner(function, ast.If) if isinstance(n, ast.If)]
    ends, last = {_ending(n.body[-1]) for n in tests}, function.body[-1]
    while isinstance(last, ast.If) and last.orelse:
        last = last.orelse[-1]
    if len(ends) != 1 or {*ends, _ending(last)} != {True, False}:
        return None
    found = agreed(boundary(project, module, n.test, hops) for n in tests)
    found = found.turned() if found and False in ends else found
    return found.called(function.name, tests[0].test, module) if found else None


def _ending(last: ast.stmt) -> object:
    """Return the constant that a branch returns at its end; `None` where that is not yes or no."""
    value = constant(last.value) if isinstance(last, ast.Return) else None
    return value if isinstance(value, bool) else None


def does(
    project: Project, module: Module, call: ast.Call, asked: Is, depth: int, *, looped: bool = True,
    around: frozenset[Function | None] = frozenset(),
) -> bool:  # fmt: skip
    """Return whether a call is of a kind, or the function that it runs, none that it stands in, has one such."""
    if asked(project, module, call):
        return True
    around = (
        around | {function_of(call, module)} if depth else around
    )  # `model.train()` seems to run the `train` it is in
    for target in set(runs(project, module, call)) - around if depth else ():
        there = module_of(project, target, module)
        own = [c for c in calls(target) if looped or loop_of(c, there) is None]
        if any(does(project, there, c, asked, depth - 1, looped=looped, around=around) for c in own):
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
    callers = list(Origins(project).called(function))
    if not callers and not found:
        return _is_fired(project, module, function)
    return any(
        is_asked_each_turn(project, there, call, {call, *calls(call)}, hops - 1)
        for call, there in callers
        if call not in own
    )


def _is_fired(project: Project, module: Module, function: Function) -> bool:
    """Return whether a method that nobody calls by its name is handed on by an object that gathers gradients in turns.

    It is the one method that steps, such as the handler of an event that is fired after each backward pass.
    """
    owner = project.scope_of(function, module).owner
    if owner is None or project.named.get(function.name):
        return False
    others = [call for method in owner.methods.values() if method is not function for call in calls(method)]
    in_turns = (call for call in others if loop_of(call, module) is not None)
    return any(backs(project, module, call) for call in in_turns) and not any(
        does(project, module, call, steps, 3) for call in others
    )
