"""Scalers that scale nothing wherever they are: in a variable, an attribute, a mapping, in what they are handed to."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.precision.named_parts import is_only_asked
from gates.scan.analyses.reading.code import callee, class_of, constant, function_of, keyword
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

IDLE = {"state_dict", "load_state_dict", "get_scale", "is_enabled", "get_growth_factor", "get_backoff_factor"}
WITH_FIELDS = frozenset({"dataclass", "define", "frozen", "mutable", "attrs"})
MAX_HOPS = 3


def is_idle_name(project: Project, module: Module, target: ast.Name, call: ast.expr) -> bool:
    """Return whether nothing lets a scaler scale that is made for a variable."""
    function = function_of(call, module)
    if function is None and _imported(project, module, target.id):
        return False
    return _idle(project, module, function or module.tree, target.id, MAX_HOPS)


def is_idle_field(project: Project, name: str) -> bool:
    """Return whether what objects hold under a name is nowhere more than saved, in a program that trains."""
    if "backward" not in project.named or "scale" in project.named:
        return False
    for module in project.modules.values():
        for node in (*module.live.get(ast.Attribute, []), *module.live.get(ast.Name, [])):
            assert isinstance(node, ast.Attribute | ast.Name)
            mine = tail_of(node) == name and isinstance(node.ctx, ast.Load)
            if mine and not is_idle_read(node, module):
                return False
        if any(isinstance(n, ast.Constant) and n.value == name for n in module.live.get(ast.Constant, [])):
            return False
    return True


def is_idle_attribute(project: Project, module: Module, target: ast.expr, name: str) -> bool:
    """Return whether an attribute is nowhere in the program more than stored, saved and asked for its scale."""
    owner = class_of(target, module)
    if owner is None or _is_foreign(project, module, owner):
        return False
    return _idle_member(project, name)


def is_idle_argument(project: Project, module: Module, node: ast.expr, depth: int = MAX_HOPS) -> bool:
    """Return whether nothing lets a scaler scale that a call hands to a function or an object of the program."""
    call = _call_with(module, node)
    if call is None or depth <= 0:
        return False
    made = project.classes.get(project.scope_at(call, module).dotted(call.func) or "")
    if made is not None and ("backward" not in project.named or not _is_known(project, made)):
        return False
    target = _run_by(project, module, call, made)
    if target is None:
        return made is not None and _idle_own_field(project, made, call, node)
    there = project.scope_of(target, module)
    for arg in (*target.args.posonlyargs, *target.args.args, *target.args.kwonlyargs):
        if argument(call, target, arg.arg, bound=there.owner is not None) is node:
            return _idle(project, there.module, target, arg.arg, depth - 1)
    return False


def chosen(module: Module, node: ast.expr) -> ast.expr:
    """Return the outermost choice of which an expression is one side: of `made` that `made if mixed else None`."""
    parent = module.parents.get(node)
    while (isinstance(parent, ast.IfExp) and node is not parent.test) or isinstance(parent, ast.BoolOp):
        node, parent = parent, module.parents.get(parent)
    return node


def mentions(node: ast.AST, name: str) -> bool:
    """Return whether a node is an attribute of a name."""
    return isinstance(node, ast.Attribute) and node.attr == name


def is_idle_read(node: ast.expr, module: Module) -> bool:
    """Return whether a scaler is read only to save it, or to ask for its scale."""
    parent = module.parents.get(node)
    return isinstance(parent, ast.Attribute) and parent.attr in IDLE


def _call_with(module: Module, node: ast.expr) -> ast.Call | None:
    """Return the call that an expression is an argument of."""
    parent = module.parents.get(node)
    around = module.parents.get(parent) if isinstance(parent, ast.keyword) else parent
    return around if isinstance(around, ast.Call) and around.func is not node else None


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
        elif not _is_asked(module, node) and not _idle_part(project, module, chosen(module, node), depth):
            return False
    return True


def _is_asked(module: Module, node: ast.expr) -> bool:
    """Return whether a scaler is only asked whether there is one."""
    parent = module.parents.get(node)
    return isinstance(parent, ast.Compare | ast.If) or (isinstance(parent, ast.IfExp) and node is parent.test)


def _idle_part(project: Project, module: Module, node: ast.expr, depth: int) -> bool:
    """Return whether nothing lets a scaler scale that is put into a mapping, kept, or handed on."""
    parent = module.parents.get(node)
    if isinstance(parent, ast.Dict):
        return depth > 0 and node in parent.values and _idle_key(project, parent.keys[parent.values.index(node)])
    kept = list(_kept_as(module, node))
    if not kept:
        given = returned_to(project, module, node) if depth > 0 else []
        handed = all(_is_idle_target(project, there, target, depth - 1) for there, target in given)
        return handed if given else is_idle_argument(project, module, node, depth)
    scope = project.scope_at(node, module)
    if depth > 0 and all(isinstance(t, ast.Attribute) and _is_plain(t.value, scope) for t in kept):
        in_vain = "backward" in project.named and "scale" not in project.named
        return in_vain and all(_idle_member(project, tail_of(t)) for t in kept)
    is_own = all(isinstance(t, ast.Attribute) and tail_of(t.value) == scope.self_name for t in kept)
    return is_own and "backward" in project.named and all(
        isinstance(t, ast.Attribute) and is_idle_attribute(project, module, t, t.attr) for t in kept
    )  # fmt: skip


def _is_plain(node: ast.expr, scope: Scope) -> bool:
    """Return whether an object uses none of its fields itself: a function, or a plain namespace."""
    found = scope.lookup(node.id) if isinstance(node, ast.Name) else None
    bound = [binding.node for binding in found[1]] if found is not None else []
    return bool(bound) and all(
        isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(each, ast.Call) and tail_of(each.func) in {"SimpleNamespace", "Namespace"})
        for each in bound
    )


def _is_idle_target(project: Project, module: Module, target: ast.expr, depth: int) -> bool:
    """Return whether nothing lets a scaler scale that a function returns and its caller binds."""
    if isinstance(target, ast.Attribute):
        return is_idle_attribute(project, module, target, target.attr)
    function = function_of(target, module)
    if not isinstance(target, ast.Name) or (function is None and _imported(project, module, target.id)):
        return False
    return _idle(project, module, function or module.tree, target.id, depth)


def returned_to(project: Project, module: Module, node: ast.expr) -> list[tuple[Module, ast.expr]]:
    """Return what all callers of a function bind to what it returns in a place; nothing where one does otherwise."""
    parent, function = module.parents.get(node), function_of(node, module)
    several = parent if isinstance(parent, ast.Tuple) else None
    outer = module.parents.get(several) if several is not None else parent
    if function is None or not isinstance(outer, ast.Return) or function.decorator_list:
        return []
    found: list[tuple[Module, ast.expr]] = []
    for call, there in project.named.get(function.name, ()):
        around = there.parents.get(call)
        target = around.targets[0] if isinstance(around, ast.Assign) and len(around.targets) == 1 else None
        target = around.target if isinstance(around, ast.AnnAssign) else target
        if several is not None:
            apart = isinstance(target, ast.Tuple) and len(target.elts) == len(several.elts)
            target = target.elts[several.elts.index(node)] if isinstance(target, ast.Tuple) and apart else None
        if target is None or callee(project, there, call) is not function:
            return []
        found.append((there, target))
    return found


def _kept_as(module: Module, node: ast.expr) -> Iterator[ast.expr]:
    """Yield what an expression is assigned to, in its place of `a, b = one, two` too."""
    parent = module.parents.get(node)
    around = module.parents.get(parent) if isinstance(parent, ast.Tuple) else parent
    targets = around.targets if isinstance(around, ast.Assign) else []
    targets = [around.target] if isinstance(around, ast.AnnAssign) else targets
    for target in targets:
        if not isinstance(parent, ast.Tuple):
            yield target
        elif isinstance(target, ast.Tuple) and len(target.elts) == len(parent.elts):
            yield target.elts[parent.elts.index(node)]
        else:
            yield target


def _idle_key(project: Project, key: ast.expr | None) -> bool:
    """Return whether what a mapping holds under a key is nowhere more than saved, in a program that trains."""
    name = constant(key) if key is not None else None
    if not isinstance(name, str) or "backward" not in project.named:
        return False
    read = 0
    for module in project.modules.values():
        if any(mentions(node, name) for node in module.live.get(ast.Attribute, [])):
            return False
        for node in module.live.get(ast.Constant, []):
            if not isinstance(node, ast.Constant) or node.value != name or node is key:
                continue
            if not _is_key(module, node):
                return False
            held = module.parents.get(node)
            around = module.parents.get(held) if isinstance(held, ast.Subscript) else None
            if isinstance(held, ast.Subscript) and isinstance(held.ctx, ast.Load):
                saved = is_idle_read(held, module)
                if not saved and not (isinstance(around, ast.Call) and tail_of(around.func) in IDLE):
                    return False
                read += saved
    return read > 0


def _run_by(project: Project, module: Module, call: ast.Call, made: ClassInfo | None) -> Function | None:
    """Return the function of the program that a call runs, a constructor too."""
    scope = project.scope_at(call, module)
    if made is not None:
        found = project.method(made, "__init__")
        return found[0] if found is not None else None
    func = call.func
    above = func.value if isinstance(func, ast.Attribute) and func.attr == "__init__" else None
    if isinstance(above, ast.Call) and tail_of(above.func) == "super" and scope.owner is not None:
        base = project.above(scope.owner, scope.owner, "__init__")
        return base.methods["__init__"] if base is not None and _is_known(project, scope.owner) else None
    return callee(project, module, call)


def _is_known(project: Project, owner: ClassInfo) -> bool:
    """Return whether a class and all that it extends are the program's own."""
    family = project.order_of(owner)
    return not any(each.twice or _is_foreign(project, each.scope.module, each.node) for each in family)


def _idle_own_field(project: Project, owner: ClassInfo, call: ast.Call, node: ast.expr) -> bool:
    """Return whether a scaler is idle that a call passes for a field of a class without a constructor."""
    if not any(tail_of(d.func if isinstance(d, ast.Call) else d) in WITH_FIELDS for d in owner.node.decorator_list):
        return False
    body = [statement for each in reversed(project.order_of(owner)) for statement in each.node.body]
    names = [s.target.id for s in body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
    fields = list(dict.fromkeys(names))
    name = next((f for at, f in enumerate(fields) if keyword(call, f) is node or node in call.args[at : at + 1]), None)
    return name is not None and _idle_member(project, name)


def _idle_member(project: Project, name: str) -> bool:
    """Return whether what objects have under a name is nowhere more than stored, saved and asked for its scale."""
    for module in project.modules.values():
        for node in module.live.get(ast.Attribute, []):
            is_read = isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load)
            if (
                isinstance(node, ast.Attribute)
                and is_read
                and not (is_idle_read(node, module) or _is_asked(module, node))
            ):
                return False
        for node in module.live.get(ast.Constant, []):
            is_name = isinstance(node, ast.Constant) and node.value == name and not _is_key(module, node)
            if isinstance(node, ast.Constant) and is_name and not is_only_asked(module, node, IDLE):
                return False
    return True


def _is_key(module: Module, node: ast.Constant) -> bool:
    """Return whether a text is no more than the key of a dictionary."""
    parent = module.parents.get(node)
    return isinstance(parent, ast.Subscript | ast.Compare) or (isinstance(parent, ast.Dict) and node in parent.keys)


def _is_foreign(project: Project, module: Module, owner: ast.ClassDef) -> bool:
    """Return whether a class has bases outside of the program, whose methods may use what it has."""
    scope = project.scope_at(owner, module)
    known = {"object", "torch.nn.Module"}
    return any((name := scope.dotted(base)) not in known and name not in project.classes for base in owner.bases)
