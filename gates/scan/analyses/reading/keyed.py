"""What stands in a field of what is handed about together: under a key of a mapping, in a record, on an object."""

import ast

from gates.scan.analyses.reading.code import constant
from gates.scan.analyses.reading.origins import Origin, Origins
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import tail_of
from gates.scan.program.nodes import inner, text_of
from gates.scan.program.project import Project
from gates.scan.program.scope import SAME, Scope

MAPPINGS = frozenset({"dict", "OrderedDict", "SimpleNamespace", "Namespace", "AttrDict", "EasyDict", "Munch"})
PASSES = (ast.Attribute, ast.Subscript, ast.IfExp, ast.BoolOp, ast.NamedExpr, ast.Await, ast.Starred, ast.Constant)
MIXES = frozenset({"update", "pop", "clear", "setdefault"})
Field = tuple[ast.expr, str]  # what it is taken out of, and its name


def field_of(node: ast.expr) -> Field | None:
    """Return the field that an expression takes out: `out["loss"]`, `out.get("loss")`, `out.loss`."""
    if isinstance(node, ast.Attribute):
        return node.value, node.attr
    is_got = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_got and node.args:
        key = constant(node.args[0])
        return (node.func.value, key) if isinstance(key, str) else None
    key = constant(node.slice) if isinstance(node, ast.Subscript) else None
    return (node.value, key) if isinstance(node, ast.Subscript) and isinstance(key, str) else None


def values_of(project: Project, origins: Origins, node: ast.expr, scope: Scope) -> list[Origin] | None:
    """Return what a field may hold; `None` where some of what it may be taken out of is not known."""
    field = field_of(node)
    found: list[Origin] = []
    holders = origins.of(field[0], scope) if field is not None else []
    stored = [_stored(each, field[1]) for each in holders if field is not None]
    anew = {each.scope.function for each, values in zip(holders, stored, strict=True) if values}
    for each, values in zip(holders, stored, strict=True):
        is_variable = isinstance(each.node, ast.Name) or (isinstance(each.node, ast.Attribute) and values)
        known = values if is_variable else _held(project, each, field[1]) if field else None
        if known is None:
            return None
        found += known if values or each.scope.function not in anew else []
    return found or None


def _stored(holder: Origin, key: str) -> list[Origin] | None:
    """Return what is put under a key of a variable later; `None` where it may be changed in some other way."""
    name = holder.node.id if isinstance(holder.node, ast.Name) else ""
    found = _put_by_methods(holder.node, holder.scope, key) if isinstance(holder.node, ast.Attribute) else []
    for node in inner(holder.scope.function or holder.module.tree, ast.Assign, ast.Call) if name else ():
        if (
            isinstance(node, ast.Call)
            and tail_of(node.func) in MIXES
            and text_of(node.func) == f"{name}.{tail_of(node.func)}"
        ):
            return None
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id == name:
                if not isinstance(constant(target.slice), str):
                    return None
                found += [Origin(node.value, holder.scope)] if constant(target.slice) == key else []  # type: ignore[attr-defined]  # an assignment
    return [*found, *_of_own(holder, key)]


def _put_by_methods(node: ast.Attribute, scope: Scope, key: str) -> list[Origin]:
    """Return what the methods of a class put under a key of an attribute: `self.state["loss"] = loss`."""
    owner = scope.class_of(node.value)
    found: list[Origin] = []
    for method in owner.methods.values() if owner is not None else ():
        where = scope.project.scope_of(method, scope.module)
        for put in inner(method, ast.Assign):
            for target in put.targets if isinstance(put, ast.Assign) else ():
                is_put = isinstance(target, ast.Subscript) and constant(target.slice) == key
                if is_put and text_of(target.value) == f"{where.self_name}.{node.attr}":  # type: ignore[attr-defined]
                    found.append(Origin(put.value, where))  # type: ignore[attr-defined]  # an assignment
    return found


def _of_own(holder: Origin, key: str) -> list[Origin]:
    """Return what an attribute of the instance that a method hands on may be."""
    owner = holder.scope.self_class if isinstance(holder.node, ast.Name) else None
    is_own = isinstance(holder.node, ast.Name) and holder.node.id == holder.scope.self_name
    return _on(holder.scope.project, owner, key) if owner is not None and is_own else []


def _on(project: Project, owner: ClassInfo, key: str) -> list[Origin]:
    """Return what methods set an attribute of their instance to, and the attribute itself as each of them sees it."""
    bound = [Origin(b.node, there) for b, there in project.attribute(owner, key)
             if b.kind == "value" and isinstance(b.node, ast.expr)]  # fmt: skip
    if not bound:
        return []
    scopes = [project.scope_of(m, info.scope.module) for info in project.order_of(owner) for m in info.methods.values()]
    seen = [Origin(ast.Attribute(ast.Name(s.self_name, ast.Load()), key, ast.Load()), s) for s in scopes if s.self_name]
    return [*bound, *seen]


def _held(project: Project, holder: Origin, key: str) -> list[Origin] | None:
    """Return what a mapping, a record or an object is made with under a key; `None` where that is not known."""
    node, scope = holder.node, holder.scope
    if isinstance(node, ast.Dict):
        found = [value for name, value in zip(node.keys, node.values, strict=True) if constant(name) == key]
        return [Origin(found[-1], scope)] if found else None if None in node.keys else []
    if not isinstance(node, ast.Call):
        return [] if isinstance(node, PASSES) else None
    if tail_of(node.func) in MAPPINGS and isinstance(node.func, ast.Name | ast.Attribute):
        found = [more.value for more in node.keywords if more.arg == key]
        is_whole = not node.args and all(more.arg for more in node.keywords)
        return [Origin(found[0], scope)] if found else [] if is_whole else None
    owner = project.classes.get(scope.dotted(node.func) or "")
    names = _record(project, owner) if owner is not None else _tuple(node, scope)
    if key in names:
        given = next((more.value for more in node.keywords if more.arg == key), None)
        given = given or next(iter(node.args[names.index(key) :][:1]), None)
        return [Origin(given, scope)] if given is not None else []
    if owner is not None:
        return _on(project, owner, key)
    is_passed = project.types.function(node, scope) is not None or tail_of(node.func) in SAME
    return [] if is_passed else None


def _record(project: Project, owner: ClassInfo) -> list[str]:
    """Return the fields of a class of records, in the order in which its objects are made with them."""
    marks = [tail_of(d.func if isinstance(d, ast.Call) else d) for d in owner.node.decorator_list]
    lines = [info.node for info in reversed(project.order_of(owner))]
    is_record = any(mark in {"dataclass", "define", "frozen"} for mark in marks)
    is_record = is_record or any(str(base).endswith("NamedTuple") for base in owner.bases)
    fields = [n.target for node in lines for n in node.body if isinstance(n, ast.AnnAssign)] if is_record else []
    return [target.id for target in fields if isinstance(target, ast.Name)]


def _tuple(made: ast.Call, scope: Scope) -> list[str]:
    """Return the fields of a `namedtuple` that a call makes."""
    behind = scope.through(made.func)
    if behind is None or not isinstance(behind[0], ast.Call) or tail_of(behind[0].func) != "namedtuple":
        return []
    told = behind[0].args[1] if len(behind[0].args) > 1 else None
    if isinstance(told, ast.List | ast.Tuple):
        return [str(constant(each)) for each in told.elts]
    return str(constant(told) or "").replace(",", " ").split()
