"""Options that a call is handed as `**options`, as far as the program writes them out."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.reading.code import constant
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

HOPS = 4
REST = "**"  # what stands for the options that callers hand on
READS = frozenset({"get", "items", "keys", "values", "copy"})
Options = dict[str, ast.expr]


def written(more: ast.expr, scope: Scope) -> Options | None:
    """Return the options of a dictionary with all that is ever added to it; `None` where that is not all written."""
    found = sketched(more, scope)
    return found if found is None or REST not in found else None


def sketched(more: ast.expr, scope: Scope, hops: int = HOPS) -> Options | None:
    """Return these; where a function adds the options that its callers hand it, their name stands under `REST`."""
    if not hops:
        return None
    if isinstance(more, ast.Dict):
        return _merged([(k, v) for k, v in zip(more.keys, more.values, strict=True)], scope, hops)
    if isinstance(more, ast.BinOp) and isinstance(more.op, ast.BitOr):
        return _merged([(None, more.left), (None, more.right)], scope, hops)
    if isinstance(more, ast.Call) and isinstance(more.func, ast.Name) and more.func.id == "dict":
        named = [(ast.Constant(k.arg) if k.arg else None, k.value) for k in more.keywords]
        return _merged([*((None, arg) for arg in more.args), *named], scope, hops)
    if isinstance(more, ast.Call):
        return _returned(more, scope, hops)
    if isinstance(more, ast.Name):
        return _of_variable(more, scope, hops)
    return _of_attribute(more, scope, hops) if isinstance(more, ast.Attribute) else None


def _merged(parts: list[tuple[ast.expr | None, ast.expr]], scope: Scope, hops: int) -> Options | None:
    found: Options = {}
    for key, value in parts:
        if key is None:
            inside = sketched(value, scope, hops - 1)
            if inside is None:
                return None
            found = {name: given for name, given in found.items() if name not in inside} | inside
        elif isinstance(constant(key), str):
            found.pop(str(constant(key)), None)
            found[str(constant(key))] = value
        else:
            return None
    return found


def _returned(call: ast.Call, scope: Scope, hops: int) -> Options | None:
    """Return the options that a function of the program returns, on any of its ways."""
    target = scope.project.types.function(call, scope)
    if target is None:
        return None
    there = scope.project.scope_of(target, scope.module)
    values = [n.value for n in inner(target, ast.Return) if isinstance(n, ast.Return) and n.value is not None]
    found = _merged([(None, value) for value in values], there, hops) if values else None
    if found is None or REST not in found:
        return found
    return filled(found, call)


def filled(found: Options, call: ast.Call) -> Options | None:
    """Return options with those that a call hands on; `None` where these are not all written."""
    if any(more.arg is None for more in call.keywords) or any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    handed = {more.arg: more.value for more in call.keywords if more.arg is not None}
    at = [*found].index(REST)
    before, after = [*found.items()][:at], [*found.items()][at + 1 :]
    return {**dict(before), **handed, **dict(after)}


def _of_variable(more: ast.Name, scope: Scope, hops: int) -> Options | None:
    """Return the options of a variable, or of one that is imported."""
    found = scope.lookup(more.id)
    if found is not None and _takes_rest(found[0], more.id):
        return _and_added({REST: more}, _uses(more.id, found[0]), found[0].project, hops)
    if found is None or [b.kind for b in found[1]] not in (["value"], ["import"]):
        return None
    where, binding = found[0], found[1][0]
    if binding.kind == "import":
        return _of_global(binding.dotted, scope, hops)
    return _of_binding(more.id, binding.node, where, hops) if isinstance(binding.node, ast.expr) else None


def _of_global(dotted: str, scope: Scope, hops: int) -> Options | None:
    """Return the options of a variable of a file, by its full name."""
    origin, _, name = scope.project.canonical(dotted, scope.module).rpartition(".")
    module = scope.project.find_module(origin, scope.module) if origin else None
    bound = module.bindings.get(name, []) if module is not None else []
    if module is None or [b.kind for b in bound] != ["value"] or not isinstance(bound[0].node, ast.expr):
        return None
    return _of_binding(name, bound[0].node, scope.project.scope_of(module.tree, module), hops)


def _takes_rest(scope: Scope, name: str) -> bool:
    """Return whether a variable is all that a function is handed by names of its callers: `**options`."""
    rest = scope.function.args.kwarg if isinstance(scope.function, ast.FunctionDef | ast.AsyncFunctionDef) else None
    return rest is not None and rest.arg == name and [b.kind for b in scope.bindings.get(name, [])] in (["opaque"], [])


def _of_binding(name: str, made: ast.expr, where: Scope, hops: int) -> Options | None:
    """Return the options of a variable that is set once, with what its uses add."""
    uses = _uses(name, where) + (_attributes(name, where.project) if where.function is None else [])
    return _with_additions(made, where, uses, hops)


def _uses(name: str, where: Scope) -> list[tuple[ast.expr, Module]]:
    """Return where a variable of a scope is read."""
    return [
        (n, m) for m in ([where.module] if where.function is not None else where.project.modules.values())
        if name in m.words for n in m.live.get(ast.Name, ())
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) and _is_seen(n, m, where)
    ]  # fmt: skip


def _is_seen(node: ast.Name, module: Module, where: Scope) -> bool:
    """Return whether a name stands where it may mean a variable of a scope."""
    found = where.project.scope_at(node, module).lookup(node.id)
    return found is not None and (found[0] is where or (where.function is None and found[0].function is None))


def _of_attribute(more: ast.Attribute, scope: Scope, hops: int) -> Options | None:
    """Return the options of an attribute that is set once, or of a variable of another file."""
    behind = scope.through(more)
    if behind is None:
        dotted = scope.dotted(more)
        return _of_global(dotted, scope, hops) if dotted is not None else None
    return _with_additions(behind[0], behind[1], _attributes(more.attr, scope.project), hops)


def _attributes(name: str, project: Project) -> list[tuple[ast.expr, Module]]:
    """Return where an attribute of a name is read, of whatever object."""
    return [
        (n, m) for m in project.modules.values() if name in m.words for n in m.live.get(ast.Attribute, ())
        if isinstance(n, ast.Attribute) and n.attr == name and isinstance(n.ctx, ast.Load)
    ]  # fmt: skip


def _with_additions(made: ast.expr, scope: Scope, uses: list[tuple[ast.expr, Module]], hops: int) -> Options | None:
    """Return the options of a dictionary with what its uses add; `None` where one may add anything."""
    found = sketched(made, scope, hops - 1)
    return _and_added(found, uses, scope.project, hops) if found is not None else None


def _and_added(found: Options, uses: list[tuple[ast.expr, Module]], project: Project, hops: int) -> Options | None:
    for node, module in uses:
        added = _added(node, module)
        for key, value in added or ():
            inside = sketched(value, project.scope_at(value, module), hops - 1) if key is None else {key: value}
            if inside is None:
                return None
            found = {**found, **inside}
        if added is None:
            return None
    return found


def _added(node: ast.expr, module: Module) -> list[tuple[str | None, ast.expr]] | None:
    """Return what a use of a dictionary adds to it, by its keys or as a whole; `None` where that is not known."""
    around = module.parents.get(node)
    call = module.parents.get(around) if isinstance(around, ast.Attribute) else None
    is_joined = isinstance(around, ast.BinOp) and isinstance(around.op, ast.BitOr)
    is_joined |= isinstance(around, ast.Call) and tail_of(around.func) == "dict" and node in around.args
    is_spread = isinstance(around, ast.keyword) and around.arg is None
    if isinstance(around, ast.Dict | ast.Return) or is_joined or is_spread:
        return []
    if isinstance(around, ast.Subscript):
        at = module.parents.get(around)
        key = constant(around.slice)
        if isinstance(around.ctx, ast.Load):
            return []
        return [(key, at.value)] if isinstance(key, str) and isinstance(at, ast.Assign) else None
    if not isinstance(call, ast.Call) or call.func is not around:
        return None
    if tail_of(call.func) in READS:
        return []
    if tail_of(call.func) == "update":
        return [*((None, arg) for arg in call.args), *((k.arg, k.value) for k in call.keywords)]
    is_default = tail_of(call.func) == "setdefault" and len(call.args) == 2 and isinstance(constant(call.args[0]), str)
    return [(str(constant(call.args[0])), call.args[1])] if is_default else None


def calls_of(project: Project, made: ast.expr, module: Module) -> Iterator[tuple[ast.Call, Module]]:
    """Yield the calls of the variable that an expression is assigned to, in any file."""
    around = module.parents.get(made)
    names = [t.id for t in around.targets if isinstance(t, ast.Name)] if isinstance(around, ast.Assign) else []
    for call, there in (pair for name in names for pair in project.named.get(name, ())):
        scope = project.scope_at(call, there)
        found = scope.lookup(call.func.id) if isinstance(call.func, ast.Name) else None
        own = found is not None and any(b.node is made for b in found[1])
        if own or (found is not None and any(b.kind == "import" for b in found[1])):
            yield call, there
