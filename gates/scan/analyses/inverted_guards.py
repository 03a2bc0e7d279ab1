"""Guards of a scaled step that stand the wrong way round."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from gates.scan.analyses.precision.finiteness import BAD, FINITE, is_blind
from gates.scan.analyses.precision.guards import Answer, Switch, finite, misnamed, mixed, named, switches
from gates.scan.analyses.precision.precision import BRAIN, autocasts, dtype_of, is_scaler, is_step, option, scalers
from gates.scan.analyses.precision.rejections import cleared, denial
from gates.scan.analyses.precision.unusable import absent, loaded_off, of_disabled, use
from gates.scan.analyses.reading.absence import lacking, loads
from gates.scan.analyses.reading.branches import rest_of
from gates.scan.analyses.reading.code import broken, callee, calls, constant, function_of, functions, module_of, nodes
from gates.scan.analyses.training import windows
from gates.scan.analyses.training.boundaries import Boundary
from gates.scan.analyses.training.unsynced import unsynced
from gates.scan.program.known import SCALER as SCALERS
from gates.scan.program.known import SCHEDULER, is_called
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import text_of, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.site import Site

WORDS = ("caler*", "isfinite", "isnan", "isinf", "zero_grad*", "load_state_dict*", "no_sync", "no_backward_sync")
LEARNT = re.compile(r"(?i)loss|grad|total|objective")
CAST = re.compile(r"(?i)^(use_|enable_|with_)?(amp|mixed_precision)(_enabled)?$")


def look(project: Project) -> Iterator[Site]:
    """Yield each scaler used where it is `None`, or off, and each step taken where gradients are not finite."""
    for module in project.modules.values():
        branches = [node for node in nodes(module, ast.If) if isinstance(node, ast.If)]
        for node in branches if "load_state_dict" in module.calls else ():
            yield from _absences(module, node)
        for node in branches if {"step", "backward"} & module.calls.keys() else ():
            yield from _windows(project, module, node)
        for place, end in unsynced(project, module):
            yield _asked(module, place, end, "the ranks do not share their gradients at the end of the accumulation")
        yield from _blind(module)
        if not _is_concerned(project, module):
            continue
        for node in branches:
            yield from _branches(project, module, node)
        for call in module.calls.get("where", ()):
            if _puts_away(project, module, call):
                yield broken(module, call, "what is finite is put away, and what is not is kept")
        yield from cleared(project, module)
        yield from _switches(project, module)
        yield from _misnamed(project, module)


def _blind(module: Module) -> Iterator[Site]:
    for test in nodes(module, ast.Compare) if "get_scale" in module.calls else ():
        if isinstance(test, ast.Compare) and is_blind(test, module):
            yield broken(module, test, "the loss scale is held against itself, so that no skipped step is seen")


def _absences(module: Module, node: ast.If) -> Iterator[Site]:
    """Find a state that is loaded only where a condition says that it is not there."""
    for branch, holds in ((node.body, True), (node.orelse or rest_of(module, node), False)):
        if not any(tail_of(c.func) == "load_state_dict" for statement in branch for c in calls(statement)):
            continue
        absent = lacking(node.test, module, holds=holds)
        state = loads(branch, absent) if absent else None
        if state is not None:
            said = f"{text_of(state)} is loaded exactly where it is not there"
            yield broken(module, node, said, ("it is loaded in", module, state))
            return


def _windows(project: Project, module: Module, node: ast.If) -> Iterator[Site]:
    """Find a step that is taken between the ends of the windows of an accumulation, and not at these."""
    rest = node.orelse or rest_of(module, node)
    if not any(tail_of(c.func) == "step" or callee(project, module, c) for s in (*node.body, *rest) for c in calls(s)):
        return
    stepping = [side for side in (node.body, rest) if windows.within(project, module, side, windows.steps)]
    end = windows.boundary(project, module, node.test) if len(stepping) == 1 else None
    if end is None or not end.is_gathering:
        return
    good, bad = (node.body, rest) if end.holds else (rest, node.body)
    if bad not in stepping or windows.within(project, module, good, windows.clears):
        return
    own = {call for statement in bad for call in calls(statement)}
    if windows.within(project, module, bad, windows.backs):
        return
    if windows.is_asked_each_turn(project, module, node, own):
        yield _asked(module, node, end, "the optimizer steps between the ends of the accumulation, and not at them")


def _asked(module: Module, node: ast.AST, found: Boundary | Answer, message: str) -> Site:
    """Return a branch that goes by a condition the wrong way, or the condition where that is what is written wrong."""
    if found.wrong is not None:
        place, there = found.wrong
        return broken(there, place, message, ("it decides in", module, node))
    inside = set(walk(node))
    others = (("the condition is written in", there, place) for place, there in found.written if place not in inside)
    return broken(module, node, message, *others)


def _asking(project: Project) -> Iterator[str]:
    """Yield the names of the program's functions that ask whether something is finite."""
    for module in project.modules.values():
        for name in (BAD | FINITE) & module.calls.keys():
            for call in module.calls[name]:
                function = function_of(call, module)
                if function is not None:
                    yield function.name


def _is_concerned(project: Project, module: Module) -> bool:
    """Return whether a file has a scaler, asks whether something is finite, or steps and has that asked elsewhere."""
    if "scale" in module.calls or any("caler" in text or text in BAD | FINITE for text in _names(module)):
        return True
    return "step" in module.calls and any(name in module.calls for name in project.once(_asking))


def _names(module: Module) -> Iterator[str]:
    for node in nodes(module, ast.Name, ast.Attribute):
        yield node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _branches(project: Project, module: Module, node: ast.If) -> Iterator[Site]:
    test, turned = node.test, False
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, turned = test.operand, not turned
    other = node.orelse or rest_of(module, node)
    yes, no = (other, node.body) if turned else (node.body, other)
    scope = project.scope_at(node, module)
    if (missing := absent(test, yes, no, scope)) is not None:
        name, branch = missing
        if (call := use(branch, name)) is not None:
            said = f"{name} is None where {text_of(call.func)}() is called"
            yield broken(module, node, said, ("it is called in", module, call))
            return
    if (call := of_disabled(test, no, scope) or loaded_off(node.test, node.body, scope)) is not None:
        said = f"{text_of(call.func)}() is called only where the scaler is off"
        yield broken(module, node, said, ("it is called in", module, call))
        return
    rest = node.orelse or rest_of(module, node)
    on = mixed(project, module, node.test)
    yes, no = (node.body, rest) if on is None or on.holds else (rest, node.body)
    if on is not None and _plain(yes) and not _scaled(yes, scope) and _scaled(no, scope) and not _plain(no):
        switched = text_of(node.test) if on.holds else text_of(test)
        yield _asked(module, node, on, f"the loss is scaled where {switched} is false, and not where it is true")
    fine = finite(project, module, node.test)
    if fine is not None:
        good, bad = (node.body, rest) if fine.holds else (rest, node.body)
        if _schedules(bad, scope) and not _schedules(good, scope) and not _steps(project, module, good):
            said = "the schedule steps where the scaler skipped the optimizer, and only there"
            yield _asked(module, node, replace(fine, wrong=None), said)
        if _steps(project, module, bad) and not _steps(project, module, good):
            yield _asked(module, node, fine, "the optimizer steps where gradients are not finite, and only there")
        elif (told := denial(good)) is not None:
            yield _asked(module, node, fine, f"where it is finite the program says {told!r}")


def _misnamed(project: Project, module: Module) -> Iterator[Site]:
    """Find functions that promise to tell of finite gradients, and tell of others."""
    for function in functions(module):
        if (place := misnamed(project, module, function)) is not None:
            yield broken(module, place, f"{function.name}() is true where gradients are not finite")


def _puts_away(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether `torch.where` takes nothing in place of a loss or gradient that is finite, and else that one."""
    if len(call.args) != 3 or project.scope_at(call, module).dotted(call.func) != "torch.where":
        return False
    test, one, other = call.args
    fine = finite(project, module, test)
    kept = other if fine is not None and fine.holds else one
    is_turned = fine is not None and (_is_nothing(one), _is_nothing(other)) == (fine.holds, not fine.holds)
    return is_turned and LEARNT.search(text_of(kept)) is not None


def _is_nothing(node: ast.expr) -> bool:
    """Return whether a value stands in for one that is put away: `0.0`, `torch.zeros_like(loss)`."""
    return constant(node) == 0 or (isinstance(node, ast.Call) and "zeros" in tail_of(node.func))


def _plain(branch: list[ast.stmt]) -> bool:
    """Return whether a branch runs a backward pass of its own, unscaled."""
    for statement in branch:
        for call in (statement.value,) if isinstance(statement, ast.Expr) else ():
            if (
                isinstance(call, ast.Call)
                and tail_of(call.func) == "backward"
                and isinstance(call.func, ast.Attribute)
                and isinstance(call.func.value, ast.Name)
                and not call.args
                and "scaled" not in call.func.value.id
            ):
                return True
    return False


def _scaled(branch: list[ast.stmt], scope: Scope) -> bool:
    return any(
        tail_of(c.func) in {"scale", "unscale_"}
        and isinstance(c.func, ast.Attribute)
        and is_scaler(c.func.value, scope)
        for s in branch
        for c in calls(s)
    )


def _schedules(branch: list[ast.stmt], scope: Scope) -> bool:
    """Return whether a branch steps a schedule itself."""
    stepped = (c for s in branch for c in calls(s) if isinstance(c.func, ast.Attribute) and c.func.attr == "step")
    objects = [c.func.value for c in stepped if isinstance(c.func, ast.Attribute)]
    return any(
        is_called(tail_of(node), SCHEDULER) or scope.project.types.is_a(scope.project.types.of(node, scope), SCHEDULER)
        for node in objects
    )


def _steps(project: Project, module: Module, branch: list[ast.stmt]) -> bool:
    """Return whether a branch steps an optimizer, itself or in a function of the program that it calls."""
    found = [(c, module) for s in branch for c in calls(s)]
    for call, _ in tuple(found):
        target = callee(project, module, call)
        there = module_of(project, target, module) if target is not None else module
        found += [(c, there) for c in calls(target)] if target is not None else []
    return any(is_step(project, there, c.func) for c, there in found)


def _switches(project: Project, module: Module) -> Iterator[Site]:
    """Find a scaler that is on where autocast is off, or where the type is not float16."""
    for call, scope in (*scalers(project, module), *_of_own(project, module)):
        enabled = option(call, "enabled", scope) or _chosen(call, module)
        if enabled is None:
            continue
        if _is_other_type(enabled):
            yield broken(module, call, f"the scaler is on where {text_of(enabled)}: float16 alone needs it")
        said: set[ast.AST] = set()
        for switch in switches(enabled, scope, (call, scope)):
            off = next((n for n, turned, _ in switch.steps if turned and CAST.search(named(n))), None)
            place, there = switch.place
            if off is not None:
                problem = f"the scaler is on exactly where {text_of(off)} is off"
            elif _is_opposed(switch, project.once(_contexts)):
                problem = "the scaler is on exactly where autocast is off"
            else:
                continue
            if place not in said:
                said.add(place)
                made = [("the scaler is made in", module, call)] if place is not call else []
                yield broken(there.module, place, problem, *made)


def _of_own(project: Project, module: Module) -> Iterator[tuple[ast.Call, Scope]]:
    """Yield the calls that make a scaler of the program's own class which extends that of torch."""
    for call in module.calls.get("__init__", ()):
        scope = project.scope_at(call, module)
        info = scope.self_class
        if info is not None and project.types.is_a(info.name, SCALERS) and option(call, "enabled", scope) is not None:
            yield call, scope
    for tail, found in module.calls.items():
        for call in found if "caler" in tail else ():
            scope = project.scope_at(call, module)
            name = scope.dotted(call.func)
            info = project.classes.get(name or "")
            if info is not None and "__init__" not in info.methods and project.types.is_a(name, SCALERS):
                yield call, scope


def _contexts(project: Project) -> Iterator[Switch]:
    """Yield the switches of the autocast contexts of a program, but for those in bfloat16."""
    for module in project.modules.values():
        for call, scope in autocasts(project, module):
            enabled = option(call, "enabled", scope)
            if enabled is not None and dtype_of(call, scope) != BRAIN:
                yield from switches(enabled, scope, (call, scope))


def _is_opposed(switch: Switch, contexts: Iterable[Switch]) -> bool:
    """Return whether a scaler is on where a context beside it is off, or all those that go by the same setting."""
    if any(switch.opposes(other, near=True) for other in contexts):
        return True
    return {told for other in contexts if (told := switch.opposes(other, near=False)) is not None} == {True}


def _chosen(call: ast.Call, module: Module) -> ast.expr | None:
    """Return the condition on which a scaler is made, and none otherwise: `GradScaler() if amp else None`."""
    choice = module.parents.get(call)
    if not isinstance(choice, ast.IfExp) or call is choice.test:
        return None
    other = choice.orelse if call is choice.body else choice.body
    if not (isinstance(other, ast.Constant) and other.value is None):
        return None
    return choice.test if call is choice.body else ast.copy_location(ast.UnaryOp(ast.Not(), choice.test), choice.test)


def _is_other_type(node: ast.expr) -> bool:
    """Return whether a switch asks for a type other than float16."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return False
    right = node.comparators[0]
    named = str(constant(right) or tail_of(right))
    half = named in {"float16", "fp16", "half", "16"}
    if isinstance(node.ops[0], ast.NotEq | ast.IsNot):
        return half
    return isinstance(node.ops[0], ast.Eq | ast.Is) and named in {"bfloat16", "bf16", "float32", "fp32"}
