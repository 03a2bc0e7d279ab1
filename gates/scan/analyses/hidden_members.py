"""Members that an object of a known class does not have."""

import ast
from collections.abc import Iterator

from gates.scan.analyses._code import broken, function_of
from gates.scan.module import Module, tail_of
from gates.scan.project import ClassInfo, Project
from gates.scan.scope import Scope
from gates.scan.site import Site

WORDS = ("class ",)
OPEN = {"__getattr__", "__getattribute__", "__setattr__", "__slots__", "__dict__"}
PLAIN = {"object", "abc.ABC", "typing.Generic", "typing.Protocol"}
OBJECT = frozenset(dir(object)) | {
    "__dict__",
    "__annotations__",
    "__name__",
    "__qualname__",
    "__wrapped__",
    "__bases__",
    "__mro__",
}


def look(project: Project) -> Iterator[Site]:
    """Yield each use of an attribute that the object's class, all its bases known, never gets."""
    stored = _stored(project)
    for module in project.modules.values():
        for node in module.live.get(ast.Attribute, []):
            if not (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)) or node.attr in OBJECT:
                continue
            if node.attr in stored:
                continue  # something sets it from outside, somewhere
            info = _class_of(project, module, node)
            if info is None or _asked_for(module, node):
                continue
            members = _members(project, info)
            if members is not None and node.attr not in members:
                where = f"{info.scope.module.path}:{info.node.lineno}"
                yield broken(module, node, f"{info.node.name} ({where}) has no member {node.attr!r}")


def _stored(project: Project) -> set[str]:
    """Return the attributes that code sets on anything but `self`, or by name."""
    found: set[str] = set()
    for module in project.modules.values():
        for node in module.live.get(ast.Attribute, []):
            if (
                isinstance(node, ast.Attribute)
                and not isinstance(node.ctx, ast.Load)
                and not (isinstance(node.value, ast.Name) and node.value.id == "self")
            ):
                found.add(node.attr)
        for call in (*module.calls.get("setattr", []), *module.calls.get("__setattr__", [])):
            found |= {str(a.value) for a in call.args if isinstance(a, ast.Constant)}
    return found


def _class_of(project: Project, module: Module, node: ast.Attribute) -> ClassInfo | None:
    scope = project.scope_at(node, module)
    if isinstance(node.value, ast.Name) and node.value.id in {"self", "cls", scope.self_name}:
        info = scope.self_class if node.value.id == scope.self_name else None
        return None if info is None or info.twice or _is_partial(project, info) else info
    named = project.types.of(node.value, scope)
    info = project.classes.get(named or "")
    return None if info is None or info.twice or not _is_always(project, node.value, scope, named) else info


def _is_always(project: Project, node: ast.expr, scope: Scope, named: str | None) -> bool:
    """Return whether everything that an attribute is ever set to is of one class."""
    if not isinstance(node, ast.Attribute):
        return True
    values = [(b.node, where) for b, where in scope.attribute(node) if b.kind == "value"]
    given = [(v, where) for v, where in values if not (isinstance(v, ast.Constant) and v.value is None)]
    return all(isinstance(v, ast.expr) and project.types.of(v, where) == named for v, where in given)


def _is_partial(project: Project, info: ClassInfo) -> bool:
    """Return whether a class counts on others for its members: one that is extended, or made to be."""
    if any(word in info.node.name.lower() for word in ("mixin", "base", "abstract", "protocol", "interface")):
        return True
    return any(info.name in (other.bases or ()) for other in project.classes.values())


def _asked_for(module: Module, node: ast.Attribute) -> bool:
    """Return whether the code itself asks first: `hasattr`, `isinstance`, `except AttributeError`."""
    for around in module.ancestors(node):
        if isinstance(around, ast.If | ast.IfExp | ast.While | ast.Assert):
            text = ast.unparse(around.test)
            if "hasattr" in text or "isinstance" in text or node.attr in text.split("'"):
                return True
        if isinstance(around, ast.Try):
            kinds = [ast.unparse(h.type) if h.type else "" for h in around.handlers]
            if any(not kind or "AttributeError" in kind or kind in {"Exception", "BaseException"} for kind in kinds):
                return True
    function = function_of(node, module)
    return function is not None and any(
        isinstance(n, ast.Call)
        and tail_of(n.func) == "isinstance"
        and n.args
        and ast.unparse(n.args[0]) == ast.unparse(node.value)
        for n in ast.walk(function)
    )


def _members(project: Project, info: ClassInfo, hops: int = 6) -> set[str] | None:
    """Return all that a class and its bases define or set; `None` where that cannot be told."""
    if info.twice or hops == 0 or info.node.keywords or OPEN & info.methods.keys():
        return None
    if any(tail_of(d.func if isinstance(d, ast.Call) else d) != "dataclass" for d in info.node.decorator_list):
        return None
    found = set(info.methods) | set(info.attributes) | _named(info.node)
    if found & OPEN:
        return None
    for base, written in zip(info.bases, info.node.bases, strict=True):
        name = base or ast.unparse(written.value if isinstance(written, ast.Subscript) else written)
        if name in PLAIN or name.rpartition(".")[2] in {"Generic", "ABC", "object"}:
            continue
        inherited = project.classes.get(name)
        more = _members(project, inherited, hops - 1) if inherited else None
        if more is None:
            return None
        found |= more
    return found


def _named(node: ast.ClassDef) -> set[str]:
    """Return every name that a class body binds, in its blocks too."""
    found: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
            found.add(inner.attr)
        elif isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(inner.name)
        elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            found.add(inner.id)
        elif (
            isinstance(inner, ast.Call)
            and tail_of(inner.func) in {"setattr", "update", "vars", "__setattr__"}
            and (tail_of(inner.func) == "setattr" or "__dict__" in ast.unparse(inner.func))
        ):
            found |= {"__setattr__"}  # set by a name that reading does not know
    return found
