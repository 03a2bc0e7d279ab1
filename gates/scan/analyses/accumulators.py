"""Losses kept beyond their step with the graph that made them."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses._code import broken, calls, function_of, functions, loop_of, statement_of
from gates.scan.analyses._hot import is_hot, steps
from gates.scan.analyses._origins import Origins
from gates.scan.module import Function, Module, tail_of
from gates.scan.nodes import inner, text_of, walk
from gates.scan.project import Project
from gates.scan.scope import Scope
from gates.scan.site import Site
from gates.scan.types import argument

WORDS = ("backward*", "training_step", "scaler*")
STARTS = re.compile(r"^_*(?!is_|has_|on_|in_|for_|no_|register_)(\w+_)?backward(_pass|_step)?$")
ADDS = {"append", "add", "appendleft", "extend"}
CUT = {"detach", "item", "float", "tolist", "numpy", "cpu", "clone_detached"}


def look(project: Project) -> Iterator[Site]:
    """Yield each `losses.append(loss)` and `total = total + loss` of a loss that a backward pass starts from."""
    for module in project.modules.values():
        if not any("backward" in tail or tail == "scale" for tail in module.calls) and not _lightning(module):
            continue
        for function, losses in _losses(module):
            for node in inner(function, ast.Call, ast.Assign, ast.AugAssign):
                kept = _kept(node)
                if kept is None or kept[0].id not in losses or _is_cut(kept[0].id, node, module):
                    continue
                if _runs_own(project, module, node):
                    continue  # what the method does with it is asked below
                name, into = kept[0].id, kept[1]
                if _outlives(into, node, module) and _unsummed(into, function) and _is_hot(project, module, node):
                    yield broken(module, node, f"{text_of(into)} keeps {name} with the graph that made it")
    yield from _handed(project)


def _handed(project: Project) -> Iterator[Site]:
    """Yield where helpers keep a loss that they are handed, or the calls of one that others hand what is cut off."""
    for module in project.modules.values():
        for function in functions(module):
            for node in inner(function, ast.Call, ast.Assign, ast.AugAssign):
                kept = _kept(node)
                if (
                    kept is None
                    or not _is_kept_there(kept, function, project, module)
                    or _runs_own(project, module, node)
                ):
                    continue
                sites = _sites(project, function)
                bad = [(call, there) for call, there in sites if _hands_graph(project, kept, function, call, there)]
                if bad and len(bad) == len(sites):
                    yield broken(module, node, f"{text_of(kept[1])} keeps {kept[0].id} with the graph that made it")
                elif bad:
                    yield from (
                        broken(there, call, f"{text_of(call)} keeps the graph of a loss") for call, there in bad
                    )


def _runs_own(project: Project, module: Module, node: ast.AST) -> bool:
    """Return whether what looks like a list's method is one of the program."""
    return isinstance(node, ast.Call) and bool(steps(project).targets.of(node, module))


def _sites(project: Project, function: Function) -> list[tuple[ast.Call, Module]]:
    """Return the calls of a function that run again and again, with each step or now and then."""
    known = steps(project)
    others = [(call, there) for call, there in known.origins.called(function) if loop_of(call, there) is not None]
    return list({id(call): (call, there) for call, there in (*known.sites.get(function, ()), *others)}.values())


def _is_kept_there(kept: tuple[ast.Name, ast.expr], function: Function, project: Project, module: Module) -> bool:
    """Return whether a function keeps what it is handed, as it is, in something that is there before and after."""
    name, into = kept
    scope = project.scope_of(function, module)
    bindings = scope.bindings.get(name.id, [])
    if not bindings or any(b.kind not in {"parameter", "opaque"} for b in bindings) or _starts(function):
        return False
    root = _root_of(into)
    holder = into.value if isinstance(into, ast.Subscript) else into
    made = [b.node for b, _ in scope.attribute(holder)] if isinstance(holder, ast.Attribute) else []
    if root is None or any(node is not None and "maxlen" in text_of(node) for node in made):
        return False
    bound = scope.bindings.get(root, [])
    quiet = any("no_grad" in text_of(d) or "inference_mode" in text_of(d) for d in function.decorator_list)
    return not quiet and all(b.kind == "parameter" for b in bound) and not _is_cut(name.id, name, module)


def _root_of(node: ast.expr) -> str | None:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _hands_graph(
    project: Project, kept: tuple[ast.Name, ast.expr], function: Function, call: ast.Call, there: Module
) -> bool:
    """Return whether a call hands a function the loss of a backward pass, for something that outlives it."""
    known = steps(project)
    scope = project.scope_of(function, there)
    only = Origins(project, lambda asked: [(call, there)] if asked is function else known.called(asked))
    holder = call.func.value if isinstance(call.func, ast.Attribute) else None
    holder = None if isinstance(holder, ast.Call) and tail_of(holder.func) == "super" else holder
    root = _root_of(kept[1])
    if root is not None and root != scope.self_name:
        holder = argument(call, function, root, bound=scope.owner is not None) if root in scope.bindings else None
    around = function_of(call, there) or there.tree
    if holder is not None and not (_outlives(holder, call, there) and _unsummed(holder, around)):
        return False
    if any(isinstance(a, ast.With) and "no_grad" in text_of(a.items[0].context_expr) for a in there.ancestors(call)):
        return False
    return any(_is_attached(node, where, path) for node, where, path in only.ways(kept[0], scope))


def _is_attached(node: ast.expr, scope: Scope, path: tuple[int | None, ...]) -> bool:
    """Return whether an expression is a loss that a backward pass starts from, or holds the parts of one."""
    body = scope.function or scope.module.tree
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div) and not path:
        node = node.left
    if not isinstance(node, ast.Name) or isinstance(body, ast.Lambda):
        return False
    found = _starts(body) if not path else _summed(body)
    return node.id in found - {"self"} and not _is_cut(node.id, node, scope.module)


def _summed(body: ast.AST) -> set[str]:
    """Return the names of the lists and mappings of which a body sums up a loss."""
    starts = _starts(body)
    found: set[str] = set()
    for node in inner(body, ast.Assign):
        if isinstance(node, ast.Assign) and any(tail_of(target) in starts for target in node.targets):
            for part in walk(node.value):
                over = part.func.value if isinstance(part, ast.Call) and tail_of(part.func) == "values" else None  # type: ignore[attr-defined]  # a method
                over = part.value if isinstance(part, ast.Subscript) else over
                over = (
                    part.args[0] if isinstance(part, ast.Call) and tail_of(part.func) == "sum" and part.args else over
                )
                found |= {over.id} if isinstance(over, ast.Name) else set()
    return found


def _lightning(module: Module) -> bool:
    return any(
        isinstance(n, ast.FunctionDef) and n.name == "training_step" for n in module.live.get(ast.FunctionDef, [])
    )


def _is_hot(project: Project, module: Module, node: ast.AST) -> bool:
    """Ask whether it runs with each step; where it runs only now and then the graph is kept all the same."""
    function = function_of(node, module)
    return (
        loop_of(node, module) is not None
        or is_hot(project, module, node)
        or (function is not None and function.name == "training_step")
    )


def _losses(module: Module) -> Iterator[tuple[ast.AST, set[str]]]:
    """Yield each function, or the module, with the names from which its backward passes start."""
    for body in (module.tree, *functions(module)):
        found = _starts(body)
        if isinstance(body, ast.FunctionDef) and body.name == "training_step":
            for node in inner(body, ast.Return):
                value = node.value if isinstance(node, ast.Return) else None
                values = value.values if isinstance(value, ast.Dict) else [value] if value is not None else []
                found |= {name for each in values for name in _named(each)}
        if found:
            yield body, found - {"self"}


def _starts(body: ast.AST) -> set[str]:
    """Return the names from which the backward passes of a body start."""
    found: set[str] = set()
    for call in calls(body):
        if STARTS.search(tail_of(call.func)):
            values = [*call.args, *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
            found |= {n for value in values for n in _named(value)}
        elif tail_of(call.func).endswith("scaler") and call.args:
            found |= set(_named(call.args[0]))
    return found


def _made_of(text: str, body: ast.AST) -> set[str]:
    """Return the names that are made of something: by an assignment, or by going over it."""
    found: set[str] = set()
    for node in inner(body, ast.Assign, ast.For):
        value = node.value if isinstance(node, ast.Assign) else node.iter if isinstance(node, ast.For) else None
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.For) else []
        if value is not None and any(isinstance(n, ast.expr) and text_of(n) == text for n in walk(value)):
            found |= {n.id for t in targets for n in walk(t) if isinstance(n, ast.Name)} - {text}
    return found


def _named(value: ast.expr) -> Iterator[str]:
    """Yield the names that a scaled or divided loss is made of."""
    if isinstance(value, ast.Name):
        yield value.id
    elif isinstance(value, ast.Call) and tail_of(value.func) == "scale":
        for arg in value.args:
            yield from _named(arg)
    elif isinstance(value, ast.BinOp):
        right = [name for name in _named(value.right) if "loss" in name.lower()]
        yield from right or _named(value.left)


def _kept(node: ast.AST) -> tuple[ast.Name, ast.expr] | None:
    """Return what a node adds to something, as it is, and to what."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ADDS and len(node.args) == 1:
            into = node.func.value
            is_made = isinstance(into, ast.Call) and tail_of(into.func) == "setdefault"
            given = _element(node.args[0]) if node.func.attr == "extend" else node.args[0]
            return _single(given, into.func.value if is_made else into)  # type: ignore[attr-defined]  # a method
    elif isinstance(node, ast.AugAssign):
        return _single(_element(node.value), node.target) if isinstance(node.op, ast.Add) else None
    elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.BinOp):
        sides = (node.value.left, node.value.right)
        for one, other in (sides, sides[::-1]):
            if isinstance(node.value.op, ast.Add) and _is_before(one, node.targets[0]):
                return _single(other, node.targets[0])
    return None


def _is_before(value: ast.expr, target: ast.expr) -> bool:
    """Return whether a value is what a target held before: `total`, `sums.get(key, 0)` of `sums[key]`."""
    if isinstance(value, ast.Call) and tail_of(value.func) == "get" and isinstance(target, ast.Subscript):
        return text_of(value.func) == f"{text_of(target.value)}.get"
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):  # what a running mean keeps
        return text_of(target) in {text_of(value.left), text_of(value.right)}
    return text_of(value) == text_of(target)


def _element(value: ast.expr) -> ast.expr:
    """Return the only element of a list or tuple: of `[loss]`, `loss`."""
    return value.elts[0] if isinstance(value, ast.List | ast.Tuple) and len(value.elts) == 1 else value


def _single(value: ast.expr, into: ast.expr) -> tuple[ast.Name, ast.expr] | None:
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult | ast.Div):
        turned = isinstance(value.op, ast.Mult) and isinstance(value.left, ast.Constant | ast.BinOp)
        value = value.right if turned else value.left
    return (value, into) if isinstance(value, ast.Name) else None


def _is_cut(name: str, node: ast.AST, module: Module) -> bool:
    """Return whether the loss was detached, or made a number, under its own name before."""
    function = function_of(node, module) or module.tree
    for other in inner(function, ast.Assign):
        if (
            isinstance(other, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == name for t in other.targets)
            and isinstance(other.value, ast.Call)
            and tail_of(other.value.func) in CUT
        ):
            return True
    return any(
        isinstance(a, ast.With) and "no_grad" in text_of(a.items[0].context_expr) for a in module.ancestors(node)
    )


def _outlives(into: ast.expr, node: ast.AST, module: Module) -> bool:
    """Return whether what it is added to was made outside of the step's loop."""
    if not isinstance(into, ast.Name):
        return not isinstance(into, ast.Call)
    loop = loop_of(node, module)
    if loop is None:
        function = function_of(node, module)
        stores = (n for n in inner(function or module.tree, ast.Name) if isinstance(n, ast.Name) and n.id == into.id)
        return function is not None and not any(isinstance(n.ctx, ast.Store) for n in stores)
    statement = statement_of(node, module)
    for other in inner(loop, ast.Assign):
        if (
            other is not statement
            and isinstance(other, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == into.id for t in other.targets)
        ):
            return False
    return True


def _unsummed(into: ast.expr, function: ast.AST) -> bool:
    """Return whether no backward pass starts from the sum itself."""
    text = text_of(into)
    if _made_of(text, function) & _starts(function):
        return False
    for call in calls(function):
        if ("backward" in tail_of(call.func) or tail_of(call.func) == "scale") and any(
            text_of(n) == text for n in walk(call) if isinstance(n, ast.expr) and n is not call
        ):
            return False
    return True
