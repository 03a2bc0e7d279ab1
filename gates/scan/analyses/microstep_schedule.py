"""Schedules of the learning rate that step with each micro-batch, and were sized in steps of the optimizer."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.precision.precision import FRAMEWORKS, is_step
from gates.scan.analyses.reading.code import LOOPS, broken, callee, function_of, is_backward, loop_of
from gates.scan.analyses.reading.origins import Origin, Origins
from gates.scan.analyses.reading.reached import Guard, Reached, reached
from gates.scan.analyses.training.sizes import Reckoning
from gates.scan.program.classes import ClassInfo
from gates.scan.program.known import OPTIMIZER, SCHEDULER, is_called
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, is_none, text_of, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.site import Site

WORDS = ("sched*", "LR*")
MAX_CALLERS = 3
MAX_HOPS = 3
PARTS = re.compile(r"(?i)accum|micro_?(batche?s|steps)|grad_?acc")
UPDATES = re.compile(r"(?i)(^|_)(update_steps|updates|(opt|optim|optimizer)_steps)(_per_epoch)?$")
WARM = re.compile(r"(?i)(^|_)warm_?up(_steps|_updates)?$")
LENGTH = re.compile(r"(?i)step|total|iter|max|epoch|length|(^|_)(n|num|len)(_|$)")
BATCHES = re.compile(r"(?i)batch_?size|^(bs|batch|range|enumerate|epochs?|world_size)$")
PLAIN = re.compile(r"(?i)scaler|amp|fp16|half|mixed|precision|finite|isnan|isinf|\b(is_)?train(ing)?\b")
FABRIC = re.compile(r"(lightning|pytorch_lightning)\.(fabric\b|Fabric$|seed_everything$)|lightning_fabric\b")
ASKS = frozenset({"isinstance", "hasattr", "callable"})
PROBLEM = "the schedule steps with each micro-batch, and was sized in steps of the optimizer, which are fewer"


def look(project: Project) -> Iterator[Site]:
    """Yield the steps of a schedule with each micro-batch of an accumulation, where its length counts updates."""
    for call, module in project.named.get("step", ()):
        if not call.args and not call.keywords and isinstance(call.func, ast.Attribute):
            made = _makers(project, call.func.value, module)
            if (
                made
                and not _framed(module, made)
                and any(_runs_ahead(project, call, r, m, made) for r, m in _around(project, call, module))
            ):
                yield broken(module, call, PROBLEM)


def _makers(project: Project, stepped: ast.expr, module: Module) -> list[Origin]:
    """Return the calls that may have made a schedule that is stepped; nothing where it is none, or counts by itself."""
    scope = project.scope_at(stepped, module)
    found = [o for o in Origins(project).of(stepped, scope) if isinstance(o.node, ast.Call)]
    found = [o for o in found if project.types.function(o.node, o.scope) is None]  # type: ignore[arg-type]  # calls
    kinds = [o.scope.dotted(o.node.func) for o in found if isinstance(o.node, ast.Call)]
    if any(project.types.is_a(kind, OPTIMIZER) for kind in kinds if kind):
        return []
    named = is_called(tail_of(stepped), SCHEDULER)
    own = [project.classes[kind] for kind in kinds if kind in project.classes]
    if any(_steps_by_itself(project, info) for info in own):
        return []
    return found if named or any(project.types.is_a(kind, SCHEDULER) for kind in kinds if kind) else []


def _steps_by_itself(project: Project, info: ClassInfo) -> bool:
    """Return whether a class of the program says itself when its schedule steps."""
    step = info.methods.get("step")
    return step is not None and (not project.types.is_a(info.name, SCHEDULER) or bool(inner(step, ast.If, ast.IfExp)))


def _framed(module: Module, made: list[Origin]) -> bool:
    """Return whether a framework may wrap what steps, and skip where it accumulates; Fabric knows of no schedules."""
    names = {name for m in (module, *(o.module for o in made)) for name in m.aliases.values()}
    return any(FRAMEWORKS.search(name) and not FABRIC.match(name) for name in names)


def _around(project: Project, call: ast.Call, module: Module) -> Iterator[tuple[ast.AST, Module]]:
    """Yield the loop that a call stands in, or its function and what is around the calls of that."""
    todo = [(call, module, MAX_CALLERS)]
    while todo:
        here, there, depth = todo.pop()
        loop = loop_of(here, there)
        while loop is not None and isinstance(loop, ast.For) and is_called(tail_of(loop.iter), SCHEDULER):
            loop = loop_of(loop, there)
        around = loop or function_of(here, there)
        if around is None:
            continue
        yield around, there
        if loop is None and depth:
            todo += [(c, m, depth - 1) for c, m in Origins(project).called(around)]


def _runs_ahead(project: Project, call: ast.Call, root: ast.AST, module: Module, made: list[Origin]) -> bool:
    """Return whether a schedule steps with each backward pass of a turn, and the optimizer more seldom than that."""
    found = reached(project, module, root)
    ticks = [each for each in found if each.call is call]
    backward = [each for each in found if _is_own_backward(each.call)]
    both = {g.test for each in ticks for g in each.guards} & {g.test for each in backward for g in each.guards}
    both = {test for test in both if test is not None and not any(isinstance(n, ast.Mod) for n in walk(test))}
    passes = [each for each in backward if all(g.test in both or _is_plain(g) for g in each.guards)]
    if not passes or not ticks or not all(_is_always(each, call, both) for each in ticks):
        return False
    steps = _steps(project, found)
    if steps:
        return all(_counted(project, each, made) for each in steps)
    return _steps_after(project, module, root, made)


def _is_own_backward(call: ast.Call) -> bool:
    """Return whether a call is the backward pass of a loss, and not of a framework that may scale it: Fabric apart."""
    is_fabric = isinstance(call.func, ast.Attribute) and tail_of(call.func.value) in {"fabric", "_fabric"}
    return is_backward(call) and (not call.args or is_fabric)


def _steps(project: Project, found: list[Reached]) -> list[Reached]:
    """Return the steps of optimizers; one of the program's own class is what that steps, where it does."""
    steps = [each for each in found if isinstance(each.call.func, ast.Attribute)]
    steps = [each for each in steps if is_step(project, each.module, each.call.func)]
    bodies = {each.call: callee(project, each.module, each.call) for each in steps}
    inside = {function_of(each.call, each.module) for each in steps}
    return [each for each in steps if bodies[each.call] is None or bodies[each.call] not in inside]


def _is_plain(guard: Guard) -> bool:
    """Return whether a condition is about how a loss is scaled, or whether it can be used."""
    if guard.test is None or any(isinstance(n, ast.Mod) for n in walk(guard.test)):
        return False
    return _is_steady(guard.test) or PLAIN.search(text_of(guard.test)) is not None


def _is_always(tick: Reached, call: ast.Call, both: set[ast.expr | None]) -> bool:
    """Return whether a schedule steps wherever there is one, under no condition but those of the backward pass."""
    stepped = text_of(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    tests = [g.test for g in tick.guards if g.test is None or g.test not in both]
    return all(test is not None and (text_of(test) == stepped or _is_steady(test)) for test in tests)


def _is_steady(test: ast.expr) -> bool:
    """Return whether a condition is the same with each turn: whether there is something, which of several it is."""
    if isinstance(test, ast.BoolOp):
        return all(map(_is_steady, test.values))
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _is_steady(test.operand)
    if isinstance(test, ast.Call):
        return tail_of(test.func) in ASKS
    if not isinstance(test, ast.Compare):
        return False
    other = test.comparators[0]
    return is_none(other) or (isinstance(other, ast.Constant) and isinstance(other.value, str))


def _counted(project: Project, step: Reached, made: list[Origin]) -> bool:
    """Return whether an optimizer steps on a count that a schedule's length was divided by, or is reckoned in."""
    for guard in step.guards:
        if guard.test is None or _is_steady(guard.test):
            continue
        names, counts = _named_in(project, guard.test, guard.scope)
        counts = counts or any(map(PARTS.search, names))
        bounds = _bounds(guard) if counts else set()
        if _in_updates(project, made, names, bounds, by_words=counts):
            return True
    return False


def _named_in(project: Project, test: ast.expr, scope: Scope) -> tuple[set[str], bool]:
    """Return the names that a condition comes from, with the numbers it counts to, and whether it counts in rounds."""
    names: set[str] = set()
    rounds = False
    origins = Origins(project)
    todo: list[tuple[ast.AST, Scope, int]] = [(test, scope, MAX_HOPS)]
    while todo:
        node, there, hops = todo.pop()
        if isinstance(node, ast.Name | ast.Attribute):
            names.add(tail_of(node))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            rounds = True
            names |= {f"={node.right.value!r}"} if isinstance(node.right, ast.Constant) else set()
        if isinstance(node, ast.Name | ast.Attribute | ast.Call):
            behind = origins.of(node, there)[1:] if hops else []
            todo += [(o.node, o.scope, hops - 1) for o in behind]
        else:
            todo += [(part, there, hops) for part in ast.iter_child_nodes(node)]
    return {name for name in names if not BATCHES.search(name)}, rounds


def _bounds(guard: Guard) -> set[str]:
    """Return what a number is held against that is counted up where the optimizer steps."""
    body = guard.scope.function or guard.scope.module.tree
    branches = [b for b in inner(body, ast.If) if isinstance(b, ast.If) and b.test is guard.test]
    counters = {name for b in branches for s in b.body for name in _counted_up(s)}
    found: set[str] = set()
    for test in inner(body, ast.Compare) if counters else ():
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            for one, other in ((test.left, test.comparators[0]), (test.comparators[0], test.left)):
                found |= {text_of(other)} if text_of(one) in counters and not isinstance(other, ast.Constant) else set()
    return found


def _counted_up(statement: ast.stmt) -> Iterator[str]:
    """Yield what a statement adds to: `done += 1`, `done = done + 1`."""
    for node in walk(statement):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            yield text_of(node.target)
        if isinstance(node, ast.Assign):
            sums = {text_of(n.left) for n in walk(node.value) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add)}
            yield from sums & {text_of(n) for target in node.targets for n in walk(target)}


def _in_updates(project: Project, made: list[Origin], names: set[str], bounds: set[str], *, by_words: bool) -> bool:
    """Return whether a schedule was sized in steps of the optimizer, and no length of it in batches."""
    reckoning = Reckoning(project, lambda name: name in names or PARTS.search(name) is not None)
    for origin in made:
        if isinstance(origin.node, ast.Call):
            reckoning.made(origin.node, origin.scope)
    size = reckoning.size
    told = size.divided or bool(size.names & bounds) or (by_words and _says_updates(size.names))
    return told and not size.whole


def _says_updates(names: set[str]) -> bool:
    """Return whether a length is called a number of updates, or is that of a warm-up alone, which is one by custom."""
    others = {name for name in names if not WARM.search(name)}
    return any(map(UPDATES.search, names)) or (len(others) < len(names) and not any(map(LENGTH.search, others)))


def _steps_after(project: Project, module: Module, root: ast.AST, made: list[Origin]) -> bool:
    """Return whether the optimizer steps after a loop over the micro-batches of one step."""
    block = getattr(module.parents.get(root), "body", None)
    if not isinstance(root, ast.For) or not isinstance(block, list) or root not in block:
        return False
    after = [s for s in block[block.index(root) + 1 :] if not isinstance(s, LOOPS)]
    calls = [c for s in after for c in walk(s) if isinstance(c, ast.Call)]
    if not any(is_step(project, module, c.func) for c in calls):
        return False
    names, _ = _named_in(project, root.iter, project.scope_at(root.iter, module))
    bounds = _ends(loop_of(root, module))
    return _in_updates(project, made, names, bounds, by_words=any(map(PARTS.search, names)))


def _ends(loop: ast.AST | None) -> set[str]:
    """Return what a loop counts to: `range(steps)`, `while done < steps`."""
    parts: list[ast.expr] = []
    if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call):
        parts = loop.iter.args
    elif isinstance(loop, ast.While) and isinstance(loop.test, ast.Compare):
        parts = loop.test.comparators
    return {text_of(part) for part in parts if isinstance(part, ast.Name | ast.Attribute)}
