"""Keys that a caller reads from a dictionary which the callee never puts there."""

import ast
import difflib
from collections.abc import Iterator

from gates.scan.analyses.reading.batches import keys_of_batches
from gates.scan.analyses.reading.by_event import given_by_event
from gates.scan.analyses.reading.code import FUNCTIONS, Comprehension, Told, broken, callee, constant, function_of
from gates.scan.analyses.reading.common_objects import put_beside, read_attributes
from gates.scan.analyses.reading.engines import step_of_batch_end, step_of_output, step_of_transform
from gates.scan.analyses.reading.held import (
    Made,
    adds_key,
    held,
    is_left_by_turns,
    leaves_alone,
    named,
    source_of,
    spread,
    values_in,
)
from gates.scan.analyses.reading.keys import Keys, keys_returned, keys_yielded, only_reads, values_under
from gates.scan.analyses.reading.records import absent_fields
from gates.scan.analyses.reading.running import Origin, iterated_over, run_by
from gates.scan.analyses.reading.saved import keys_on_file
from gates.scan.analyses.reading.written import keys_written
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, kept, text_of, walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.site import Site

Written = tuple[Keys, ast.Dict | ast.Call | Function, Module]
WORDS = ("return {", "return dict(", "yield {", '"] = ', "'] = ", ", {", "= {", "asdict", "TypedDict", "= dict(",
         "NamedTuple")  # fmt: skip
HOPS = 3
ALIKE = 0.6
TWINS = {"load_state_dict": "state_dict", "set_state": "get_state", "__setstate__": "__getstate__"}
WRITTEN_ALONE = {"forward", "__getitem__", "__call__", *TWINS.values()}
PLAIN = {"no_grad", "inference_mode", "enable_grad", "staticmethod", "autocast", "record_function"}


def look(project: Project) -> Iterator[Site]:
    """Yield each `result["key"]` of a call whose function returns only dictionaries without that key."""
    for module in project.modules.values():
        for node in module.live.get(ast.Subscript, []):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                wanted = _keys_of(node, module)
                if wanted:
                    yield from _missing(project, module, node, wanted)
                    yield from _unwritten(project, module, node, wanted)
        for read, info, fields in absent_fields(project, module):
            where = f"{info.scope.module.path}:{info.node.lineno}"
            yield broken(module, read, f"{info.node.name} ({where}) has no field {read.attr!r}: {', '.join(fields)}")


def _keys_of(node: ast.Subscript, module: Module) -> list[str]:
    """Return the keys that a subscript reads: the one written, or those that a loop over written ones goes over."""
    if isinstance(node.slice, ast.Constant):
        return [node.slice.value] if isinstance(node.slice.value, str) else []
    if not isinstance(node.slice, ast.Name):
        return []
    for around in module.ancestors(node):
        loops = [around] if isinstance(around, ast.For) else getattr(around, "generators", [])
        for loop in loops:
            named = isinstance(loop.target, ast.Name) and loop.target.id == node.slice.id
            if named and isinstance(loop.iter, ast.Tuple | ast.List):
                values = [part.value for part in loop.iter.elts if isinstance(part, ast.Constant)]
                return [v for v in values if isinstance(v, str)] if len(values) == len(loop.iter.elts) else []
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            break
    return []


def _unwritten(project: Project, module: Module, node: ast.Subscript, wanted: list[str]) -> Iterator[Site]:
    """Yield a read of a key that a dictionary lacks which is written out, was written to a file, or is a batch."""
    known: Written | None = keys_written(project, module, node.value) or keys_on_file(project, module, node.value)
    known = known or _of_batches(project, module, node)
    absent = [key for key in wanted if known is not None and key not in known[0] | project.once(_added)[0]]
    if known is not None and absent and not _is_asked(node, module, absent):
        keys, made, there = known
        listed, text = ", ".join(sorted(keys)), ", ".join(map(repr, absent))
        said = f"{text_of(node.value)} ({there.path}:{made.lineno}) has no key {text}, its keys: {listed}"
        yield broken(module, node, said, ("its keys are written in", there, made))


def _of_batches(project: Project, module: Module, node: ast.Subscript) -> Written | None:
    """Return the keys of a batch, where others that are read of it are among those: of what is not all known."""
    found = keys_of_batches(project, module, node.value)
    return found if found is not None and _others_fit(node, module, found[0]) else None


def _missing(project: Project, module: Module, node: ast.Subscript, wanted: list[str]) -> Iterator[Site]:
    found = [(origin, _known(project, module, origin)) for origin in _origins(project, module, node.value)]
    if not found or any(keys is None for _, keys in found):
        return
    keys = frozenset().union(*(each for _, each in found if each is not None))
    added = project.once(_added)[0]
    absent = [key for key in wanted if key not in keys and key not in added]
    if not absent or _is_asked(node, module, absent):
        return
    if not all(origin.sure for origin, _ in found) and not _others_fit(node, module, keys):
        return
    target = found[0][0].function
    path = project.scope_of(target, module).module.path
    listed = ", ".join(sorted(keys)) or "none"
    said = "yields" if found[0][0].yields else "returns"
    text = ", ".join(map(repr, absent))
    what = f"{target.name} ({path}:{target.lineno}) {said} no key {text}, its keys: {listed}"
    yield broken(module, node, what, *_renamed(project, keys, absent[0]))


def _renamed(project: Project, keys: frozenset[str], absent: str) -> Iterator[Told]:
    """Yield where a key is written that nothing reads, and that is called much like one which is read."""
    close = difflib.get_close_matches(absent, sorted(keys - project.once(_read)[0]), n=1, cutoff=ALIKE)
    written = [
        (key, module)
        for module in project.modules.values() if close
        for made in module.live.get(ast.Dict, ()) if isinstance(made, ast.Dict)
        for key in made.keys if key is not None and constant(key) == close[0]
    ]  # fmt: skip
    if len(written) == 1:
        key, there = written[0]
        yield f"{close[0]!r}, which nothing reads, is written in", there, key


def _read(project: Project) -> Iterator[frozenset[str]]:
    """Yield the keys that anything in a program reads by name: `row["share"]`, `row.get("share")`."""
    modules = project.modules.values()
    read = [n.slice for m in modules for n in m.live.get(ast.Subscript, []) if isinstance(n, ast.Subscript)]
    read += [c.args[0] for m in modules for name in ("get", "pop") for c in m.calls.get(name, ()) if c.args]
    yield frozenset(value for each in read if isinstance(value := constant(each), str))


def _added(project: Project) -> Iterator[frozenset[str]]:
    """Yield the keys that anything in a program sets one by one: `row["share"] = ...`."""
    nodes = (node for module in project.modules.values() for node in module.live.get(ast.Subscript, []))
    slices = (n.slice for n in nodes if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store))
    yield frozenset(s.value for s in slices if isinstance(s, ast.Constant) and isinstance(s.value, str))


def _known(project: Project, module: Module, origin: Origin) -> Keys | None:
    if _overridden(project, module, origin.function):
        return None
    there = project.scope_of(origin.function, module).module
    if origin.yields:
        return keys_yielded(project, origin.function, there)
    return keys_returned(project, origin.function, there, origin.place)


def _is_asked(node: ast.Subscript, module: Module, absent: list[str]) -> bool:
    """Return whether a key is read only where it is there: under `if "key" in result`, or in a `try`."""
    for around in module.ancestors(node):
        if isinstance(around, ast.Try) and around.handlers:
            return True
        test = getattr(around, "test", None)
        tests = [test] if isinstance(test, ast.expr) else list(around.values) if isinstance(around, ast.BoolOp) else []
        tests += [t for each in getattr(around, "generators", ()) for t in each.ifs]
        asked = (
            c for t in tests for c in walk(t) if isinstance(c, ast.Compare) and isinstance(c.ops[0], ast.In | ast.NotIn)
        )
        if any(text_of(c.left).strip("'\"") in absent or isinstance(c.left, ast.Name) for c in asked):
            return True
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            return any(
                isinstance(c, ast.Compare)
                and isinstance(c.ops[0], ast.NotIn)
                and text_of(c.left).strip("'\"") in absent
                for c in inner(around, ast.Compare)
            )
    return False


def _others_fit(node: ast.Subscript, module: Module, keys: Keys) -> bool:
    """Return whether other keys that are read from the same variable are among those that the function returns."""
    body = function_of(node, module) or module.tree
    others = [
        other.slice.value
        for other in walk(body)
        if isinstance(other, ast.Subscript) and isinstance(other.slice, ast.Constant)
        and text_of(other.value) == text_of(node.value)
    ]  # fmt: skip
    return isinstance(node.value, ast.Name) and any(other in keys for other in others)


def _overridden(project: Project, module: Module, target: Function) -> bool:
    """Return whether another class may have put its own method in the place of this one."""
    scope = project.scope_of(target, module)
    if any(tail_of(d.func if isinstance(d, ast.Call) else d) not in PLAIN for d in target.decorator_list):
        return True
    if scope.owner is None or project.method_names[target.name] <= 1:
        return False
    return bool(project.extending.get(scope.owner.name)) or target.name not in WRITTEN_ALONE


def _origins(project: Project, module: Module, node: ast.expr, hops: int = HOPS) -> list[Origin]:
    """Return the functions that a dictionary comes from; none where one of them is not known."""
    if isinstance(node, ast.Call):
        found = run_by(project, module, node)
        return [Origin(found[0], None, found[1])] if found is not None else []
    if isinstance(node, ast.Attribute):
        step = step_of_output(project, module, node)
        return [step] if step is not None else _of_attribute(project, module, node)
    if isinstance(node, ast.Subscript):
        return _of_element(project, module, node, hops)
    return _of_name(project, module, node, hops) if isinstance(node, ast.Name) else []


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
        for origin in _origins(project, module, node.value, hops - 1):
            there = project.scope_of(origin.function, module).module
            inside = values_under(origin.function, key) if origin.sure and origin.place is None else []
            if not inside:
                return []
            return _all_run(project, [(call, there) for call in inside], hops)
    return _all_run(project, found, hops)


def _all_run(project: Project, made: list[Made], hops: int) -> list[Origin]:
    """Return the functions that values come from; none where one of them is not known."""
    found: list[Origin] = []
    for value, there in made:
        more = _origins(project, there, value, hops - 1) if hops > 0 or isinstance(value, ast.Call) else []
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
    for call, there in project.named.get(function.name, [])[:20]:
        if callee(project, there, call) is not function:
            return []
        value = argument(call, function, name, bound=bound)
        is_one = isinstance(value, ast.Name | ast.Call | ast.Attribute | ast.Subscript)
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
