"""What settings are made of where nobody changes them: defaults of fields, of parameters, of the command line."""

import ast
from collections.abc import Iterator

from gates.scan.analyses._called import Called, Made, called, parameters
from gates.scan.analyses._code import constant, keyword
from gates.scan.module import Function, is_property, tail_of
from gates.scan.nodes import inner, is_none
from gates.scan.project import ClassInfo, Project
from gates.scan.scope import Scope

KINDS = frozenset({"torch.half", "torch.float16", "torch.bfloat16", "torch.float32", "torch.float"})
MAX_CALLERS = 20
MAX_HOPS = 4
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
            yield from _of_option(scope.project, node.attr)


def _of_parameter(name: str, scope: Scope) -> Iterator[Made]:
    """Yield what a parameter is: its default, or the constant that all callers pass which pass one."""
    found = scope.lookup(name)
    function = found[0].function if found else None
    if found is None or found[0].outer is None or not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    default = dict(parameters(function)).get(name)
    if default is None or any(binding.kind != "parameter" for binding in found[1]):
        return
    given = {told: made for made in _by_callers(name, found[0], function) if (told := _told(*made)) is not None}
    if len(given) < 2:
        yield next(iter(given.values()), (default, found[0].outer))


def _by_callers(name: str, scope: Scope, function: Function) -> Iterator[Made]:
    """Yield what each call of a function has for a parameter that has a default."""
    owner = scope.owner.node.name if scope.owner is not None and function.name == "__init__" else function.name
    for call, module in scope.project.named.get(owner, [])[:MAX_CALLERS]:
        where = scope.project.scope_at(call, module)
        made = scope.owner is not None and scope.project.types.of(call, where) == scope.owner.name
        if made or scope.project.types.function(call, where) is function:
            inside = called(scope, call, where).given
            yield from (inside[name],) if name in inside else ()


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


def _names(call: ast.Call) -> set[str]:
    """Return the names that an option is stored under."""
    texts = [str(constant(arg)) for arg in call.args if isinstance(arg, ast.Constant)]
    return {str(constant(keyword(call, "dest")) or "")} | {text.lstrip("-").replace("-", "_") for text in texts}


def under(container: ast.expr, key: object, scope: Scope, hops: int) -> tuple[ast.expr, Scope] | None:
    """Return what stands under a key of a dictionary, followed to where that is written out."""
    if isinstance(container, ast.Dict):
        keyed = zip(container.keys, container.values, strict=True)
        values = [v for k, v in keyed if k is not None and (constant(k) == key or member(k, scope) == key)]
        return (values[-1], scope) if values and key is not None else None
    if isinstance(container, ast.Call) and isinstance(container.func, ast.Name) and container.func.id == "dict":
        value = keyword(container, key) if isinstance(key, str) else None
        return (value, scope) if value is not None else None
    if not hops:
        return None
    if isinstance(container, ast.Subscript) and isinstance(container.slice, ast.Constant):
        outer = under(container.value, container.slice.value, scope, hops - 1)
        return under(outer[0], key, outer[1], hops - 1) if outer is not None else None
    behind = behind_of(container, scope)
    return under(behind[0], key, behind[1], hops - 1) if behind is not None else None


def behind_of(node: ast.expr, scope: Scope) -> Made | None:
    """Return what a name is made by, here or in the file that it is imported from, or what it is by default."""
    parameter = _of_parameter(node.id, scope) if isinstance(node, ast.Name) else iter(())
    return scope.through(node) or next(parameter, None) or _imported(node, scope)


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
