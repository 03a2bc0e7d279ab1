"""The difference that a value is made of: through variables, reductions, relative ones, and what helpers return."""

import ast
from dataclasses import dataclass, field

from gates.scan.analyses.benchmarks.replacing import COMPREHENSIONS, difference_of, paired, renamed, side_by_side
from gates.scan.analyses.reading.code import callee, constant, function_of
from gates.scan.analyses.reading.constructors import declared, passed_for
from gates.scan.analyses.reading.flow import set_before
from gates.scan.analyses.settings.defaults import under
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Module, is_property, tail_of
from gates.scan.program.nodes import inner
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

REDUCES = frozenset({"max", "min", "mean", "amax", "sum", "item", "float", "double", "cpu", "numpy", "flatten",
                     "median", "detach", "any", "all", "maximum", "round", "values", "list", "tolist",
                     "ravel"})  # fmt: skip
CONVERTS = frozenset({"asarray", "array", "tensor", "as_tensor", "float", "stack"})
LARGEST = frozenset({"max", "amax", "nanmax"})
LIBRARIES = {"torch", "np", "numpy", "math", "jnp", "statistics"}
CONTAINERS = frozenset({"dict", "list", "defaultdict", "OrderedDict", "zeros", "full", "empty"})
HOPS = 6


@dataclass
class Way:
    """What stands between a value and its difference: names, helpers, and what the last of these reduces it by."""

    names: list[str] = field(default_factory=list)
    helpers: list[tuple[Function, Module]] = field(default_factory=list)
    reductions: list[str] = field(default_factory=list)
    is_elementwise: bool = False  # the largest element of a tensor is taken
    keys: list[str] = field(default_factory=list)  # that the difference is kept under

    def enters(self, helper: Function, module: Module) -> None:
        """Go into a helper."""
        self.helpers.append((helper, module))
        self.reductions.clear()


def behind(project: Project, node: ast.expr, module: Module, way: Way, hops: int = HOPS) -> ast.BinOp | None:
    """Return the difference that a value is made of; `way` gets what is passed."""
    if isinstance(node, ast.BinOp):
        return _computed(project, node, module, way, hops)
    if isinstance(node, COMPREHENSIONS):
        found = behind(project, node.value if isinstance(node, ast.DictComp) else node.elt, module, way, hops)
        return renamed(found, side_by_side(node)) if found is not None else None
    if isinstance(node, ast.Call):
        return _called(project, node, module, way, hops)
    if isinstance(node, ast.Attribute) and hops:
        return _property(project, node, module, way, hops) or _kept(project, node, node.attr, module, way, hops)
    if isinstance(node, ast.Subscript) and hops:
        return _kept(project, node, constant(node.slice), module, way, hops)
    if isinstance(node, ast.Name) and hops:
        way.names.append(node.id)
        over = _gone_through(node, module)
        if over is not None:
            return behind(project, over, module, way, hops - 1)
        found_at = set_before(function_of(node, module) or module.tree, node.id, node.lineno)
        if len(found_at) == 1 and (filled := _filled(node, found_at[0][0], module)) is not None:
            return behind(project, filled, module, way, hops - 1)
        if len(found_at) == 1 and (item := _item(project, node, found_at[0][0], module)) is not None:
            way.keys.append(node.id)
            way.enters(item[1], item[2])
            return behind(project, item[0], item[2], way, hops - 1)
        return behind(project, found_at[0][0], module, way, hops - 1) if len(found_at) == 1 else None
    return None


def _computed(project: Project, node: ast.BinOp, module: Module, way: Way, hops: int) -> ast.BinOp | None:
    """Return a difference itself, that of a relative one, or of a ratio less one."""
    if isinstance(node.op, ast.Div):
        return behind(project, node.left, module, way, hops)
    if isinstance(node.op, ast.Mult):  # in percent
        parts = {constant(node.left): node.right, constant(node.right): node.left}
        return behind(project, parts[100], module, way, hops) if 100 in parts else None
    if not isinstance(node.op, ast.Sub):
        return None
    if constant(node.right) == 1:
        ratio = node.left
        if isinstance(ratio, ast.Name):
            found = set_before(function_of(node, module) or module.tree, ratio.id, node.lineno)
            ratio = found[0][0] if len(found) == 1 else ratio
        is_ratio = isinstance(ratio, ast.BinOp) and isinstance(ratio.op, ast.Div)
        return difference_of(ratio.left, ratio.right, node) if is_ratio else None  # type: ignore[attr-defined]
    return node


def _called(project: Project, node: ast.Call, module: Module, way: Way, hops: int) -> ast.BinOp | None:
    """Return the difference that a call makes, reduces, or returns from a helper of the program."""
    if (made := _subtracted(node)) is not None:
        return made
    target = callee(project, module, node) if hops else None
    if target is not None:
        way.names.append(target.name)
        way.names.append(ast.get_docstring(target) or "")
        return _returned(project, node, target, module, way, hops)
    plain = isinstance(node.func, ast.Name)
    is_larger = tail_of(node.func) in {"max", "maximum"} and (plain or _is_of_library(node.func))
    if is_larger and len(node.args) == 2 and way.names:
        rest = [a for a in node.args if _holder(a) != way.names[-1]]
        if len(rest) == 1:  # the largest one so far
            way.reductions.append("max")
            return behind(project, rest[0], module, way, hops)
    if is_larger and len(node.args) > 1:
        return None  # the larger one of two, or none below zero
    if len([a for a in node.args if not isinstance(a, ast.Constant)]) > 1:
        return None
    inside = node.func.value if isinstance(node.func, ast.Attribute) and not node.args else None
    if inside is None or _is_of_library(node.func):
        inside = node.args[0] if node.args else None
    if inside is None or tail_of(node.func) not in REDUCES:
        return None
    way.reductions.append(tail_of(node.func))
    way.is_elementwise = way.is_elementwise or (isinstance(node.func, ast.Attribute) and node.func.attr in LARGEST)
    return behind(project, inside, module, way, hops)


def _returned(
    project: Project, call: ast.Call, target: Function, module: Module, way: Way, hops: int
) -> ast.BinOp | None:
    """Return the difference that a helper returns, of what the call passes."""
    scope = project.scope_of(target, module)
    values = [n.value for n in inner(target, ast.Return) if isinstance(n, ast.Return) and n.value is not None]
    way.enters(target, scope.module)
    found = behind(project, values[0], scope.module, way, hops - 1) if len(values) == 1 else None
    given = {arg.arg: argument(call, target, arg.arg, bound=scope.owner is not None) for arg in target.args.args}
    if scope.self_name is not None and call.args and isinstance(call.func, ast.Attribute):
        given[scope.self_name] = call.func.value  # `candidate.gap_to(baseline)`
    return renamed(found, {name: value for name, value in given.items() if value}) if found is not None else None


def _property(project: Project, node: ast.Attribute, module: Module, way: Way, hops: int) -> ast.BinOp | None:
    """Return the difference that a property returns, or that an attribute is set to once."""
    scope = project.scope_at(node, module)
    owner = scope.class_of(node.value)
    method = project.method(owner, node.attr) if owner is not None else None
    way.names.append(node.attr)
    if method is not None and is_property(method[0]):
        return _returned(project, ast.Call(node, [], []), method[0], module, way, hops)
    set_to = scope.through(node) or (_set_later(owner, node.attr, project) if owner is not None else None)
    same = set_to is not None and set_to[1].module is module
    if same and set_to is not None and isinstance(set_to[1].function, ast.FunctionDef | ast.AsyncFunctionDef):
        way.enters(set_to[1].function, module)
        way.keys.append(node.attr)
    return behind(project, set_to[0], module, way, hops - 1) if set_to is not None and same else None


def _set_later(owner: ClassInfo, name: str, project: Project) -> tuple[ast.expr, Scope] | None:
    """Return what a method sets a field to that is only declared in its class: in `__post_init__`, mostly."""
    for node in owner.node.body:
        is_it = isinstance(node, ast.AnnAssign) and tail_of(node.target) == name
        if (
            isinstance(node, ast.AnnAssign)
            and is_it
            and node.value is not None
            and not isinstance(node.value, ast.Call)
        ):
            return None
    stored = [
        (n.value, project.scope_of(method, owner.scope.module))
        for method in owner.methods.values()
        for n in inner(method, ast.Assign)
        if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Attribute) and n.targets[0].attr == name
    ]
    return stored[0] if len(stored) == 1 else None


def _kept(
    project: Project, node: ast.Subscript | ast.Attribute, key: object, module: Module, way: Way, hops: int
) -> ast.BinOp | None:
    """Return the difference that a table has under a key, or that a field of a class is made with in one place."""
    scope = project.scope_at(node, module)
    if not isinstance(key, str):
        return None
    if isinstance(node, ast.Subscript):
        found = under(node.value, key, scope, hops)
    else:
        owner = scope.class_of(node.value)
        made = project.named.get(owner.node.name, []) if owner is not None else []
        is_known = owner is not None and len(made) == 1 and key in declared(owner)
        value = passed_for(key, made[0][0], owner) if owner is not None and is_known else None
        found = (value, project.scope_at(*made[0])) if value is not None else None
    if found is None:
        return None
    way.names.append(key)
    way.keys.append(key)
    if isinstance(found[1].function, ast.FunctionDef | ast.AsyncFunctionDef):
        way.enters(found[1].function, found[1].module)
    return behind(project, found[0], found[1].module, way, hops - 1)


def _item(project: Project, node: ast.Name, made: ast.expr, module: Module) -> tuple[ast.expr, Function, Module] | None:
    """Return the part, of what a helper returns, that a name is set to: of `ratio, gap = compare(a, b)`."""
    found = project.scope_at(node, module).lookup(node.id)
    places = {b.index for b in found[1] if b.kind == "item" and b.node is made} if found is not None else set()
    target = callee(project, module, made) if isinstance(made, ast.Call) and len(places) == 1 else None
    values = [n.value for n in inner(target, ast.Return) if isinstance(n, ast.Return)] if target is not None else []
    parts = values[0].elts[: max(places) + 1] if len(values) == 1 and isinstance(values[0], ast.Tuple) else []
    if target is None or len(parts) <= max(places) or any(isinstance(part, ast.Starred) for part in parts):
        return None
    return parts[-1], target, project.scope_of(target, module).module


def _filled(node: ast.Name, begun: ast.expr, module: Module) -> ast.expr | None:
    """Return what a container that was begun with something else is filled with in one place."""
    is_display = isinstance(begun, (ast.Dict, ast.List, *COMPREHENSIONS))
    if not is_display and not (isinstance(begun, ast.Call) and tail_of(begun.func) in CONTAINERS):
        return None
    found: list[ast.expr] = []
    for each in inner(function_of(node, module) or module.tree, ast.Assign, ast.Call):
        target = each.targets[0] if isinstance(each, ast.Assign) else None
        if isinstance(each, ast.Assign) and isinstance(target, ast.Subscript) and _holder(target) == node.id:
            found.append(each.value)
        elif isinstance(each, ast.Call) and tail_of(each.func) == "append" and _holder(each) == node.id:
            found += each.args
    return found[0] if len(found) == 1 else None


def _holder(node: ast.expr) -> str | None:
    """Return the variable that something is, or is an element of: of `worst[k]` and `worst.get(k, 0)`, `worst`."""
    inside = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else node
    inside = inside.value if isinstance(inside, ast.Subscript) else inside
    return inside.id if isinstance(inside, ast.Name) else None


def _gone_through(node: ast.Name, module: Module) -> ast.expr | None:
    """Return what a comprehension or a loop goes through, of which a name is an element."""
    for around in module.ancestors(node):
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        for turn in around.generators if isinstance(around, (*COMPREHENSIONS, ast.SetComp)) else [around]:
            found = paired(turn.target, turn.iter) if isinstance(turn, ast.For | ast.comprehension) else {}
            if node.id in found:
                return found[node.id]
    return None


def _subtracted(call: ast.Call) -> ast.BinOp | None:
    """Return the difference that a method or a function makes: `out.sub(ref)`, `np.subtract(out, ref)`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in {"sub", "subtract"} or call.keywords:
        return None
    sides = call.args if _is_of_library(call.func) else [call.func.value, *call.args]
    return difference_of(sides[0], sides[1], call) if len(sides) == 2 else None


def _is_of_library(func: ast.expr) -> bool:
    return isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in LIBRARIES
