"""What training runs with each step by way of others: objects that pass calls on, objects of classes in a table."""

import ast
from collections.abc import Callable, Iterator

from gates.scan.analyses.reading.code import callee, calls, function_of, module_of
from gates.scan.analyses.reading.origins import Origins
from gates.scan.analyses.reading.targets import Targets
from gates.scan.analyses.settings.registered import kept, made_of_kept
from gates.scan.analyses.training.steps import Steps
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import text_of, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.ways.registries import keyed

IsFree = Callable[[Module, ast.AST, ast.AST], bool]
Root = tuple[Module, ast.AST]
Run = tuple[Function, ast.Call, Module]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def steps_of(project: Project, begun: list[Root], is_free: IsFree) -> Steps:
    """Return what training runs with each step, from the loops and functions that take one."""
    known = Steps(project, iter(begun), is_free)
    found = list(_runs(project, known, begun, is_free))
    if not found:
        return known
    also = [(module_of(project, function, module), function) for function, _, module in found]
    known = Steps(project, iter([*begun, *also]), is_free)
    for function, call, module in found:
        known.sites[function].append((call, module))
    return known


def _runs(project: Project, known: Steps, begun: list[Root], is_free: IsFree) -> Iterator[Run]:
    """Yield the methods that calls run in a way that the class of their object does not tell."""
    passing = list(_passing(project, known.origins))
    keeps = any(isinstance(call.func, ast.Subscript | ast.Call) for call, _ in project.named.get("", ()))
    first = next(iter(project.modules.values()))
    inside = [(module_of(project, f, first), f) for f in known.sites if isinstance(f, FUNCTIONS)]
    for module, root in [*begun, *inside] if passing or keeps else ():
        for call in calls(root) if root not in known.timed else ():
            name = tail_of(call.func)
            if name not in project.by_method or not isinstance(call.func, ast.Attribute):
                continue
            if is_free(module, call, root) and not known.targets.of(call, module):
                owners = list(_behind(project, known.origins, call.func.value, project.scope_at(call, module), passing))
                methods = (project.method(owner, name) for owner in owners)
                yield from ((f, call, module) for f in dict.fromkeys(m[0] for m in methods if m is not None))


def _behind(
    project: Project, origins: Origins, held: ast.expr, scope: Scope, passing: list[tuple[ClassInfo, list[ClassInfo]]]
) -> Iterator[ClassInfo]:
    """Yield the classes of the objects that run a method in place of the object that it is called on."""
    own = origins.classes(held, scope)
    for owner, others in passing:
        if owner in own:
            yield from others
    if not own:
        known = list(made_of_kept(project, held, scope))
        yield from known or _made_of_any(project, origins, held, scope)


def _made_of_any(project: Project, origins: Origins, held: ast.expr, scope: Scope) -> Iterator[ClassInfo]:
    """Yield the classes of a table, of which one made an object whatever key is asked for: `KINDS[name]()`."""
    for made in origins.of(held, scope):
        func = made.node.func if isinstance(made.node, ast.Call) else None
        for each in origins.of(func, made.scope) if isinstance(func, ast.Subscript | ast.Call) else ():
            named = each.scope.dotted(each.node) if isinstance(each.node, ast.Name | ast.Attribute) else None
            if named in project.classes:
                yield project.classes[named or ""]
        table = tail_of(keyed(func)[0]) if isinstance(func, ast.Subscript | ast.Call) else ""
        yield from (info for _, info in kept(project, table)) if table else ()


def _passing(project: Project, origins: Origins) -> Iterator[tuple[ClassInfo, list[ClassInfo]]]:
    """Yield the classes whose objects pass calls of any name on, and the classes of those that they pass them on to."""
    for owner in project.by_method.get("__getattr__", ()):
        begun = owner.methods.get("__getattr__")
        if begun is None or owner.twice:
            continue
        named = {n.attr for n in walk(begun) if isinstance(n, ast.Attribute)}
        bodies = [begun, *(owner.methods[name] for name in sorted(named & owner.methods.keys()))]
        found = [other for body in bodies for other in _asked(project, origins, body, owner.scope.module)]
        if found and all(map(_hands_all_on, bodies)):
            yield owner, list(dict.fromkeys(found))


def _asked(project: Project, origins: Origins, body: Function, module: Module) -> Iterator[ClassInfo]:
    """Yield the classes of the objects that are asked for a method by a name which is handed over."""
    handed = {arg.arg for arg in body.args.args}
    for node in walk(body):
        if isinstance(node, ast.Call) and tail_of(node.func) == "getattr" and len(node.args) > 1:
            held, name = node.args[:2]
            if isinstance(name, ast.Name) and name.id in handed and tail_of(held) not in handed:
                yield from origins.classes(held, project.scope_at(node, module))


def _hands_all_on(body: Function) -> bool:
    """Return whether no call in a function puts something before the arguments that it hands on."""
    made = [n for n in walk(body) if isinstance(n, ast.Call) and tail_of(n.func) not in {"partial", "getattr"}]
    return not any(any(isinstance(arg, ast.Starred) for arg in call.args[1:]) for call in made)


def kept_functions(project: Project, module: Module, call: ast.Call) -> list[Function]:
    """Return the function that a call runs, or those of which an object keeps one: `self.process(batch)`."""
    target = callee(project, module, call)
    if target is not None or not isinstance(call.func, ast.Attribute):
        return [target] if target is not None else []
    scope = project.scope_at(call, module)
    if not (isinstance(call.func.value, ast.Name) and call.func.value.id == scope.self_name):
        return []
    found = list(project.once(_targets)[0].behind(call.func, scope))
    return [each for each in found if not isinstance(each, ast.Lambda)]


def _targets(project: Project) -> Iterator[Targets]:
    yield Targets(project, Origins(project))


def passes_on(loop: ast.For, module: Module) -> bool:
    """Return whether a loop calls the method of each object that is named as the one it stands in."""
    around = function_of(loop, module)
    texts = {f"{tail_of(loop.target)}.{around.name}"} if around is not None else set()
    return any(text_of(call.func) in texts for call in calls(loop))
