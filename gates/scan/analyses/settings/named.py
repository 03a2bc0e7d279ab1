"""What names and attributes are in each world: by where they are set, by what callers and constructors pass."""

import ast
from collections import defaultdict

from gates.scan.analyses.reading.called import Called, Made
from gates.scan.analyses.reading.constructors import declared, passed_for
from gates.scan.analyses.settings.defaults import KINDS, member
from gates.scan.analyses.settings.guards import Guard, given_back, guards_of, met
from gates.scan.analyses.settings.worlds import Asking, Atom, Known, Thing, Value, Values, World, common, few
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Binding, Function, is_abstract, is_property, tail_of
from gates.scan.program.nodes import inner, is_none
from gates.scan.program.scope import Scope

MAX_CALLS = 8
ENUMS = frozenset({"Enum", "StrEnum", "IntEnum"})
FEATURES = frozenset({"value", "name", "type"})
Bound = tuple[Binding, Scope]


def of_name(ask: Asking, node: ast.Name, scope: Scope, world: World) -> Values:
    """Return what a variable is."""
    if node.id == scope.self_name and isinstance(scope, Called) and scope.made is not None:
        return ask.values(scope.made[0], scope.made[1], world)
    found = Scope.lookup(scope, node.id)
    if found is None:
        return [(None, world)]
    where, bindings = found
    if all(binding.kind == "import" for binding in bindings):
        return _imported(ask, node, scope, world)
    before = getattr(node, "lineno", 0) if where.function is scope.function else 0
    return _set(ask, node.id, [(b, where) for b in bindings], world, before)


def _imported(ask: Asking, node: ast.Name, scope: Scope, world: World) -> Values:
    dotted = scope.dotted(node) or ""
    if dotted in KINDS:
        return [(Known("torch.float16" if dotted == "torch.half" else dotted), world)]
    module = scope.project.find_module(dotted.rpartition(".")[0], scope.module)
    name = dotted.rpartition(".")[2]
    bindings = module.bindings.get(name, []) if module is not None else []
    if module is None or not bindings or any(b.kind == "import" for b in bindings):
        return [(None, world)]
    where = scope.project.scope_of(module.tree, module)
    return _set(ask, name, [(b, where) for b in bindings], world, 0)


def _set(ask: Asking, name: str, bound: list[Bound], world: World, before: int) -> Values:
    """Return what a name is by the last of its settings whose conditions hold, of each function that sets it."""
    bodies: dict[ast.AST | None, list[Bound]] = defaultdict(list)
    for binding, where in bound:
        bodies[where.function].append((binding, where))
    if len(bodies) > 1:  # what is empty at first is filled elsewhere
        filled = {body: each for body, each in bodies.items() if not all(is_none(b.node) for b, _ in each)}
        bodies = filled or bodies
    return few(pair for each in bodies.values() for pair in _in_body(ask, name, each, world, before))


def _in_body(ask: Asking, name: str, bound: list[Bound], world: World, before: int) -> Values:
    open_, found = [world], []
    earlier = [each for each in bound if not before or _line(*each) < before]
    for binding, scope in reversed(earlier or bound):
        following: list[World] = []
        for where in open_:
            guards = _guards(binding, scope)
            for truth, there in met(ask, guards, scope, where):
                found += _of_binding(ask, name, binding, scope, there) if truth is not False else []
                following += [there] if truth is not True else []
        open_ = common(following)
    return few([*found, *((None, where) for where in open_)]) if not found else few(found)


def _guards(binding: Binding, scope: Scope) -> list[Guard]:
    """Return the conditions under which a name is set."""
    if binding.node is None or not _is_set(binding):
        return []
    return list(guards_of(binding.node, scope.module, leaving=False))


def _line(binding: Binding, scope: Scope) -> int:
    """Return where the statement ends that sets a name; nothing where it is a parameter."""
    if not _is_set(binding) or binding.node is None:
        return 0
    around = (binding.node, *scope.module.ancestors(binding.node))
    return next((getattr(a, "end_lineno", 0) for a in around if isinstance(a, ast.stmt)), 0)


def _is_set(binding: Binding) -> bool:
    return binding.kind in {"value", "item"} and binding.node is not None


def _of_binding(ask: Asking, name: str, binding: Binding, scope: Scope, world: World) -> Values:
    if binding.kind == "parameter":
        return _of_parameter(ask, name, scope, world)
    if binding.kind == "value" and isinstance(binding.node, ast.expr):
        return ask.values(binding.node, scope, world)
    if binding.kind == "item" and isinstance(binding.node, ast.expr):
        made = ask.values(binding.node, scope, world)
        return few(pair for value, where in made for pair in _part(ask, value, binding.index, where))
    return [(None, world)]


def _part(ask: Asking, value: Value, index: int, world: World) -> Values:
    parts = value.node.elts if isinstance(value, Thing) and isinstance(value.node, ast.Tuple | ast.List) else []
    if not isinstance(value, Thing) or index >= len(parts) or any(isinstance(p, ast.Starred) for p in parts):
        return [(None, world)]
    return ask.values(parts[index], value.scope, world)


def _of_parameter(ask: Asking, name: str, scope: Scope, world: World) -> Values:
    """Return what a function is handed: by the one call that counts, by each that may be, or by whoever sets it."""
    if isinstance(scope, Called):
        given = scope.given.get(name)
        return ask.values(given[0], given[1], world) if given is not None else [(Atom(name), world)]
    function = scope.function
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return [(Atom(name), world)]
    if function in world.picks:
        return _passed(ask, name, scope, world, world.picks[function])
    found: Values = []
    for made in _calls(scope, function):
        found += _passed(ask, name, scope, world.picking(function, made), made)
    return few(found) or [(Atom(name), world)]


def _calls(scope: Scope, function: Function) -> list[Made]:
    """Return the calls that run a function from outside of it."""
    project, is_made = scope.project, scope.owner is not None and function.name == "__init__"
    name = scope.owner.node.name if is_made and scope.owner is not None else function.name
    found: list[Made] = []
    for call, module in project.named.get(name, [])[:MAX_CALLS]:
        where = project.scope_at(call, module)
        target = project.types.function(call, where) if not is_made else None
        runs = where.class_of(call) is scope.owner if is_made else target is function or _is_twin(target, scope)
        if runs and where.function is not function:
            found.append((call, where))
    return found


def _is_twin(target: Function | None, scope: Scope) -> bool:
    """Return whether a function is another definition of the same one, as for another version of a library."""
    if target is None or target.name != getattr(scope.function, "name", None):
        return False
    there = scope.project.scope_of(target, scope.module)
    return there.module is scope.module and there.owner is scope.owner and there.outer is scope.outer


def _passed(ask: Asking, name: str, scope: Scope, world: World, made: Made) -> Values:
    given = ask.within(scope, made[0], made[1]).given.get(name) if isinstance(made[0], ast.Call) else None
    return ask.values(given[0], given[1], world) if given is not None else [(Atom(name), world)]


def of_attribute(ask: Asking, node: ast.Attribute, scope: Scope, world: World) -> Values:
    """Return what an attribute of an object is."""
    dotted = scope.dotted(node) if scope.dotted(node.value) == "torch" else None
    if dotted in KINDS:
        return [(Known("torch.float16" if dotted == "torch.half" else dotted), world)]
    known = member(node, scope)
    if known is not None:
        return [(Known(known), world)]
    named = scope.project.classes.get(scope.dotted(node.value) or "")
    if named is not None:
        bound = scope.project.attribute(named, node.attr)
        return _set(ask, node.attr, bound, world, 0) if bound else [(None, world)]
    if isinstance(node.value, ast.Name) and node.value.id == scope.self_name and scope.self_class is not None:
        made = scope.made if isinstance(scope, Called) else None
        return of_field(ask, scope.self_class, node.attr, made, world)
    if world.key != World().key:
        anywhere = {value for value, _ in ask.values(node, scope, World())}
        if len(anywhere) == 1 and not isinstance(value := anywhere.pop(), Thing):
            return [(value, world)]  # it is the same whatever else is settled
    held = ask.values(node.value, scope, world)
    return few(pair for value, where in held for pair in _of_held(ask, value, node, scope, where))


def _of_held(ask: Asking, value: Value, node: ast.Attribute, scope: Scope, world: World) -> Values:
    """Return what an attribute of something is."""
    if isinstance(value, Known | Atom) and node.attr in FEATURES:
        return [(value, world)]
    if isinstance(value, Thing) and isinstance(value.node, ast.Call):
        info = class_made(value)
        if info is not None:
            return of_field(ask, info, node.attr, (value.node, value.scope), world)
        given = next((k.value for k in value.node.keywords if k.arg == node.attr), None)
        if given is not None:
            return ask.values(given, value.scope, world)
    owner = scope.class_of(node.value)
    if owner is None:
        return [(Atom(node.attr), world)]
    return of_field(ask, owner, node.attr, (node.value, scope) if _is_enum(owner) else None, world)


def class_made(value: Value) -> ClassInfo | None:
    """Return the class of the program that something is an object of, by the call that made it."""
    if not isinstance(value, Thing) or not isinstance(value.node, ast.Call):
        return None
    return value.scope.project.classes.get(value.scope.dotted(value.node.func) or "")


def _is_enum(owner: ClassInfo) -> bool:
    return any(str(base).rpartition(".")[2] in ENUMS for base in owner.bases)


def of_field(ask: Asking, owner: ClassInfo, name: str, made: Made | None, world: World) -> Values:
    """Return what an attribute of an object of a class is: a property, what its methods set, what it is made with."""
    method = owner.scope.project.method(owner, name)
    if method is not None:
        scope = owner.scope.project.scope_of(method[0], method[1])
        return (
            returned(ask, method[0], _of_object(ask, scope, made), world) if is_property(method[0]) else [(None, world)]
        )
    if name in (fields := declared(owner)):
        return _of_declared(ask, owner, name, made, world)
    bound = [b for b in owner.scope.project.attribute(owner, name) if _is_set(b[0]) or b[0].kind == "opaque"]
    if not bound or any(b.kind == "opaque" for b, _ in bound):
        return [(Atom(name) if not bound and not fields else None, world)]
    return _set(ask, name, [(b, _of_object(ask, where, made)) for b, where in bound], world, 0)


def _of_object(ask: Asking, scope: Scope, made: Made | None) -> Scope:
    """Return the scope of a method for the object that something made."""
    if made is None or not isinstance(scope.function, ast.FunctionDef | ast.AsyncFunctionDef):
        return scope
    if scope.function.name == "__init__" and isinstance(made[0], ast.Call):
        return ask.within(scope, made[0], made[1], made)
    return ask.within(scope, None, made[1], made)


def _of_declared(ask: Asking, owner: ClassInfo, name: str, made: Made | None, world: World) -> Values:
    """Return what a field is that a class declares: what the call passes that counts, or one of those that do."""
    made = made or world.picks.get(owner.node)
    makers = _makers(owner)
    if all(passed_for(name, call, owner) is None for call, _ in makers):
        return [(Atom(name), world)]
    if made is not None and isinstance(made[0], ast.Call):
        return _of_made(ask, owner, name, made, world)
    chosen = ((made, world.picking(owner.node, made)) for made in makers)
    return few(pair for made, where in chosen for pair in _of_made(ask, owner, name, made, where))


def _of_made(ask: Asking, owner: ClassInfo, name: str, made: Made, world: World) -> Values:
    """Return what a call passes for a field, or what that is by default."""
    call = made[0]
    assert isinstance(call, ast.Call)
    given = passed_for(name, call, owner)
    if given is not None:
        return ask.values(given, made[1], world)
    default = next(
        (s.value for s in owner.node.body if isinstance(s, ast.AnnAssign) and tail_of(s.target) == name), None
    )
    if default is None or any(k.arg is None for k in call.keywords):
        return [(Atom(name), world)]
    return ask.values(default, owner.scope, world)


def _makers(owner: ClassInfo) -> list[tuple[ast.Call, Scope]]:
    """Return the calls that make objects of a class, those in its own class methods too."""
    project = owner.scope.project
    made = [(call, project.scope_at(call, module)) for call, module in project.named.get(owner.node.name, [])]
    found = [(call, where) for call, where in made if where.dotted(call.func) == owner.name]
    for method in owner.methods.values():
        own = method.args.args[0].arg if method.args.args else ""
        if any(tail_of(d) == "classmethod" for d in method.decorator_list):
            calls = [c for c in inner(method, ast.Call) if isinstance(c, ast.Call)]
            scope = project.scope_of(method, owner.scope.module)
            found += [(c, scope) for c in calls if isinstance(c.func, ast.Name) and c.func.id == own]
    return found[:MAX_CALLS]


def returned(ask: Asking, function: Function, scope: Scope, world: World) -> Values:
    """Return what a function gives back."""
    if is_abstract(function) or any(True for _ in inner(function, ast.Yield, ast.YieldFrom)):
        return [(None, world)]
    return given_back(ask, function.body, scope, world)
