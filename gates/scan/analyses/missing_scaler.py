"""Training in float16 whose loss nothing scales."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.precision.by_hand import is_scaled_by_hand
from gates.scan.analyses.precision.contexts import Context, around, context_of, entered_by, is_off
from gates.scan.analyses.precision.precision import (
    BRAIN,
    FRAMEWORKS,
    HALF,
    SAME,
    WHOLE,
    dtype_of,
    knows_scaling,
    option,
    type_named,
)
from gates.scan.analyses.reading.called import Made
from gates.scan.analyses.reading.code import broken, constant, is_backward, keyword
from gates.scan.analyses.reading.flow import Source, is_forward, sources
from gates.scan.analyses.reading.heirs import Inherited, heirs, objects
from gates.scan.analyses.settings.defaults import behind_of, callers_pass, choices, preset, under
from gates.scan.analyses.settings.registered import made_of_kept
from gates.scan.analyses.training.wrapping import decorated, has_no_gradients, wrapped
from gates.scan.analyses.unused_scaler import look as idle_scalers
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.site import Site

WORDS = ("autocast*",)
MAX_HOPS = 4
PLAIN = frozenset({"to", "cuda", "item", "float"})


def look(project: Project) -> Iterator[Site]:
    """Yield each plain backward pass of a loss computed under float16 autocast, where nothing scales."""
    for module in project.modules.values():
        for call in module.calls.get("backward", []):
            if not is_backward(call) or not isinstance(call.func, ast.Attribute) or _scaled(project, module):
                continue
            if call.args and not _off(module):
                continue  # what a wrapper does with it is its own
            loss = call.args[0] if call.args else call.func.value
            scope = project.scope_at(call, module)
            found = sources(project, loss, scope, call.lineno)
            is_half = any(_is_half(project, source) for source in found) and not _is_whole_below(scope, found)
            is_half = is_half or _is_half_below(project, call, scope, found)
            if not is_half or is_scaled_by_hand(project, call, scope):
                continue
            if not any(_scaled(project, source.module) for source in found):
                yield broken(module, call, "the loss is computed in float16 and nothing scales it")


def _scaled(project: Project, module: Module) -> bool:
    """Return whether a file, or one that it imports, speaks of anything that scales."""
    if project.once(_all_idle)[0]:
        return False
    if knows_scaling(project, module) and not _off(module):
        return True
    return any(knows_scaling(project, other) for other in _around(project, module))


def _all_idle(project: Project) -> Iterator[bool]:
    """Yield whether a program makes a scaler in vain: nothing is called that scales, by it or by a framework."""
    framed = any(FRAMEWORKS.search(name) for module in project.modules.values() for name in module.aliases.values())
    yield not framed and "scale" not in project.named and any(True for _ in idle_scalers(project))


def _off(module: Module) -> bool:
    """Return whether the one thing that could scale is a framework told not to."""
    made = [c for name in ("Accelerator", "Fabric") for c in module.calls.get(name, [])]
    told = [constant(keyword(c, "mixed_precision") or keyword(c, "precision")) for c in made]
    return bool(told) and set(told) <= {"no", "32", "32-true", 32} and not any("caler" in tail for tail in module.calls)


def _around(project: Project, module: Module) -> Iterator[Module]:
    """Yield the files of the program that this one imports."""
    for dotted in module.aliases.values():
        parts = dotted.split(".")
        for at in range(len(parts), 0, -1):
            found = project.find_module(".".join(parts[:at]), module)
            if found is not None and found is not module:
                yield found
                break


def _is_half(project: Project, source: Source) -> bool:
    """Return whether something in an expression is computed in float16."""
    for node in ast.walk(source.node):
        if not isinstance(node, ast.Call) or tail_of(node.func) in PLAIN:
            continue
        contexts = list(_plugged(project, source.module, node))
        stand = ((node, source.module), *source.through)
        if any(has_no_gradients(there, each) for each, there in stand):
            continue
        contexts += [made for each, there in stand for made in _surrounding(project, there, each)]
        if is_forward(project, source.module, node):
            contexts += _of_model(project, source.scope.class_of(node.func))
        on = [made for made in contexts if not is_off(*made)]
        if any(dtype_of(*preset(*made)) == HALF or _may_be_half(*preset(*made)) for made in on):
            return True
    return False


def _is_half_below(project: Project, call: ast.Call, scope: Scope, found: list[Source]) -> bool:
    """Return whether a loss is computed in float16 for a class that inherits the method, and scales nothing itself."""
    for heir in heirs(scope):
        made = [each for source in found for each in _around_in(heir, source)]
        if not any(not is_off(*each) and dtype_of(*preset(*each)) == HALF for each in made):
            continue
        family = project.order_of(heir.owner) if heir.owner is not None else []
        if not any(_scaled(project, i.scope.module) for i in family) and not is_scaled_by_hand(project, call, heir):
            return True
    return False


def _is_whole_below(scope: Scope, found: list[Source]) -> bool:
    """Return whether all objects that have a method are of classes which inherit it, and choose another type there."""
    made = list(objects(scope))
    around_each = [[each for source in found for each in _around_in(one, source)] for one in made]
    return bool(made) and all(
        one.owner is not scope.owner and contexts and all(dtype_of(*preset(*c)) in {BRAIN, WHOLE} for c in contexts)
        for one, contexts in zip(made, around_each, strict=True)
    )


def _around_in(heir: Inherited, source: Source) -> Iterator[Context]:
    """Yield the autocast contexts around what a loss is computed of, in an object of a class that inherits."""
    inside = (node for node in ast.walk(source.node) if isinstance(node, ast.Call))
    stand = [(node, source.module) for node in inside if tail_of(node.func) not in PLAIN]
    for node, module in (*stand, *source.through):
        for block in module.ancestors(node):
            where = heir.within(heir.project.scope_at(block, module)) if isinstance(block, ast.With) else None
            for item in block.items if where is not None and isinstance(block, ast.With) else ():
                made = context_of(item, where)  # type: ignore[arg-type]  # not where there is none
                there = heir.within(made[1]) if made is not None else None
                yield from ((made[0], there),) if made is not None and there is not None else ()


def _plugged(project: Project, module: Module, node: ast.AST) -> Iterator[Context]:
    """Yield the autocast contexts around a node that a method gives of a class which is taken by its key."""
    blocks = (outer for outer in module.ancestors(node) if isinstance(outer, ast.With | ast.AsyncWith))
    entered = [item.context_expr for block in blocks for item in block.items]
    for call in entered:
        func = call.func if isinstance(call, ast.Call) else None
        scope = project.scope_at(call, module)
        if not isinstance(func, ast.Attribute) or context_of(ast.withitem(call), scope) is not None:
            continue
        for owner in made_of_kept(project, func.value, scope):
            found = project.method(owner, func.attr)
            if found is not None and not _scaled(project, found[1]):
                yield from _given_by(project, found[0], found[1])


def _given_by(project: Project, method: Function, module: Module) -> Iterator[Context]:
    """Yield the autocast contexts that a method returns, or is in around its `yield`."""
    scope = project.scope_of(method, module)
    yield from entered_by(project, method, module)
    for node in inner(method, ast.Return):
        value = node.value if isinstance(node, ast.Return) else None
        made = context_of(ast.withitem(value), scope) if value is not None else None
        yield from (made,) if made is not None else ()


def _of_model(project: Project, owner: object) -> list[tuple[ast.Call, Scope]]:
    found = project.method(owner, "forward") if owner is not None else None  # type: ignore[arg-type]  # a class
    return [*entered_by(project, *found[:2]), *decorated(project, found[1], found[0])] if found else []


def _surrounding(project: Project, module: Module, node: ast.AST) -> Iterator[Context]:
    """Yield the autocast contexts that a node runs in, by the program's own decorators too."""
    yield from around(project, module, node)
    yield from wrapped(project, module, node)


def _may_be_half(call: ast.Call, scope: Scope) -> bool:
    """Return whether an option of the command line may choose float16 for a context, whatever it is by default."""
    given = option(call, "dtype", scope) or (call.args[1] if len(call.args) > 1 else None)
    return given is not None and any(
        _kind(chosen, value, where) == HALF
        for chosen, where in _made(given, scope, MAX_HOPS)
        if (parts := _parts(chosen)) is not None
        for value in _choices(*parts, where)
    )


def _made(node: ast.expr, scope: Scope, hops: int) -> Iterator[Made]:
    """Yield what an expression may be made by: what a name was set to, what callers pass for a parameter."""
    yield node, scope
    behind = behind_of(node, scope) if hops else None
    passed = callers_pass(node.id, scope) if hops and behind is None and isinstance(node, ast.Name) else ()
    for value, where in (behind,) if behind is not None else passed:
        yield from _made(value, where, hops - 1)


def _parts(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """Return the table and the key of a look-up: `KINDS[key]`, `KINDS.get(key)`, `getattr(torch, key)`."""
    if isinstance(node, ast.Subscript):
        return node.value, node.slice
    if isinstance(node, ast.Call) and tail_of(node.func) == "getattr" and len(node.args) > 1:
        return node.args[0], node.args[1]
    is_get = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get"
    return (node.func.value, node.args[0]) if is_get and node.args else None  # type: ignore[attr-defined]


def _choices(table: ast.expr, key: ast.expr, scope: Scope) -> list[object]:
    """Return what a key may be that is an option of the command line: one of its choices, or any in a table."""
    for made, _ in _made(key, scope, MAX_HOPS):
        told = made.attr if isinstance(made, ast.Attribute) else constant(_parts(made)[1]) if _parts(made) else None  # type: ignore[index]
        listed = choices(scope.project, told) if isinstance(told, str) else None
        if isinstance(listed, ast.List | ast.Tuple | ast.Set):
            return [constant(each) for each in listed.elts]
        if listed is not None:
            kept = behind_of(table, scope)
            return [constant(k) for k in kept[0].keys if k] if kept and isinstance(kept[0], ast.Dict) else []
    return []


def _kind(node: ast.expr, key: object, scope: Scope) -> str | None:
    """Return the type of numbers that a look-up gives for a key."""
    table = (_parts(node) or (node,))[0]
    if isinstance(node, ast.Call) and tail_of(node.func) == "getattr":
        return SAME.get(f"{scope.dotted(table)}.{key}")
    found = under(table, key, scope, MAX_HOPS)
    return type_named(*found) if found is not None else None
