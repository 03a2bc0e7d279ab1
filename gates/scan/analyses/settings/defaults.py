"""What settings are made of where nobody changes them: defaults of fields, of parameters, of the command line."""

import ast
from collections.abc import Iterable, Iterator

from gates.scan.analyses.reading.called import Called, Made, called
from gates.scan.analyses.reading.code import constant, keyword
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Module, is_property, tail_of
from gates.scan.program.nodes import inner, is_none, text_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.program.signatures import parameters

KINDS = frozenset({"torch.half", "torch.float16", "torch.bfloat16", "torch.float32", "torch.float"})
MAX_CALLERS = 20
MAX_HOPS = 4
COPIES = frozenset({"dict", "copy", "deepcopy", "MappingProxyType", "OrderedDict", "defaultdict", "create"})
NAMESPACES = frozenset({"SimpleNamespace", "Namespace", "CN", "CfgNode", "ConfigDict", "EasyDict", "AttrDict", "Munch"})
FIELDS = frozenset({"field", "Field", "attrib", "ib"})


def defaults(node: ast.expr, scope: Scope, hops: int = MAX_HOPS) -> Iterator[Made]:
    """Yield what a parameter, a field, a property or an option of the command line is made of, by default."""
    if isinstance(node, ast.Name):
        yield from _of_parameter(node.id, scope)
    elif isinstance(node, ast.Attribute):
        owner = scope.class_of(node.value) or _class_by_default(node.value, scope, hops)
        if owner is not None:
            yield from _of_field(scope.project, owner, node.attr)
        else:
            yield from [*_of_option(scope.project, node.attr)] or _of_namespace(scope.project, node.attr)


def _of_parameter(name: str, scope: Scope) -> Iterator[Made]:
    """Yield what a parameter is: its default, or the constant that all callers pass which pass one."""
    found = scope.lookup(name)
    function = found[0].function if found else None
    if found is None or found[0].outer is None or not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    default = parameters(function).get(name)
    if default is None or any(binding.kind != "parameter" for binding in found[1]):
        return
    given = {told: made for made in _by_callers(name, found[0], function) if (told := _told(*made)) is not None}
    if len(given) < 2:
        yield next(iter(given.values()), (default, found[0].outer))


def callers_pass(name: str, scope: Scope) -> Iterator[Made]:
    """Yield what each call of a function from outside of it has for a parameter that nothing else is put in."""
    found = scope.lookup(name)
    function = found[0].function if found else None
    if found is None or not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    if all(binding.kind == "parameter" for binding in found[1]):
        yield from (made for made in _by_callers(name, found[0], function) if made[1].function is not function)


def _by_callers(name: str, scope: Scope, function: Function) -> Iterator[Made]:
    """Yield what each call of a function has for a parameter that has a default."""
    owner = scope.owner.node.name if scope.owner is not None and function.name == "__init__" else function.name
    for call, module in scope.project.named.get(owner, [])[:MAX_CALLERS]:
        where = scope.project.scope_at(call, module)
        made = scope.owner is not None and scope.project.types.of(call, where) == scope.owner.name
        if made or scope.project.types.function(call, where) is function:
            inside = called(scope, call, where).given
            rest = (k.value for k in call.keywords if k.arg is None and name not in inside)
            kept = next((found for each in rest if (found := under(each, name, where, MAX_HOPS))), None)
            yield from (inside[name],) if name in inside else (kept,) if kept is not None else ()


def _told(value: ast.expr, scope: Scope) -> object:
    """Return a constant, a member, or the full name of a type of numbers that is written out."""
    if isinstance(value, ast.Constant):
        return value.value
    dotted = scope.dotted(value) if isinstance(value, ast.Attribute) else None
    return constant(value) or (member(value, scope) if dotted else None) or (dotted if dotted in KINDS else None)


def _class_by_default(node: ast.expr, scope: Scope, hops: int = MAX_HOPS) -> ClassInfo | None:
    """Return the class of what is one by default: of `config=Config()`, a field of that, a name for either."""
    made = (behind_of(node, scope) or next(defaults(node, scope, hops - 1), None)) if hops else None
    if made is None:
        return None
    return made[1].class_of(made[0]) or _class_by_default(made[0], made[1], hops - 1)


def _of_field(project: Project, owner: ClassInfo, name: str) -> Iterator[Made]:
    """Yield what every caller passes for a field, else its default, or what a property returns."""
    for info in (owner, *project.ancestors_of(owner)):
        method = info.methods.get(name)
        if method is not None:
            values = [n.value for n in inner(method, ast.Return) if isinstance(n, ast.Return) and n.value is not None]
            if len(values) == 1 and is_property(method):
                yield values[0], project.scope_of(method, info.scope.module)
            return
        for statement in info.node.body:
            targets = [statement.target] if isinstance(statement, ast.AnnAssign) else []
            if isinstance(statement, ast.AnnAssign) and tail_of(targets[0]) == name and statement.value is not None:
                given = list(_passed(project, owner, name))
                yield from given if len(given) == 1 else [(_of_factory(statement.value), info.scope)]
                return
        bound = [(b.node, where) for b, where in info.attributes.get(name, []) if b.kind == "value"]
        if len(bound) == 1 and isinstance(bound[0][0], ast.expr):
            yield bound[0][0], bound[0][1]
            return


def _of_factory(value: ast.expr) -> ast.expr:
    """Return what a field is by default: `x` of `field(default=x)` and `default_factory=lambda: x`, or `X()` of `X`."""
    if not isinstance(value, ast.Call) or tail_of(value.func) not in FIELDS:
        return value
    made = keyword(value, "default_factory") or keyword(value, "factory")
    found = keyword(value, "default") or (value.args[0] if value.args else None)
    if found is not None or made is None:
        return found or value
    return made.body if isinstance(made, ast.Lambda) else ast.Call(made, [], [])


def _passed(project: Project, owner: ClassInfo, name: str) -> Iterator[Made]:
    """Yield the constants and the types of numbers that constructors of a class are passed for a field, each once."""
    fields = [s.target.id for s in owner.node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
    seen: set[object] = set()
    for call, module in project.named.get(owner.node.name, []):
        at = fields.index(name) if name in fields else len(call.args)
        value = keyword(call, name) or (call.args[at] if at < len(call.args) else None)
        where = project.scope_at(call, module)
        told = _told(value, where) if value is not None else None
        if value is not None and (told is not None or is_none(value)) and told not in seen:
            seen.add(told)
            yield value, where


def _of_option(project: Project, name: str) -> Iterator[Made]:
    """Yield the default of an option of the command line, where one parser alone has it."""
    found = [
        (default, project.scope_at(call, module))
        for call, module in project.named.get("add_argument", [])
        if (default := keyword(call, "default")) is not None and name in _names(call)
    ]
    yield from found if len(found) == 1 else ()


def _of_namespace(project: Project, name: str) -> Iterator[Made]:
    """Yield what a name is in a namespace of settings that is written out, where one alone has it."""
    made = project.once(_namespaces)
    found = [(value, project.scope_at(c, m)) for c, m in made if (value := keyword(c, name)) is not None]
    for call, module in made:
        stored = module.parents.get(call)
        names = {text_of(target) for target in stored.targets} if isinstance(stored, ast.Assign) else set()
        set_later = [
            (node, target) for node in module.live.get(ast.Assign, ()) if names
            for target in node.targets if isinstance(target, ast.Attribute) and target.attr == name  # type: ignore[attr-defined]
        ]  # fmt: skip
        found += [(n.value, project.scope_at(n, module)) for n, t in set_later if text_of(t.value) in names]  # type: ignore[attr-defined]
    yield from found if len(found) == 1 else ()


def _namespaces(project: Project) -> Iterator[tuple[ast.Call, Module]]:
    """Yield the calls that make a namespace of settings, under whatever name it was imported."""
    for module in project.modules.values():
        names = {local for local, dotted in module.aliases.items() if dotted.rpartition(".")[2] in NAMESPACES}
        for call in (c for tail in (names | NAMESPACES) & module.calls.keys() for c in module.calls[tail]):
            if not call.args:
                yield call, module


def choices(project: Project, name: str) -> ast.expr | None:
    """Return what an option of the command line may be, where one parser alone has it."""
    found = [c for c, _ in project.named.get("add_argument", []) if name in _names(c)]
    return keyword(found[0], "choices") if len(found) == 1 else None


def _names(call: ast.Call) -> set[str]:
    """Return the names that an option is stored under."""
    texts = [str(constant(arg)) for arg in call.args if isinstance(arg, ast.Constant)]
    return {str(constant(keyword(call, "dest")) or "")} | {text.lstrip("-").replace("-", "_") for text in texts}


def under(container: ast.expr, key: object, scope: Scope, hops: int) -> Made | None:
    """Return what stands under a key of a dictionary, followed to where that is written out."""
    if isinstance(container, ast.Dict):
        return _of_display(container, key, scope, hops) if key is not None else None
    if key is None or not hops:
        return None
    if isinstance(container, ast.BinOp) and isinstance(container.op, ast.BitOr):
        sides = (under(side, key, scope, hops - 1) for side in (container.right, container.left))
        return next((found for found in sides if found is not None), None)
    if isinstance(container, ast.Call):
        return _of_call(container, key, scope, hops - 1)
    if isinstance(container, ast.Subscript) and isinstance(container.slice, ast.Constant):
        outer = under(container.value, container.slice.value, scope, hops - 1)
        return under(outer[0], key, outer[1], hops - 1) if outer is not None else None
    written = _written(container, key, scope)
    if written is not None:
        return written[0] if len(written) == 1 else None
    behind = behind_of(container, scope)
    if behind is not None:
        return under(behind[0], key, behind[1], hops - 1)
    given = callers_pass(container.id, scope) if isinstance(container, ast.Name) else ()
    return _agreed(under(value, key, where, hops - 1) for value, where in given)


def _of_display(container: ast.Dict, key: object, scope: Scope, hops: int) -> Made | None:
    """Return what stands last under a key of `{"a": x, **rest}`."""
    for k, value in reversed(list(zip(container.keys, container.values, strict=True))):
        if k is None and (found := under(value, key, scope, hops - 1) if hops else None) is not None:
            return found
        if k is not None and (constant(k) == key or member(k, scope) == key):
            return value, scope
    return None


def _of_call(call: ast.Call, key: object, scope: Scope, hops: int) -> Made | None:
    """Return what stands under a key of a copy of a dictionary, of the command line, or of what a function returns."""
    tail = tail_of(call.func)
    if tail in {"vars", "ChainMap"} or tail in COPIES:
        named = keyword(call, key) if isinstance(key, str) and tail == "dict" else None
        if named is not None:
            return named, scope
        own = call.func.value if isinstance(call.func, ast.Attribute) and not call.args else None
        rest = [k.value for k in call.keywords if k.arg is None]
        given = [own] if own is not None else [*rest, *(call.args if tail == "ChainMap" else call.args[:1])]
        if tail == "vars":
            option = next(_of_option(scope.project, key), None) if isinstance(key, str) else None
            return option if option is not None and not is_none(option[0]) else None
        return next((f for each in given if (f := under(each, key, scope, hops)) is not None), None)
    target = scope.project.types.function(call, scope)
    if target is None:
        return None
    where = called(scope.project.scope_of(target, scope.module), call, scope)
    returned = [n.value for n in inner(target, ast.Return) if isinstance(n, ast.Return) and n.value is not None]
    return _agreed(under(value, key, where, hops) for value in returned)


def _agreed(found: Iterable[Made | None]) -> Made | None:
    """Return what all of several are, where each is known to be the same."""
    first: Made | None = None
    for made in found:
        if made is None or (first is not None and made[0] is not first[0] and _told(*made) != _told(*first)):
            return None
        first = first or made
    return first


def _written(container: ast.expr, key: object, scope: Scope) -> list[Made] | None:
    """Return what is put under a key of a variable: one thing that always is, none where that depends."""
    found = scope.lookup(container.id) if isinstance(container, ast.Name) else None
    if found is None or not isinstance(container, ast.Name):
        return None
    where = found[0]
    body = where.function or where.module.tree
    made: list[tuple[ast.AST, ast.expr]] = []
    for node in inner(body, ast.Assign, ast.Call):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.func if isinstance(node, ast.Call) else None
        if not isinstance(target, ast.Subscript | ast.Attribute) or not isinstance(target.value, ast.Name):
            continue
        if target.value.id != container.id:
            continue
        if isinstance(node, ast.Assign) and isinstance(target, ast.Subscript) and constant(target.slice) == key:
            made.append((node, node.value))
        elif isinstance(node, ast.Call) and tail_of(target) == "update":
            updated = _of_call(ast.Call(ast.Name("dict", ast.Load()), node.args, node.keywords), key, where, 1)
            made += [(where.module.parents[node], updated[0])] if updated is not None else []
    if not made:
        return None
    always = len(made) == 1 and made[0][0] in getattr(body, "body", ())
    return [(made[0][1], where)] if always else []


def behind_of(node: ast.expr, scope: Scope) -> Made | None:
    """Return what a name is made by, here or in the file that it is imported from, or what it is by default."""
    parameter = _of_parameter(node.id, scope) if isinstance(node, ast.Name) else iter(())
    return scope.through(node) or next(parameter, None) or _imported(node, scope)


def preset(call: ast.Call, scope: Scope) -> tuple[ast.Call, Scope]:
    """Return the partial, of whatever file, that a call runs with nothing of its own but switches; else the call."""
    is_bare = not call.args and keyword(call, "dtype") is None
    behind = scope.through(call.func) or _brought(call.func, scope) if is_bare else None
    is_partial = behind is not None and isinstance(behind[0], ast.Call) and tail_of(behind[0].func) == "partial"
    return behind if is_partial else (call, scope)  # type: ignore[return-value]  # a partial is a call


def _brought(node: ast.expr, scope: Scope, hops: int = MAX_HOPS) -> Made | None:
    """Return what an imported name is bound to where it is defined, not followed to what that stands for."""
    if isinstance(node, ast.Attribute):
        dotted = f"{scope.dotted(node.value)}.{node.attr}"
    else:
        found = scope.lookup(node.id) if isinstance(node, ast.Name) else None
        imports = [b.dotted for b in found[1] if b.kind == "import"] if found is not None else []
        dotted = imports[0] if len(imports) == 1 else ""
    module = scope.project.find_module(dotted.rpartition(".")[0], scope.module)
    bound = module.bindings.get(dotted.rpartition(".")[2], []) if module is not None else []
    if module is None or len(bound) != 1:
        return None
    where = scope.project.scope_of(module.tree, module)
    if bound[0].kind == "import" and hops:
        return _brought(ast.Name(dotted.rpartition(".")[2], ast.Load()), where, hops - 1)
    return (bound[0].node, where) if bound[0].kind == "value" and isinstance(bound[0].node, ast.expr) else None


def _imported(node: ast.expr, scope: Scope) -> tuple[ast.expr, Scope] | None:
    """Return what a name is in the file of the program that it is imported from."""
    dotted = scope.dotted(node)
    module = scope.project.find_module(dotted.rpartition(".")[0], scope.module) if dotted else None
    if module is None or dotted is None:
        return None
    bound = [b.node for b in module.bindings.get(dotted.rpartition(".")[2], []) if b.kind == "value"]
    where = scope.project.scope_of(module.tree, module)
    return (bound[0], where) if len(bound) == 1 and isinstance(bound[0], ast.expr) else None


def member(node: ast.expr, scope: Scope) -> object:
    """Return what a member of an enumeration is: its text where it is equal to that, else its full name."""
    if isinstance(scope, Called) and scope.made is not None and isinstance(node, ast.Name):
        return member(*scope.made) if node.id == scope.self_name else None
    dotted = scope.dotted(node) if isinstance(node, ast.Attribute) else None
    owner = scope.project.classes.get(dotted.rpartition(".")[0]) if dotted is not None else None
    kinds = {str(base).rpartition(".")[2] for base in owner.bases} if owner is not None else set()
    if owner is None or not kinds & {"Enum", "StrEnum", "IntEnum"}:
        return None
    bound = [b.node for b, _ in owner.attributes.get(str(dotted).rpartition(".")[2], ())]
    value = constant(bound[0]) if len(bound) == 1 and isinstance(bound[0], ast.expr) else None
    return value if value is not None and kinds & {"StrEnum", "IntEnum", "str", "int"} else dotted
