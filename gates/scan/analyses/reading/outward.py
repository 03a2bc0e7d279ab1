"""The way outward from a call: the loops around it, then those around the calls of its function."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from gates.scan.analyses.reading.code import FUNCTIONS, LOOPS, Loop, callee, function_of, statement_of
from gates.scan.analyses.reading.targets import COMMON
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import SAME
from gates.scan.ways.hooks import hooks_of

WRAPS = re.compile(r"(?i)unwrap|getattr|prepare|compile|parallel|^ddp$|^fsdp$|setup|wrap")
DEPTH = 4
MAX_CALLERS = 20
FEW = 3  # classes with a method of a name, of which a call may run any


@dataclass(frozen=True)
class Step:
    """A call on the way outward, the variable that holds the object there, and the loops that go on after it."""

    call: ast.Call
    module: Module
    root: str | None
    loops: tuple[Loop, ...] = ()
    is_sure: bool = True


def ways(project: Project, module: Module, call: ast.Call, root: str | None) -> Iterator[list[Step]]:
    """Yield the steps of each way outward from a call; a way ends where the object is made, none takes a call again."""
    yield from _ways(project, Step(call, module, root), DEPTH, {call})


def _ways(project: Project, step: Step, depth: int, seen: set[ast.Call]) -> Iterator[list[Step]]:
    call, module = step.call, step.module
    here, last = _loops(step)
    if last is None:
        yield [here]
        return
    function = function_of(call, module)
    found = False
    for outer, there, is_sure in (
        _sites(project, function, module, FEW if depth == DEPTH else 1) if function is not None and depth else ()
    ):
        if function is None or outer in seen:
            continue
        seen.add(outer)
        bound = project.scope_of(function, module).owner is not None
        if _is_made_for(project, there, argument(outer, function, last, bound=bound)):
            continue
        passed = _passed(outer, function, last, bound=bound)
        for way in _ways(project, Step(outer, there, passed), depth - 1, seen):
            found = True
            yield [here, replace(way[0], is_sure=is_sure and way[0].is_sure), *way[1:]]
    if not found:
        yield [here]


def root_of(node: ast.expr | None) -> str | None:
    """Return the variable that an expression begins with: of `self.model.encoder`, `self`; of `unwrap(net)`, `net`."""
    while node is not None:
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Call):
            node = node.args[0] if node.args else node.func
        elif isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            node = node.value
        else:
            return None
    return None


def following(module: Module, node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements that run after the one around a node, up to the end of the loop or function around it."""
    statement: ast.AST | None = statement_of(node, module)
    while isinstance(statement, ast.stmt):
        parent = module.parents.get(statement)
        for _, block in ast.iter_fields(parent) if parent is not None else ():
            if isinstance(block, list) and statement in block:
                yield from block[block.index(statement) + 1 :]
        if isinstance(parent, (*LOOPS, *FUNCTIONS, ast.Module)):
            return
        statement = parent


def sets_anew(node: ast.AST, root: str | None) -> bool:
    """Return whether code sets a variable to an object that has nothing to do with the one that it held."""
    for each in inner(node, ast.Assign, ast.AnnAssign):
        targets = (
            each.targets if isinstance(each, ast.Assign) else [each.target] if isinstance(each, ast.AnnAssign) else []
        )
        value = each.value if isinstance(each, ast.Assign | ast.AnnAssign) else None
        if value is not None and root in {n for t in targets for n in _names(t)} and root not in _names(value):
            return True
    return False


def may_be(body: ast.AST, one: ast.expr, other: ast.expr) -> bool:
    """Return whether two expressions of a function may be one object, or one a part of the other."""
    texts = text_of(one), text_of(other)
    if not all(isinstance(n, ast.Name | ast.Attribute) for n in (one, other)) or tail_of(one) == tail_of(other):
        return True
    if texts[0].startswith(f"{texts[1]}.") or texts[1].startswith(f"{texts[0]}."):
        return True
    return _is_set_to(body, *texts) or _is_set_to(body, texts[1], texts[0])


def _is_set_to(body: ast.AST, name: str, other: str) -> bool:
    """Return whether a variable is set to something of another one, or goes through several in a loop."""
    for node in inner(body, ast.Assign, ast.For):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target if isinstance(node, ast.For) else node
        if name in {text_of(n) for n in walk(target) if isinstance(n, ast.Name | ast.Attribute)}:
            if isinstance(node, ast.For):
                return True
            if isinstance(node, ast.Assign) and other in {text_of(n) for n in walk(node.value)}:
                return True
    return False


def _names(node: ast.AST) -> set[str]:
    """Return the variables of an expression, but for those whose parts alone are set."""
    if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
        return set()
    return {n.id for n in walk(node) if isinstance(n, ast.Name)}


def _loops(step: Step) -> tuple[Step, str | None]:
    """Return a step with the loops that go on after it, and what holds the object there; none if it is made."""
    found: list[Loop] = []
    root, module = step.root, step.module
    below: ast.AST = step.call
    is_left = False
    for around in module.ancestors(step.call):
        if isinstance(around, LOOPS):
            after = list(following(module, below))
            is_left = is_left or any(isinstance(s, ast.Return | ast.Raise) for s in after)
            is_target = isinstance(around, ast.For) and root in _names(around.target)
            if sets_anew(around, root):
                return replace(step, loops=tuple(found)), None
            if is_target and isinstance(around, ast.For):
                root = root_of(around.iter)
            elif not is_left and not any(isinstance(s, ast.Break) for s in after):
                found.append(around)
            below = around
        if isinstance(around, FUNCTIONS):
            return replace(step, loops=tuple(found)), _held(around, root)
    return replace(step, loops=tuple(found)), None


def _held(function: ast.AST, root: str | None) -> str | None:
    """Return the parameter that holds an object of a function, `?` where that is not known; none for one made there."""
    if root is None or not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return "?"
    given = {a.arg for a in walk(function.args) if isinstance(a, ast.arg)}
    if root in given:
        return root
    made = [
        n.value for n in inner(function, ast.Assign)
        if isinstance(n, ast.Assign) and any(root in _names(t) for t in n.targets)
    ]  # fmt: skip
    names = [name for value in made if (name := _taken_from(value)) in given]
    return "?" if not made else names[0] if names else None


def _taken_from(value: ast.expr) -> str | None:
    """Return the variable of which a value is the object, or a part: `self.net.to(device)`, `unwrap(model)`."""
    if not isinstance(value, ast.Call):
        return root_of(value) if isinstance(value, ast.Name | ast.Attribute | ast.Subscript) else None
    if WRAPS.search(tail_of(value.func)):
        return root_of(value.args[0]) if value.args else None
    is_same = isinstance(value.func, ast.Attribute) and (value.func.attr in SAME or value.func.attr == "to")
    return _taken_from(value.func.value) if is_same and isinstance(value.func, ast.Attribute) else None


def _passed(call: ast.Call, function: Function, root: str, *, bound: bool) -> str | None:
    """Return what holds at a call the object that a parameter of the function holds."""
    given = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    if bound and given and root == given[0]:
        return root_of(call.func.value) if isinstance(call.func, ast.Attribute) else root_of(call.func)
    return root_of(argument(call, function, root, bound=bound))


def _is_made_for(project: Project, module: Module, value: ast.expr | None) -> bool:
    """Return whether a call is passed what another call makes for it, and nothing else holds: `score(fit(data))`."""
    target = callee(project, module, value) if isinstance(value, ast.Call) else None
    if target is None:
        return False
    given = [n.value for n in inner(target, ast.Return) if isinstance(n, ast.Return)]
    return bool(given) and all(isinstance(v, ast.Name) and _held(target, v.id) is None for v in given)


def _sites(project: Project, function: Function, module: Module, limit: int) -> Iterator[tuple[ast.Call, Module, bool]]:
    """Yield the calls that run a function, or may, and whether that is certain."""
    owner = project.scope_of(function, module).owner
    if owner is not None and function.name in {"__call__", "__enter__"}:
        for call, there in _of_object(project, owner) if function.name == "__call__" else _entered(project, owner):
            yield call, there, True
        return
    for call, there in project.named.get(function.name, [])[:MAX_CALLERS]:
        target = callee(project, there, call)
        if target is None and (function.name in COMMON or project.method_names.get(function.name, 0) > limit):
            continue
        if target in {function, None} and not _is_of_module(project, call, there):
            yield call, there, target is function
    for fired in project.once(hooks_of)[0].firing.get(function, ()):
        yield fired.call, fired.module, True


def _is_of_module(project: Project, call: ast.Call, module: Module) -> bool:
    return isinstance(call.func, ast.Attribute) and project.is_module(call.func.value, project.scope_at(call, module))


def _entered(project: Project, owner: ClassInfo) -> Iterator[tuple[ast.Call, Module]]:
    """Yield the blocks that a context manager is made for."""
    for call, module in project.named.get(owner.node.name, [])[:MAX_CALLERS]:
        parent = module.parents.get(call)
        if isinstance(parent, ast.withitem) or (
            isinstance(parent, ast.Call) and tail_of(parent.func) == "enter_context"
        ):
            yield call, module


def _of_object(project: Project, owner: ClassInfo) -> list[tuple[ast.Call, Module]]:
    """Return the calls of what is named after a class, or one that it extends: `hook(...)`, of an `EvalHook`."""
    ends = [info.node.name.lower() for info in (owner, *project.ancestors_of(owner))]
    found = [
        pair for name, pairs in project.named.items()
        if len(name) > 3 and name == name.lower() and any(end.endswith(name.replace("_", "")) for end in ends)
        for pair in pairs if isinstance(pair[0].func, ast.Name | ast.Attribute)
    ]  # fmt: skip
    found += [
        (c, m) for m in project.modules.values() if owner.node.name in m.words
        for pairs in m.calls.values() for c in pairs
        if isinstance(c.func, ast.Name | ast.Attribute) and (c, m) not in found
        and project.types.of(c.func, project.scope_at(c, m)) == owner.name
    ]  # fmt: skip
    unknown = [(c, m) for c, m in found if project.types.of(c.func, project.scope_at(c, m)) in {None, owner.name}]
    return [(c, m) for c, m in unknown if not _is_of_module(project, c, m)][:MAX_CALLERS]
