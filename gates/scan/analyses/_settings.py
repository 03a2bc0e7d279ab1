"""What a setting is where nobody changes it: defaults of fields, of parameters, of the command line, of look-ups."""

import ast
from collections.abc import Iterator

from gates.scan.analyses._code import constant, keyword
from gates.scan.module import Function, tail_of
from gates.scan.nodes import inner
from gates.scan.project import ClassInfo, Project
from gates.scan.scope import Scope

MAX_HOPS = 5
LOOKUPS = frozenset({"get", "getenv", "pop", "setdefault"})
Made = tuple[ast.expr, Scope]


def setting(node: ast.expr, scope: Scope, hops: int = MAX_HOPS) -> object:
    """Return the constant that a setting is by default; `None` where that is not known."""
    if isinstance(node, ast.Constant):
        return node.value
    if hops <= 0:
        return None
    if isinstance(node, ast.Call):
        if tail_of(node.func) in LOOKUPS and len(node.args) == 2:
            return setting(node.args[1], scope, hops - 1)
        is_same = isinstance(node.func, ast.Attribute) and node.func.attr in {"lower", "strip"}
        return setting(node.func.value, scope, hops - 1) if is_same else None  # type: ignore[attr-defined]
    if isinstance(node, ast.Subscript):
        behind = under(node.value, setting(node.slice, scope, hops - 1), scope, 8)
    else:
        behind = scope.through(node) or next(defaults(node, scope), None)
    return setting(behind[0], behind[1], hops - 1) if behind is not None else None


def defaults(node: ast.expr, scope: Scope) -> Iterator[Made]:
    """Yield what a parameter, a field, a property or an option of the command line is made of, by default."""
    if isinstance(node, ast.Name):
        yield from _of_parameter(node.id, scope)
    elif isinstance(node, ast.Attribute):
        owner = scope.class_of(node.value) or _class_by_default(node.value, scope)
        if owner is not None:
            yield from _of_field(scope.project, owner, node.attr)
        else:
            yield from _of_option(scope.project, node.attr)


def _of_parameter(name: str, scope: Scope) -> Iterator[Made]:
    found = scope.lookup(name)
    function = found[0].function if found else None
    if found is None or found[0].outer is None or not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    default = _default(function, name)
    if default is not None:
        yield default, found[0].outer


def _class_by_default(node: ast.expr, scope: Scope) -> ClassInfo | None:
    """Return the class of what a parameter is by default: of `config=Config()`."""
    made = next(_of_parameter(node.id, scope), None) if isinstance(node, ast.Name) else None
    return made[1].class_of(made[0]) if made is not None else None


def _default(function: Function, name: str) -> ast.expr | None:
    names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
    found = dict(zip(reversed(names), reversed(function.args.defaults), strict=False))
    found |= {a.arg: d for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True) if d}
    return found.get(name)


def _of_field(project: Project, owner: ClassInfo, name: str) -> Iterator[Made]:
    """Yield what every caller passes for a field, else its default, or what a property returns."""
    for info in (owner, *project.ancestors_of(owner)):
        method = info.methods.get(name)
        if method is not None:
            values = [n.value for n in inner(method, ast.Return) if isinstance(n, ast.Return) and n.value is not None]
            if len(values) == 1 and any(tail_of(d) in {"property", "cached_property"} for d in method.decorator_list):
                yield values[0], project.scope_of(method, info.scope.module)
            return
        for statement in info.node.body:
            targets = [statement.target] if isinstance(statement, ast.AnnAssign) else []
            if isinstance(statement, ast.AnnAssign) and tail_of(targets[0]) == name and statement.value is not None:
                given = list(_passed(project, owner, name))
                yield from given if len(given) == 1 else [(statement.value, info.scope)]
                return
        bound = [(b.node, where) for b, where in info.attributes.get(name, []) if b.kind == "value"]
        if len(bound) == 1 and isinstance(bound[0][0], ast.expr):
            yield bound[0][0], bound[0][1]
            return


def _passed(project: Project, owner: ClassInfo, name: str) -> Iterator[Made]:
    """Yield the constants that constructors of a class are passed for a field, each once."""
    fields = [s.target.id for s in owner.node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
    seen: set[object] = set()
    for call, module in project.named.get(owner.node.name, []):
        at = fields.index(name) if name in fields else len(call.args)
        value = keyword(call, name) or (call.args[at] if at < len(call.args) else None)
        if isinstance(value, ast.Constant) and value.value not in seen:
            seen.add(value.value)
            yield value, project.scope_at(call, module)


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
        values = [v for k, v in zip(container.keys, container.values, strict=True) if constant(k) == key]
        return (values[-1], scope) if values else None
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
