"""What the fields of a program's objects are, by all calls that make these: `Policy("half")`, `cls(name=kind)`."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.reading.called import Called, Made
from gates.scan.analyses.reading.code import keyword
from gates.scan.analyses.settings.defaults import FIELDS, under
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import tail_of
from gates.scan.program.nodes import inner
from gates.scan.program.scope import Scope

MAX_MADE = 20
MAX_WAYS = 4


def given(node: ast.Attribute, scope: Scope) -> list[Made | None]:
    """Return what each call that makes an object of a class has for a field; `None` where it does not tell."""
    is_own = isinstance(scope, Called) and scope.made is not None and _is_name(node.value, scope.self_name)
    info = scope.class_of(node.value) if not is_own else None
    known = fields_of(info) if info is not None else {}
    if info is None or node.attr not in known:
        return []
    bound = scope.project.attribute(info, node.attr)
    later = [(b.node, where) for b, where in bound if b.kind == "value"]
    if later and not known[node.attr]:
        value, where = later[0]
        return [(value, where)] if len(later) == 1 and isinstance(value, ast.expr) else []
    if len(bound) != 1 or later:
        return []
    names = [name for name, is_asked in known.items() if is_asked]
    return [_handed(call, node.attr, names, info, where) for call, where in makers(info)]


def fields_of(info: ClassInfo) -> dict[str, bool]:
    """Return the fields of a class that writes no constructor, in their order, and which the constructor asks for."""
    found: dict[str, bool] = {}
    for each in reversed(info.scope.project.order_of(info)):
        if "__init__" in each.methods or "__new__" in each.methods:
            return {}
        for line in each.node.body:
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                found[line.target.id] = not _is_left_out(line.value)
    return found


def _is_left_out(value: ast.expr | None) -> bool:
    """Return whether a field is none of the constructor's: `field(init=False)`."""
    said = keyword(value, "init") if isinstance(value, ast.Call) and tail_of(value.func) in FIELDS else None
    return isinstance(said, ast.Constant) and said.value is False


def makers(info: ClassInfo) -> Iterator[tuple[ast.Call, Scope]]:
    """Yield the calls that make objects of a class, those in its class methods too."""
    project = info.scope.project
    for call, module in project.named.get(info.node.name, [])[:MAX_MADE]:
        where = project.scope_at(call, module)
        if where.dotted(call.func) == info.name:
            yield call, where
    for method in info.methods.values():
        for made in inner(method, ast.Call):
            if isinstance(made, ast.Call) and _is_class(made.func, method):
                yield made, project.scope_of(method, info.scope.module)


def _is_class(func: ast.expr, method: ast.AST) -> bool:
    """Return whether a name is that by which a class method calls its class."""
    if not isinstance(method, ast.FunctionDef) or not method.args.args:
        return False
    is_of_class = any(tail_of(d) == "classmethod" for d in method.decorator_list)
    return is_of_class and _is_name(func, method.args.args[0].arg)


def _is_name(node: ast.expr, name: str | None) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _handed(call: ast.Call, name: str, names: list[str], info: ClassInfo, scope: Scope) -> Made | None:
    """Return what a call hands for a field, in `**options` that are written out too, else the field's default."""
    at = names.index(name) if name in names else len(call.args)
    if any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    value = keyword(call, name) or (call.args[at] if at < len(call.args) else None)
    if value is not None:
        return value, scope
    rest = [k.value for k in call.keywords if k.arg is None]
    kept = next((found for each in rest if (found := under(each, name, scope, MAX_WAYS))), None)
    return kept if rest else _default(name, info)


def _default(name: str, info: ClassInfo) -> Made | None:
    """Return what is written for a field where it stands."""
    for each in info.scope.project.order_of(info):
        for line in each.node.body:
            if isinstance(line, ast.AnnAssign) and _is_name(line.target, name) and line.value is not None:
                said = line.value
                is_told = isinstance(said, ast.Call) and tail_of(said.func) in FIELDS
                value = keyword(said, "default") if is_told and isinstance(said, ast.Call) else said
                return (value, each.scope) if value is not None else None
    return None
