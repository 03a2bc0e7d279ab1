"""Scalers that are made and scale nothing."""

import ast
from collections.abc import Iterator

from gates.scan.analyses._code import broken, callee, class_of, function_of
from gates.scan.analyses._precision import scalers
from gates.scan.module import Module
from gates.scan.nodes import text_of, walk
from gates.scan.project import Project
from gates.scan.site import Site
from gates.scan.types import argument

WORDS = ("caler",)
IDLE = {"state_dict", "load_state_dict", "get_scale", "is_enabled", "get_growth_factor", "get_backoff_factor"}


def look(project: Project) -> Iterator[Site]:
    """Yield each scaler of a program's own whose `scale` nobody calls and that nobody is handed."""
    for module in project.modules.values():
        for call in (*(call for call, _ in scalers(project, module)), *_wrappers(project, module)):
            parent = _assignment(call, module)
            if parent is None:
                continue
            for target in parent.targets:
                if isinstance(target, ast.Name) and _idle_name(project, module, target, call):
                    yield broken(module, call, f"{target.id} is made and scales nothing")
                elif isinstance(target, ast.Attribute) and _idle_attribute(project, module, target):
                    yield broken(module, call, f"{text_of(target)} is made and scales nothing")


def _wrappers(project: Project, module: Module) -> Iterator[ast.Call]:
    """Yield the calls that make an object of the program's own whose constructor makes a scaler."""
    for name, found in module.calls.items():
        for call in found if "caler" in name else ():
            info = project.classes.get(project.types.of(call, project.scope_at(call, module)) or "")
            if info is not None and "__call__" in info.methods and "__init__" in info.methods:
                there = info.scope.module
                inside = {id(n) for n in walk(info.methods["__init__"])}
                if any(id(made) in inside for made, _ in scalers(project, there)):
                    yield call


def _assignment(call: ast.Call, module: Module) -> ast.Assign | None:
    parent = module.parents.get(call)
    if isinstance(parent, ast.IfExp):
        parent = module.parents.get(parent)
    return parent if isinstance(parent, ast.Assign) else None


def _idle_name(project: Project, module: Module, target: ast.Name, call: ast.Call) -> bool:
    function = function_of(call, module)
    if function is None and _imported(project, module, target.id):
        return False
    return _idle(project, module, function or module.tree, target.id, 3)


def _imported(project: Project, module: Module, name: str) -> bool:
    """Return whether another file may use a name of the module."""
    if any(
        node.id == name for f in module.live.get(ast.FunctionDef, []) for node in walk(f) if isinstance(node, ast.Name)
    ):
        return True
    wanted = f"{module.name}.{name}"
    return any(
        wanted.endswith(full) or full.endswith(wanted)
        for m in project.modules.values()
        for full in m.aliases.values()
        if m is not module
    )


def _idle(project: Project, module: Module, body: ast.AST, name: str, depth: int) -> bool:
    """Return whether nothing in a body lets a scaler scale."""
    for node in walk(body):
        if not (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)):
            continue
        parent = module.parents.get(node)
        if parent is None:
            continue  # dead code
        if isinstance(parent, ast.Attribute):
            called = module.parents.get(parent)
            if parent.attr not in IDLE and isinstance(called, ast.Call) and called.func is parent:
                return False
        elif isinstance(parent, ast.Call) and node in parent.args and depth:
            if not _idle_argument(project, module, parent, node, depth):
                return False
        elif not isinstance(parent, ast.Compare | ast.If | ast.IfExp):
            return False
    return True


def _idle_argument(project: Project, module: Module, call: ast.Call, node: ast.Name, depth: int) -> bool:
    target = callee(project, module, call)
    if target is None:
        return False
    there = project.scope_of(target, module)
    for arg in (*target.args.posonlyargs, *target.args.args):
        if argument(call, target, arg.arg, bound=there.owner is not None) is node:
            return _idle(project, there.module, target, arg.arg, depth - 1)
    return False


def _idle_attribute(project: Project, module: Module, target: ast.Attribute) -> bool:
    """Return whether an attribute is nowhere in the program more than stored, saved and asked for its scale."""
    if class_of(target, module) is None or _subclassed(project, module, target):
        return False
    for other in project.modules.values():
        for node in other.live.get(ast.Attribute, []):
            if isinstance(node, ast.Attribute) and node.attr == target.attr and isinstance(node.ctx, ast.Load):
                parent = other.parents.get(node)
                if isinstance(parent, ast.Attribute) and parent.attr in IDLE:
                    continue
                if not isinstance(parent, ast.Compare | ast.If | ast.IfExp):
                    return False
        for node in other.live.get(ast.Constant, []):
            if isinstance(node, ast.Constant) and node.value == target.attr and not _is_key(other, node):
                return False
    return True


def _is_key(module: Module, node: ast.Constant) -> bool:
    """Return whether a text is no more than the key of a dictionary."""
    parent = module.parents.get(node)
    return isinstance(parent, ast.Subscript | ast.Compare) or (isinstance(parent, ast.Dict) and node in parent.keys)


def _subclassed(project: Project, module: Module, target: ast.Attribute) -> bool:
    """Return whether the class has bases outside of the program, whose methods may use the attribute."""
    owner = class_of(target, module)
    scope = project.scope_at(owner, module) if owner else None
    known = {"object", "torch.nn.Module"}
    return bool(
        owner
        and scope
        and any((name := scope.dotted(base)) not in known and name not in project.classes for base in owner.bases)
    )
