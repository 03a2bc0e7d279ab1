"""Losses kept beyond their step with the graph that made them."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.reading.code import Loop, broken, calls, function_of, functions, loop_of, statement_of
from gates.scan.analyses.reading.origins import Origin, Origins
from gates.scan.analyses.training.begun_elsewhere import is_begun_elsewhere
from gates.scan.analyses.training.graphs import (
    CUT,
    given_by,
    giving,
    is_cut,
    is_ungraded,
    named,
    starts,
    unsummed,
    with_others,
)
from gates.scan.analyses.training.handed_to_start import handed_to_start
from gates.scan.analyses.training.handovers import gone_over, handed_in, is_picked, may_run, named_in, ways_of
from gates.scan.analyses.training.hot import is_hot, steps
from gates.scan.analyses.training.keeping import Kept, adds_tensors, is_of_caller, is_reset, kept_in
from gates.scan.analyses.training.terms import parts, summed
from gates.scan.analyses.training.updates import leading
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.site import Site
from gates.scan.ways.hooks import hooks_of

WORDS = ("backward*", "training_step", "scaler*")
MAX_TOLD = 4


def look(project: Project) -> Iterator[Site]:
    """Yield each `losses.append(loss)` and `total = total + loss` of a loss that a backward pass starts from."""
    for module in project.modules.values():
        if not any("backward" in tail or tail in leading(project) for tail in module.calls) and not _lightning(module):
            continue
        for function, losses in _losses(project, module):
            terms = parts(project, module, function)
            for node, value, into in kept_in(function):
                name = text_of(value) if isinstance(value, ast.Name | ast.Attribute | ast.Subscript) else ""
                if name not in losses and not (name in terms and _is_trained_on(function, node, module)):
                    continue
                if is_cut(name, node, module, function_of(node, module) or module.tree):
                    continue
                if _runs_own(project, module, node):
                    continue  # what the method does with it is asked below
                if (
                    _outlives(into, node, module)
                    and unsummed(project, module, into, function)
                    and _is_hot(project, module, node)
                ):
                    yield broken(module, node, f"{text_of(into)} keeps {name} with the graph that made it")
    yield from _given(project)
    yield from _handed(project)


def _is_trained_on(body: ast.AST, node: ast.AST, module: Module) -> bool:
    """Return whether the loop around a node has a backward pass itself."""
    loop = _step_loop(node, module)
    return loop is not None and bool(starts(loop)) and body is not module.tree


def _given(project: Project) -> Iterator[Site]:
    """Yield where a loop keeps what a step returns with the graph of its backward pass."""
    names = giving(project)
    for module in project.modules.values():
        if not names & module.calls.keys():
            continue
        stepping = (f for f in (module.tree, *functions(module)) if any(tail_of(c.func) in names for c in calls(f)))
        for function in stepping:
            scope = project.scope_of(function, module)
            for node, value, into in kept_in(function):
                is_lost = (
                    _outlives(into, node, module)
                    and unsummed(project, module, into, function)
                    and loop_of(node, module)
                )
                if not is_lost or is_ungraded(node, module) or _runs_own(project, module, node):
                    continue
                if found := _given_by(project, value, scope, function):
                    said = f"{text_of(into)} keeps {text_of(value)} with the graph that made it"
                    yield broken(module, node, said, ("returned in", found.module, found.node))
            for made in inner(function, ast.ListComp, ast.GeneratorExp):
                if _is_collected(made, module) and not ({text_of(n) for n in inner(made, ast.Name)} & starts(function)):
                    elt: ast.expr = made.elt  # type: ignore[attr-defined]  # a comprehension
                    if found := given_by(steps(project).origins, elt, scope):
                        said = f"{text_of(elt)} is kept with the graph that made it"
                        yield broken(module, made, said, ("returned in", found.module, found.node))


def _is_collected(made: ast.AST, module: Module) -> bool:
    """Return whether all that a comprehension gives is held at once."""
    parent = module.parents.get(made)
    return isinstance(made, ast.ListComp) or (isinstance(parent, ast.Call) and tail_of(parent.func) in {"sum", "list"})


def _given_by(project: Project, value: ast.expr, scope: Scope, function: ast.AST) -> Origin | None:
    if isinstance(value, ast.Name) and is_cut(value.id, value, scope.module, function):
        return None
    return given_by(steps(project).origins, value, scope)


def _handed(project: Project) -> Iterator[Site]:
    """Yield where helpers keep a loss that they are handed, or the calls of one that others hand what is cut off."""
    for module in project.modules.values():
        for function in functions(module):
            scope = project.scope_of(function, module)
            for node, value, into in kept_in(function):
                whole = handed_in(value, function)
                name = named_in(whole, scope)
                kept = (node, name, into) if name is not None else None
                if (
                    kept is None
                    or not _is_kept_there(kept, function, project, module)
                    or _runs_own(project, module, node)
                    or is_picked(value, function)
                ):
                    continue
                sites = _sites(project, function)
                bad = [(*site, found) for site in sites if (found := _graphs_of(project, kept, whole, function, *site))]
                handed = [_handing(*each) for each in bad]
                said = f"{text_of(into)} keeps {text_of(whole)} with the graph that made it"
                alone = len(bad) == 1 and is_of_caller(*bad[0][:2], kept, function, module)
                is_own = len(bad) == len(sites) or (adds_tensors(function, module, node) and not _cuts(sites, bad))
                if bad and is_own and not alone:
                    yield broken(module, node, said, *(("handed over in", *each) for each in handed[:MAX_TOLD]))
                    continue
                for each, (call, there, _) in zip(handed, bad, strict=True):
                    on = [("handed on in", there, call)] if each != (there, call) else []
                    yield broken(*each, said, *on, ("kept in", module, node))


def _cuts(sites: list[tuple[ast.Call, Module]], bad: list[tuple[ast.Call, Module, list[Origin]]]) -> bool:
    """Return whether a call that hands over no graph cuts off what it hands over."""
    others = (call for call, _ in sites if all(call is not each for each, *_ in bad))
    return any(isinstance(n, ast.Call) and tail_of(n.func) in CUT for call in others for n in walk(call))


def _handing(call: ast.Call, there: Module, found: list[Origin]) -> tuple[Module, ast.AST]:
    """Return where a loss is handed over: the call itself, or the one that hands it on to that."""
    around = function_of(call, there)
    for origin in found:
        statement = statement_of(origin.node, origin.module)
        if origin.scope.function is around or statement is None or isinstance(statement, ast.Return):
            return there, call
    return found[0].module, statement_of(found[0].node, found[0].module) or call


def _runs_own(project: Project, module: Module, node: ast.AST) -> bool:
    """Return whether what looks like a list's method is one of the program."""
    return isinstance(node, ast.Call) and bool(steps(project).targets.of(node, module))


def _sites(project: Project, function: Function) -> list[tuple[ast.Call, Module]]:
    """Return the calls of a function that run again and again, with each step or now and then."""
    known = steps(project)
    named = [(call, there) for call, there in known.origins.called(function) if loop_of(call, there) is not None]
    others = [each for each in named if may_run(project, known.origins, *each, function)]
    fired = project.once(hooks_of)[0].firing.get(function, ())
    others += [each.inside for each in fired if loop_of(each.call, each.module) is not None]
    return list({id(call): (call, there) for call, there in (*known.sites.get(function, ()), *others)}.values())


def _is_kept_there(kept: Kept, function: Function, project: Project, module: Module) -> bool:
    """Return whether a function keeps what it is handed, as it is, in something that is there before and after."""
    _, name, into = kept
    scope = project.scope_of(function, module)
    bindings = scope.bindings.get(name.id, [])
    if not bindings or any(b.kind not in {"parameter", "opaque"} for b in bindings) or starts(function):
        return False
    root = _root_of(into)
    holder = into.value if isinstance(into, ast.Subscript) else into
    made = [b.node for b, _ in scope.attribute(holder)] if isinstance(holder, ast.Attribute) else []
    if root is None or any(node is not None and "maxlen" in text_of(node) for node in made):
        return False
    bound = scope.bindings.get(root, [])
    quiet = any("no_grad" in text_of(d) or "inference_mode" in text_of(d) for d in function.decorator_list)
    return not quiet and all(b.kind == "parameter" for b in bound) and not is_cut(name.id, name, module, function)


def _root_of(node: ast.expr) -> str | None:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _graphs_of(
    project: Project, kept: Kept, whole: ast.expr, function: Function, call: ast.Call, there: Module
) -> list[Origin]:
    """Return the losses of backward passes that a call hands a function, for something that outlives it."""
    known = steps(project)
    scope = project.scope_of(function, there)
    only = Origins(project, lambda asked: [(call, there)] if asked is function else known.called(asked), graph=True)
    holder = call.func.value if isinstance(call.func, ast.Attribute) else None
    holder = None if isinstance(holder, ast.Call) and tail_of(holder.func) == "super" else holder
    root = _root_of(kept[2])
    if root is not None and root != scope.self_name:
        holder = argument(call, function, root, bound=scope.owner is not None) if root in scope.bindings else None
    around = function_of(call, there) or there.tree
    holder = gone_over(holder, call, there) if holder is not None else None
    if holder is not None and not (_outlives(holder, call, there) and unsummed(project, there, holder, around)):
        return []
    if any(isinstance(a, ast.With) and "no_grad" in text_of(a.items[0].context_expr) for a in there.ancestors(call)):
        return []
    ways = ways_of(project, only, whole, scope)
    return [Origin(node, where) for node, where, path in ways if _is_attached(node, where, path)]


def _is_attached(node: ast.expr, scope: Scope, path: tuple[int | None, ...]) -> bool:
    """Return whether an expression is a loss that a backward pass starts from, or holds the parts of one."""
    body = scope.function or scope.module.tree
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div) and not path:
        node = node.left
    if any(text_of(call.func) == f"{text_of(node)}.detach_" for call in calls(body)):
        return False
    if isinstance(node, ast.Attribute):
        is_begun = not path and text_of(node) in starts(body)
        is_begun = is_begun or is_begun_elsewhere(node, scope, of_part=path == (None,))
        return is_begun and not is_ungraded(node, scope.module)
    if not isinstance(node, ast.Name) or isinstance(body, ast.Lambda):
        return False
    begun = starts(body) | set(handed_to_start(scope.project, scope.module, body))
    found = begun if not path else summed(body, begun)
    return node.id in found - {"self"} and not is_cut(node.id, node, scope.module, body)


def _lightning(module: Module) -> bool:
    return any(
        isinstance(n, ast.FunctionDef) and n.name == "training_step" for n in module.live.get(ast.FunctionDef, [])
    )


def _is_hot(project: Project, module: Module, node: ast.AST) -> bool:
    """Ask whether it runs with each step; where it runs only now and then the graph is kept all the same."""
    function = function_of(node, module)
    return (
        loop_of(node, module) is not None
        or is_hot(project, module, node)
        or (function is not None and function.name == "training_step")
    )


def _losses(project: Project, module: Module) -> Iterator[tuple[ast.AST, set[str]]]:
    """Yield each function, or the module, with the names from which its backward passes start, there or in others."""
    for body in (module.tree, *functions(module)):
        found = with_others(starts(body) | set(handed_to_start(project, module, body)), body)
        if isinstance(body, ast.FunctionDef) and body.name == "training_step":
            for node in inner(body, ast.Return):
                value = node.value if isinstance(node, ast.Return) else None
                values = value.values if isinstance(value, ast.Dict) else [value] if value is not None else []
                found |= {name for each in values for name in named(each)}
        if found:
            yield body, found - {"self"}


def _outlives(into: ast.expr, node: ast.AST, module: Module) -> bool:
    """Return whether what it is added to was made outside of the step's loop."""
    while isinstance(into, ast.Subscript):
        into = into.value
    if not isinstance(into, ast.Name):
        return not isinstance(into, ast.Call)
    loop = _step_loop(node, module)
    if loop is None:
        function = function_of(node, module)
        stores = (n for n in inner(function or module.tree, ast.Name) if isinstance(n, ast.Name) and n.id == into.id)
        return function is not None and not any(isinstance(n.ctx, ast.Store) for n in stores)
    return not is_reset(into.id, statement_of(node, module), loop, module)


def _step_loop(node: ast.AST, module: Module) -> Loop | None:
    """Return the innermost loop around a node that has a backward pass itself; without one, the innermost."""
    loop = first = loop_of(node, module)
    while loop is not None and not starts(loop):
        loop = loop_of(loop, module)
    return loop or first
