"""Scalers that are made and scale nothing."""

import ast
from collections.abc import Iterator

from gates.scan.analyses._code import broken, callee, class_of, constant, function_of, is_backward
from gates.scan.analyses._contexts import entered_by
from gates.scan.analyses._precision import HALF, dtype_of, scalers
from gates.scan.module import Module, tail_of
from gates.scan.nodes import text_of, walk
from gates.scan.project import ClassInfo, Project
from gates.scan.site import Site
from gates.scan.types import argument

WORDS = ("caler*",)
Place = tuple[Module, ast.AST]
IDLE = {"state_dict", "load_state_dict", "get_scale", "is_enabled", "get_growth_factor", "get_backoff_factor"}


def look(project: Project) -> Iterator[Site]:
    """Yield each scaler of a program's own whose `scale` nobody calls and that nobody is handed."""
    for module in project.modules.values():
        for call in (*(call for call, _ in scalers(project, module)), *_wrappers(project, module)):
            for target in _targets(call, module):
                yield from _idle_sites(project, module, call, target)
            name = _field(call, module)
            if name is not None and _idle_field(project, name):
                yield broken(module, call, f"{name} is made and scales nothing")


def _field(call: ast.Call, module: Module) -> str | None:
    """Return the field that a scaler is passed for to an object which holds several: `Namespace(scaler=...)`."""
    parent = module.parents.get(call)
    while isinstance(parent, ast.IfExp):
        parent = module.parents.get(parent)
    around = module.parents.get(parent) if isinstance(parent, ast.keyword) else None
    holds = isinstance(around, ast.Call) and (tail_of(around.func)[:1].isupper() or tail_of(around.func) == "dict")
    return parent.arg if holds and isinstance(parent, ast.keyword) and not _is_field(around) else None


def _idle_field(project: Project, name: str) -> bool:
    """Return whether what objects hold under a name is nowhere more than saved, in a program that trains."""
    if "backward" not in project.named or "scale" in project.named:
        return False
    for module in project.modules.values():
        for node in (*module.live.get(ast.Attribute, []), *module.live.get(ast.Name, [])):
            assert isinstance(node, ast.Attribute | ast.Name)
            mine = tail_of(node) == name and isinstance(node.ctx, ast.Load)
            parent = module.parents.get(node) if mine else None
            if mine and not (isinstance(parent, ast.Attribute) and parent.attr in IDLE):
                return False
        if any(isinstance(n, ast.Constant) and n.value == name for n in module.live.get(ast.Constant, [])):
            return False
    return True


def _idle_sites(project: Project, module: Module, call: ast.Call, target: ast.expr) -> Iterator[Site]:
    """Yield where what a scaler is bound to scales nothing: where it is made, or the backward pass that passes by."""
    about = f"{text_of(target)} is made and scales nothing"
    statement = module.parents.get(target, target)
    if isinstance(target, ast.Name) and isinstance(module.parents.get(statement), ast.ClassDef):
        if _idle_attribute(project, module, target, target.id):
            yield broken(module, call, about)
    elif isinstance(target, ast.Name):
        if _idle_name(project, module, target, call):
            yield broken(module, call, about)
    elif isinstance(target, ast.Attribute) and _idle_attribute(project, module, target, target.attr):
        there, place = _left_out(project, module, target) or (module, call)
        yield broken(there, place, about)
    elif isinstance(target, ast.Attribute):
        for info in _extending(project, module, target):
            if (found := _passes_by(project, info, target.attr)) is not None:
                yield broken(*found, f"{text_of(target)} is made and does not scale the loss here")


def _left_out(project: Project, module: Module, target: ast.Attribute) -> Place | None:
    """Return the backward pass that leaves a scaler out, where that is a class's which extends the scaler's own."""
    owner = class_of(target, module)
    if owner is None or any(is_backward(call) for call in _calls(owner)):
        return None
    return next((found for info in _extending(project, module, target) if (found := _plain(info)) is not None), None)


def _extending(project: Project, module: Module, target: ast.Attribute) -> Iterator[ClassInfo]:
    """Yield the classes that extend the one which makes a scaler."""
    owner = project.scope_at(target, module).self_class
    todo, seen = [owner] if owner is not None else [], set()
    while todo:
        for info in project.extending.get(todo.pop().name, ()):
            if info not in seen and not info.twice:
                seen.add(info)
                todo.append(info)
                yield info


def _plain(info: ClassInfo) -> Place | None:
    """Return the plain backward pass of a loss in a class that steps an optimizer itself."""
    found = list(_calls(info.node))
    stepped = any(isinstance(c.func, ast.Attribute) and c.func.attr == "step" and not c.args for c in found)
    passes = [c for c in found if is_backward(c) and isinstance(c.func, ast.Attribute) and not c.args]
    plain = [c for c in passes if isinstance(c.func, ast.Attribute) and isinstance(c.func.value, ast.Name)]
    return (info.scope.module, plain[0]) if stepped and plain and len(plain) == len(passes) else None


def _passes_by(project: Project, info: ClassInfo, name: str) -> Place | None:
    """Return the backward pass of a class that does not use the scaler which its base makes, under float16."""
    place = _plain(info)
    if place is None or any(_mentions(n, name) or _says_off(n) for n in walk(info.node)):
        return None
    names = {name for each in (info, *project.ancestors_of(info)) for name in each.methods}
    methods = [found for each in sorted(names) if (found := project.method(info, each)) is not None]
    if any(_mentions(node, name) and isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
           and not _is_idle(node, module) for function, module, _ in methods for node in walk(function)):  # fmt: skip
        return None
    kinds = [dtype_of(*made) for function, module, _ in methods for made in entered_by(project, function, module)]
    return place if kinds and set(kinds) == {HALF} and not _used_outside(project, name) else None


def _calls(owner: ast.ClassDef) -> Iterator[ast.Call]:
    """Yield the calls in the methods of a class."""
    yield from (node for node in walk(owner) if isinstance(node, ast.Call))


def _mentions(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name


def _is_idle(node: ast.Attribute, module: Module) -> bool:
    parent = module.parents.get(node)
    return isinstance(parent, ast.Attribute) and parent.attr in IDLE


def _says_off(node: ast.AST) -> bool:
    """Return whether a call switches something off, as `super().__init__(fp16=False)` does."""
    return isinstance(node, ast.Call) and any(k.arg and constant(k.value) is False for k in node.keywords)


def _used_outside(project: Project, name: str) -> bool:
    """Return whether code uses the scaler of an object other than its own."""
    return any(
        _mentions(node, name) and isinstance(node, ast.Attribute) and tail_of(node.value) != "self"
        and not _is_idle(node, module)
        for module in project.modules.values() for node in module.live.get(ast.Attribute, [])
    )  # fmt: skip


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


def _targets(call: ast.Call, module: Module) -> list[ast.expr]:
    """Return what a scaler is bound to, that of a field's default too."""
    parent = module.parents.get(call)
    while isinstance(parent, ast.IfExp | ast.Lambda | ast.keyword) or _is_field(parent):
        parent = module.parents.get(parent) if parent is not None else None
    if isinstance(parent, ast.Assign):
        return parent.targets
    return [parent.target] if isinstance(parent, ast.AnnAssign) else []


def _is_field(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and tail_of(node.func) == "field"


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
        elif isinstance(parent, ast.Dict | ast.Call) and depth:
            if not _idle_part(project, module, parent, node, depth):
                return False
        elif not isinstance(parent, ast.Compare | ast.If | ast.IfExp):
            return False
    return True


def _idle_part(project: Project, module: Module, around: ast.Dict | ast.Call, node: ast.Name, depth: int) -> bool:
    """Return whether nothing lets a scaler scale that is put into a mapping, or handed to a function."""
    if isinstance(around, ast.Dict):
        return node in around.values and _idle_key(project, around.keys[around.values.index(node)])
    return node in around.args and _idle_argument(project, module, around, node, depth)


def _idle_key(project: Project, key: ast.expr | None) -> bool:
    """Return whether what a mapping holds under a key is nowhere more than saved, in a program that trains."""
    name = constant(key) if key is not None else None
    if not isinstance(name, str) or "backward" not in project.named:
        return False
    read = 0
    for module in project.modules.values():
        if any(_mentions(node, name) for node in module.live.get(ast.Attribute, [])):
            return False
        for node in module.live.get(ast.Constant, []):
            if not isinstance(node, ast.Constant) or node.value != name or node is key:
                continue
            if not _is_key(module, node):
                return False
            held = module.parents.get(node)
            around = module.parents.get(held) if isinstance(held, ast.Subscript) else None
            if isinstance(held, ast.Subscript) and isinstance(held.ctx, ast.Load):
                saved = isinstance(around, ast.Attribute) and around.attr in IDLE
                if not saved and not (isinstance(around, ast.Call) and tail_of(around.func) in IDLE):
                    return False
                read += saved
    return read > 0


def _idle_argument(project: Project, module: Module, call: ast.Call, node: ast.Name, depth: int) -> bool:
    target = callee(project, module, call)
    if target is None:
        return False
    there = project.scope_of(target, module)
    for arg in (*target.args.posonlyargs, *target.args.args):
        if argument(call, target, arg.arg, bound=there.owner is not None) is node:
            return _idle(project, there.module, target, arg.arg, depth - 1)
    return False


def _idle_attribute(project: Project, module: Module, target: ast.expr, name: str) -> bool:
    """Return whether an attribute is nowhere in the program more than stored, saved and asked for its scale."""
    if class_of(target, module) is None or _subclassed(project, module, target):
        return False
    for other in project.modules.values():
        for node in other.live.get(ast.Attribute, []):
            if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load):
                parent = other.parents.get(node)
                if isinstance(parent, ast.Attribute) and parent.attr in IDLE:
                    continue
                if not isinstance(parent, ast.Compare | ast.If | ast.IfExp):
                    return False
        for node in other.live.get(ast.Constant, []):
            if isinstance(node, ast.Constant) and node.value == name and not _is_key(other, node):
                return False
    return True


def _is_key(module: Module, node: ast.Constant) -> bool:
    """Return whether a text is no more than the key of a dictionary."""
    parent = module.parents.get(node)
    return isinstance(parent, ast.Subscript | ast.Compare) or (isinstance(parent, ast.Dict) and node in parent.keys)


def _subclassed(project: Project, module: Module, target: ast.expr) -> bool:
    """Return whether the class has bases outside of the program, whose methods may use the attribute."""
    owner = class_of(target, module)
    scope = project.scope_at(owner, module) if owner else None
    known = {"object", "torch.nn.Module"}
    return bool(
        owner
        and scope
        and any((name := scope.dotted(base)) not in known and name not in project.classes for base in owner.bases)
    )
