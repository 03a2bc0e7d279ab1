"""Where a dictionary comes from: the functions of the program that return it, yield it or put it together."""

import ast

from gates.scan.analyses.reading.by_event import given_by_event
from gates.scan.analyses.reading.code import FUNCTIONS, Comprehension, callee, constant, function_of, named
from gates.scan.analyses.reading.common_objects import put_beside, read_attributes
from gates.scan.analyses.reading.engines import step_of_batch_end, step_of_output, step_of_transform
from gates.scan.analyses.reading.gone_through import source_of
from gates.scan.analyses.reading.handed_out import calls_of_inner
from gates.scan.analyses.reading.held import (
    Made,
    adds_key,
    held,
    is_left_by_turns,
    leaves_alone,
    spread,
    values_in,
    values_under,
)
from gates.scan.analyses.reading.keys import keys_of
from gates.scan.analyses.reading.only_read import only_reads
from gates.scan.analyses.reading.running import Origin, iterated_over, run_by
from gates.scan.program.module import Function, Module
from gates.scan.program.nodes import kept, walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project

TWINS = {"load_state_dict": "state_dict", "set_state": "get_state", "__setstate__": "__getstate__"}
HOPS = 3


def origins_of(project: Project, module: Module, node: ast.expr, hops: int = HOPS) -> list[Origin]:
    """Return the functions that a dictionary comes from; none where one of them is not known."""
    if isinstance(node, ast.Call):
        found = run_by(project, module, node)
        return [Origin(found[0], None, found[1])] if found is not None else []
    if isinstance(node, ast.Attribute):
        step = step_of_output(project, module, node)
        return [step] if step is not None else _of_attribute(project, module, node)
    if isinstance(node, ast.Subscript):
        return _of_element(project, module, node, hops)
    if isinstance(node, ast.Dict | ast.BinOp):
        return _put_together(project, module, node)
    if not isinstance(node, ast.Name):
        return []
    return _of_name(project, module, node, hops) or _put_together(project, module, node)


def _put_together(project: Project, module: Module, node: ast.expr) -> list[Origin]:
    """Return a function that puts a dictionary together itself, of what others return: `{**stats, **metrics}`."""
    function = function_of(node, module)
    keys = keys_of(project, module, node) if function is not None else None
    return [Origin(function, None, sure=True, keys=keys)] if function is not None and keys else []


def _of_name(project: Project, module: Module, node: ast.Name, hops: int) -> list[Origin]:
    """Return the functions that a variable has its dictionary from; none where one of them is not known."""
    body = function_of(node, module) or module.tree
    bound: list[Origin] = []
    binder = _binder(node, node.id, module)
    if isinstance(binder, ast.Lambda):
        step = step_of_transform(project, module, binder)
        return [step] if step is not None else []
    uses = [n for n in kept(body, named).get(node.id, []) if _binder(n, node.id, module) is binder]
    if any(_is_handed_on(other, module) and not _is_left(project, module, other) for other in uses):
        return []
    for other in uses:
        more: list[Origin] = []
        if isinstance(other, ast.arg):
            more = _taken(project, module, body, node.id, hops) if isinstance(body, FUNCTIONS) and hops else []
        elif isinstance(other, ast.Name) and isinstance(other.ctx, ast.Store) and other in module.parents:
            more = _stored(project, module, body, other, hops)
        else:
            continue
        if not more:
            return []
        bound += more
    return bound


def _binder(node: ast.AST, name: str, module: Module) -> ast.AST | None:
    """Return the comprehension or the lambda around a use of a name that has a variable of that name for itself."""
    for around in module.ancestors(node):
        if isinstance(around, FUNCTIONS):
            break
        own = [each.target for each in around.generators] if isinstance(around, Comprehension) else []
        given = around.args.args if isinstance(around, ast.Lambda) else []
        names = {n.id for target in own for n in walk(target) if isinstance(n, ast.Name)} | {arg.arg for arg in given}
        if name in names:
            return around
    return None


def _stored(project: Project, module: Module, body: ast.AST, name: ast.Name, hops: int) -> list[Origin]:
    """Return the functions that a variable has its dictionary from where it is set: by one, or as one of several."""
    parent = module.parents.get(name)
    origin = _bound(project, module, name, parent)
    if origin is not None:
        return [origin]
    if isinstance(parent, ast.Assign) and isinstance(parent.value, ast.Subscript) and parent.targets == [name]:
        return _of_element(project, module, parent.value, hops)
    container, path = source_of(name, module) or (None, [])
    if isinstance(container, ast.Name):
        return _all_run(project, held(project, container.id, body, module, path=path), hops)
    return _all_run(project, [(v, module) for v in values_in(container, path)], hops) if container is not None else []


def _of_element(project: Project, module: Module, node: ast.Subscript, hops: int) -> list[Origin]:
    """Return the functions that an element of a container comes from: `results["amp"]`."""
    if not isinstance(node.value, ast.Name):
        return []
    found = held(project, node.value.id, function_of(node, module) or module.tree, module)
    key = constant(node.slice)
    if not found and isinstance(key, str) and hops > 0:
        for origin in origins_of(project, module, node.value, hops - 1):
            there = project.scope_of(origin.function, module).module
            is_whole = origin.sure and origin.place is None and origin.keys is None
            inside = values_under(project, origin.function, there, key) if is_whole else []
            return _all_run(project, inside, hops) if inside else []
    return _all_run(project, found, hops)


def _all_run(project: Project, made: list[Made], hops: int) -> list[Origin]:
    """Return the functions that values come from; none where one of them is not known."""
    found: list[Origin] = []
    for value, there in made:
        more = origins_of(project, there, value, hops - 1) if hops > 0 or isinstance(value, ast.Call) else []
        if not more:
            return []
        found += more
    return found


def _is_left(project: Project, module: Module, node: ast.AST) -> bool:
    return leaves_alone(project, module, node) or is_left_by_turns(project, module, node)


def _is_handed_on(node: ast.AST, module: Module) -> bool:
    """Return whether a use of a variable hands the dictionary on to what may change it."""
    if not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Store) or node not in module.parents:
        return False
    parent = module.parents[node]
    return not (adds_key(parent, node) or only_reads(parent, node, module))


def _taken(project: Project, module: Module, function: Function, name: str, hops: int) -> list[Origin]:
    """Return what a framework or all calls of a function pass for a parameter; none where one of them is not known."""
    step = step_of_batch_end(project, function, name) or _of_twin(project, module, function)
    if step is not None:
        return [step]
    found: list[Origin] = []
    bound = project.scope_of(function, module).owner is not None
    inside = calls_of_inner(project, function, module)
    for call, there in inside if inside is not None else project.named.get(function.name, [])[:20]:
        if inside is None and callee(project, there, call) is not function:
            return []
        value = argument(call, function, name, bound=bound)
        is_one = isinstance(value, ast.Name | ast.Call | ast.Attribute | ast.Subscript | ast.Dict | ast.BinOp)
        more = _all_run(project, [(value, there)] if is_one and value else spread(project, there, call), hops)
        if not more:
            return []
        found += more
    return found or _fired(project, module, function, name, hops)


def _fired(project: Project, module: Module, function: Function, name: str, hops: int) -> list[Origin]:
    """Return what the calls pass for a parameter that have a method run by its name."""
    given = given_by_event(project, module, function, name)
    made: list[Made] = [(v, there) for v, there in given if isinstance(v, ast.Name | ast.Call | ast.Attribute)]
    return _all_run(project, made, hops) if len(made) == len(given) else []


def _of_twin(project: Project, module: Module, function: Function) -> Origin | None:
    """Return the method that gives what another one of its class takes back: `state_dict`, of `load_state_dict`."""
    owner = project.scope_of(function, module).owner
    twin = owner.methods.get(TWINS.get(function.name, "")) if owner is not None else None
    return Origin(twin, None, sure=False) if twin is not None and len(function.args.args) == 2 else None


def _of_attribute(project: Project, module: Module, node: ast.Attribute) -> list[Origin]:
    """Return the function that an attribute keeps the dictionary of, where nothing ever adds to it."""
    behind = project.scope_at(node, module).through(node)
    made = [(behind[0], behind[1].module)] if behind is not None else put_beside(project, module, node)
    if not made or not all(isinstance(value, ast.Call) for value, _ in made):
        return []
    read = project.once(read_attributes)[0].get(node.attr, ())
    if not all(only_reads(m.parents.get(n), n, m) or is_left_by_turns(project, m, n) for n, m in read):
        return []
    found = [run_by(project, there, value) for value, there in made if isinstance(value, ast.Call)]
    known = [Origin(each[0], None, each[1]) for each in found if each is not None]
    return known if len(known) == len(found) else []


def _bound(project: Project, module: Module, name: ast.Name, parent: ast.AST | None) -> Origin | None:
    """Return what a name is set to, where that is what a call of the program returns, or an element of it."""
    index: int | None = None
    if isinstance(parent, ast.Tuple) and not any(isinstance(part, ast.Starred) for part in parent.elts):
        index, parent = parent.elts.index(name), module.parents.get(parent)
        value = parent.value if isinstance(parent, ast.Assign) else None
        if isinstance(value, ast.Tuple):
            value, index = (value.elts[index], None) if len(value.elts) > index else (None, None)
    elif isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr):
        value = parent.value
    elif isinstance(parent, ast.For | ast.comprehension) and parent.target is name:
        return iterated_over(project, module, parent.iter)
    else:
        return None
    found = run_by(project, module, value) if isinstance(value, ast.Call) else None
    return Origin(found[0], index, found[1]) if found is not None else None
