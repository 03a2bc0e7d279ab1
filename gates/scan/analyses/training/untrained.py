"""Parts that a step runs and does not train: features, augmentations, frozen models."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.precision.frozen import freezes, is_frozen_in, thaws
from gates.scan.analyses.reading.flow import Source, passed, spine
from gates.scan.analyses.training.forwards import NO_GRAD, RUNS_MODEL
from gates.scan.program.classes import ClassInfo
from gates.scan.program.known import MODULE
from gates.scan.program.nodes import inner, text_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

LIBRARIES = re.compile(r"^(torchaudio|kornia|torchvision\.transforms|torch_audiomentations|monai\.transforms)\.")
PLAIN = re.compile(
    r"^torch\.nn\.(modules\.\w+\.)?(Identity|Flatten|Unflatten|Fold|Unfold|Upsample\w*|Pixel\w+|\w*Dropout\w*|"
    r"\w*Pool\dd|\w*Pad\dd|\w*Loss|ReLU6?|LeakyReLU|[A-Z]*LU|Mish|Hard\w+|\w*Softm\w+|Softplus|\w*Sigmoid|Tanh\w*|"
    r"CosineSimilarity|PairwiseDistance|Sequential|ModuleList|ModuleDict)$"
)
LEARNT = re.compile(
    r"^torch\.nn\.(modules\.\w+\.|parameter\.)?[A-Z]|(^|\.)(register_parameter|add_module|register_module)$"
)
OF_MODULE = frozenset(
    {
        "register_buffer", "parameters", "buffers", "modules", "children", "to", "train", "eval", "apply",
        "requires_grad_", "state_dict", "load_state_dict",
    }
)  # fmt: skip
MAX_HOPS = 4


def is_untrained(project: Project, source: Source, call: ast.Call) -> bool:
    """Return whether a step runs something that it does not train, and may well keep in full precision."""
    scope = project.scope_at(call, source.module)
    owner = scope.class_of(call.func)
    if owner is not None and (_is_without_gradients(project, owner) or not _learns(project, owner, MAX_HOPS)):
        return True
    return not thaws(source.module.tree) and _is_frozen(project, call, scope)


def _is_without_gradients(project: Project, owner: ClassInfo) -> bool:
    """Return whether the forward pass of a class turns gradients off around all the parts that it runs."""
    found = project.method(owner, "forward")
    if found is None:
        return False
    if any(NO_GRAD.search(text_of(each)) for each in found[0].decorator_list):
        return True
    blocks = [s for s in found[0].body if isinstance(s, ast.With) and any(NO_GRAD.search(text_of(i)) for i in s.items)]
    rest = (s for s in found[0].body if s not in blocks)
    return bool(blocks) and not any(_part_of(n, "self") for s in rest for n in (s, *inner(s, ast.Call)))


def _runs_given(call: ast.Call, scope: Scope) -> bool:
    """Return whether a call runs what its function was passed: `net(x)`."""
    bound = scope.bindings.get(call.func.id, ()) if isinstance(call.func, ast.Name) else ()
    return any(each.kind == "parameter" for each in bound)


def _part_of(node: ast.AST, name: str | None) -> str | None:
    """Return which part of the object around a node runs: `net` of `self.net(x)`, of `self.net.encode(x)`."""
    func = node.func if isinstance(node, ast.Call) else None
    if isinstance(func, ast.Attribute) and RUNS_MODEL.search(func.attr) and isinstance(func.value, ast.Attribute):
        func = func.value
    while isinstance(func, ast.Subscript):
        func = func.value
    is_own = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == name
    return func.attr if is_own and isinstance(func, ast.Attribute) else None


def _learns(project: Project, owner: ClassInfo, hops: int) -> bool:
    """Return whether objects of a class may have parameters: layers, modules that they are passed, unknown parts."""
    family = project.order_of(owner)
    known = {MODULE, "object", *project.classes}
    if not hops or owner.twice or any(base not in known for each in family for base in each.bases):
        return True
    methods = ((method, project.scope_of(method, f.scope.module)) for f in family for method in f.methods.values())
    return any(
        isinstance(call, ast.Call) and _is_learnt(project, call, owner, scope, hops)
        for method, scope in methods
        for call in inner(method, ast.Call)
    )


def _is_learnt(project: Project, call: ast.Call, owner: ClassInfo, scope: Scope, hops: int) -> bool:
    """Return whether a call in a module makes a part with parameters, or runs one that may well have some."""
    if _makes_learnt(project, call, scope, hops) or _runs_given(call, scope):
        return True
    name = _part_of(call, scope.self_name)
    if name is None or name in OF_MODULE or project.method(owner, name) is not None:
        return False
    parts = [binding.node for binding, _ in project.attribute(owner, name)]
    return not parts or not all(_is_plain(project, part, scope, hops) for part in parts)


def _makes_learnt(project: Project, call: ast.Call, scope: Scope, hops: int) -> bool:
    """Return whether a call makes a layer, a module of the program that has some, or a chain of unknown ones."""
    named = scope.dotted(call.func) or text_of(call.func)
    if named in project.classes:
        return project.types.is_a(named, MODULE) is not False and _learns(project, project.classes[named], hops - 1)
    if PLAIN.search(named):
        chained = named.endswith(("Sequential", "ModuleList", "ModuleDict"))
        return chained and not all(_is_plain(project, arg, scope, hops) for arg in call.args)
    return LEARNT.search(named) is not None


def _is_plain(project: Project, node: ast.AST | None, scope: Scope, hops: int) -> bool:
    """Return whether an expression makes something that is known to have no parameters."""
    if isinstance(node, ast.List | ast.Tuple):
        return all(_is_plain(project, part, scope, hops) for part in node.elts)
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.Constant | ast.Lambda)
    named = scope.dotted(node.func) or ""
    is_known = named in project.classes or PLAIN.search(named) or LIBRARIES.search(named)
    return bool(is_known) and not _makes_learnt(project, node, scope, hops)


def _is_frozen(project: Project, call: ast.Call, scope: Scope) -> bool:
    """Return whether no parameter of what a call runs is trained: where it was made, gradients were turned off."""
    owner = scope.class_of(call.func)
    if owner is not None and any(is_frozen_in(m, {"self"}, owner.scope.module) for m in owner.methods.values()):
        return True
    if _is_frozen_on_its_way(project, call.func, scope, call.lineno):
        return True
    handed = list(_handed(project, call, scope))
    return bool(handed) and all(_is_frozen_on_its_way(project, *each) for each in handed)


def _is_frozen_on_its_way(project: Project, node: ast.expr, scope: Scope, line: int) -> bool:
    """Return whether gradients are turned off of what an expression is, under one of the names that it had."""
    found = spine(project, node, scope, line)
    return any(any(map(freezes, _chain(each.node))) or _is_frozen_at(project, each) for each in found)


def _handed(project: Project, call: ast.Call, scope: Scope) -> Iterator[tuple[ast.expr, Scope, int]]:
    """Yield what the callers of a function, or of its object's constructor, pass for what a call in it runs."""
    for each in spine(project, call.func, scope, call.lineno):
        found = each.scope.lookup(each.node.id) if isinstance(each.node, ast.Name) else None
        if found is not None and isinstance(each.node, ast.Name):
            yield from passed(project, each.node.id, found[0])


def _chain(node: ast.expr) -> Iterator[ast.Call]:
    """Yield the calls of a chain of methods, the last first."""
    while isinstance(node, ast.Call):
        yield node
        node = node.func.value if isinstance(node.func, ast.Attribute) else node.func


def _is_frozen_at(project: Project, source: Source) -> bool:
    """Return whether the function, or a method of the object, that a model is named in turns its gradients off."""
    if not isinstance(source.node, ast.Name | ast.Attribute):
        return False
    names, owner = {text_of(source.node)}, source.scope.self_class
    is_own = isinstance(source.node, ast.Attribute) and text_of(source.node.value) == source.scope.self_name
    bodies = [m for each in project.order_of(owner) for m in each.methods.values()] if owner and is_own else []
    return any(is_frozen_in(body, names, source.module) for body in (source.body, *bodies))
