"""What holds the graph of a backward pass: the losses that it starts from, what they are made of, what steps return."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.reading.code import callee, calls, functions
from gates.scan.analyses.reading.origins import Origin, Origins
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

STARTS = re.compile(r"^_*(?!is_|has_|on_|in_|for_|no_|register_)(\w+_)?backward(_pass|_step)?$")
CUT = {"detach", "item", "float", "tolist", "numpy", "cpu", "clone_detached"}
SHAPES = {"view", "reshape", "unsqueeze", "squeeze", "flatten", "clone", "mean", "sum", "float"}
HOPS = 2  # how many calls a value is followed into


def starts(body: ast.AST) -> set[str]:
    """Return the names from which the backward passes of a body start: `loss`, `out.loss`."""
    found: set[str] = set()
    for call in calls(body):
        if STARTS.search(tail_of(call.func)):
            values = [*call.args, *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
            found |= {n for value in values for n in named(value)}
        elif tail_of(call.func).endswith("scaler") and call.args:
            found |= set(named(call.args[0]))
    return found


def begun_at(body: ast.AST) -> Iterator[ast.expr]:
    """Yield the values, scaled or not, that the backward passes of a body start from."""
    for call in calls(body):
        if STARTS.search(tail_of(call.func)):
            values = [*call.args, *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
            for value in values:
                is_scaled = isinstance(value, ast.Call) and tail_of(value.func) == "scale"
                yield from value.args if isinstance(value, ast.Call) and is_scaled else [value]


def with_others(names: set[str], body: ast.AST) -> set[str]:
    """Return names with those that a body gives the same values, or multiples: `batch_loss = loss * rows`."""
    if not names:
        return names
    return names | {
        target.id
        for node in inner(body, ast.Assign)
        if isinstance(node, ast.Assign) and any(text_of(part) in names for part in carried(node.value))
        for target in node.targets if isinstance(target, ast.Name)
    }  # fmt: skip


def carried(value: ast.expr) -> Iterator[ast.expr]:
    """Yield what goes along with a value: the parts of a pair or a mapping, both of what is multiplied."""
    if isinstance(value, ast.List | ast.Tuple):
        for part in value.elts:
            yield from carried(part)
    elif isinstance(value, ast.Dict):
        for part in value.values:
            yield from carried(part)
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in SHAPES:
        yield from carried(value.func.value)
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict":
        for option in value.keywords:
            yield from carried(option.value)
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult | ast.Div):
        yield from carried(value.left)
        yield from carried(value.right) if isinstance(value.op, ast.Mult) else ()
    else:
        yield value


def named(value: ast.expr) -> Iterator[str]:
    """Yield the names that a scaled or divided loss is made of."""
    if isinstance(value, ast.Name):
        yield value.id
    elif (isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name)) or (
        isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant)
    ):
        yield text_of(value)
    elif isinstance(value, ast.Call) and tail_of(value.func) == "scale":
        for arg in value.args:
            yield from named(arg)
    elif isinstance(value, ast.BinOp):
        right = [name for name in named(value.right) if "loss" in name.lower()]
        yield from right or named(value.left)


def is_ungraded(node: ast.AST, module: Module) -> bool:
    """Return whether a node stands where no graph is made."""
    return any(
        isinstance(a, ast.With) and any(stops(item.context_expr) for item in a.items) for a in module.ancestors(node)
    )


def stops(context: ast.expr) -> bool:
    """Return whether a context, or a decorator, turns gradients off."""
    return "no_grad" in text_of(context) or "inference_mode" in text_of(context)


def is_cut(name: str, node: ast.AST, module: Module, body: ast.AST) -> bool:
    """Return whether a loss, or each of a mapping of them, was detached or made a number under its own name."""
    for other in inner(body, ast.Assign):
        if isinstance(other, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in other.targets):
            made = other.value
            each = (
                made.value if isinstance(made, ast.DictComp) else made.elt if isinstance(made, ast.ListComp) else made
            )
            if isinstance(each, ast.Call) and tail_of(each.func) in CUT:
                return True
    return is_ungraded(node, module)


def unsummed(project: Project, module: Module, into: ast.expr, function: ast.AST) -> bool:
    """Return whether no backward pass starts from the sum itself, or from what is made of it."""
    while isinstance(into, ast.Subscript):
        into = into.value
    if made_of(project, module, text_of(into), function) & starts(function):
        return False
    for call in calls(function):
        if ("backward" in tail_of(call.func) or tail_of(call.func) == "scale") and any(
            text_of(n) == text_of(into) for n in walk(call) if isinstance(n, ast.expr) and n is not call
        ):
            return False
    return True


def made_of(project: Project, module: Module, text: str, body: ast.AST, hops: int = HOPS) -> set[str]:
    """Return a name, and those that are made of it: by assignments, or by going over it."""
    texts, todo = {text}, [text]
    while todo:
        fresh = _made_of(project, module, todo.pop(), body, hops) - texts
        texts |= fresh
        todo += fresh
    return texts


def _made_of(project: Project, module: Module, text: str, body: ast.AST, hops: int) -> set[str]:
    found: set[str] = set()
    for node in inner(body, ast.Assign, ast.For):
        value = node.value if isinstance(node, ast.Assign) else node.iter if isinstance(node, ast.For) else None
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.For) else []
        if value is not None and _is_in(project, module, text, value, hops):
            flat = (n for t in targets for n in (t.elts if isinstance(t, ast.Tuple | ast.List) else [t]))
            found |= {text_of(n) for n in flat if isinstance(n, ast.Name | ast.Attribute)} - {text}
    return found


def _is_in(project: Project, module: Module, text: str, value: ast.expr, hops: int) -> bool:
    """Return whether a value is made of a name: it is written there, and no function is handed it that gives others."""
    for node in walk(value):
        if isinstance(node, ast.expr) and text_of(node) == text:
            around = module.parents.get(node)
            call = module.parents.get(around) if isinstance(around, ast.keyword) else around
            is_handed = isinstance(call, ast.Call) and call.func is not node and hops > 0
            if not (is_handed and isinstance(call, ast.Call) and _gives_others(project, module, call, node, hops)):
                return True
    return False


def _gives_others(project: Project, module: Module, call: ast.Call, given: ast.expr, hops: int) -> bool:
    """Return whether a function of the program returns nothing that is made of what a call hands it."""
    target = callee(project, module, call)
    if target is None or target.name == "__init__":
        return _goes_over_others(project, module, call, given, hops)
    scope = project.scope_of(target, module)
    bound = scope.owner is not None
    names = [a.arg for a in walk(target.args) if isinstance(a, ast.arg)]
    taken = [name for name in names if argument(call, target, name, bound=bound) is given]
    results = [n.value for n in inner(target, ast.Return, ast.Yield, ast.YieldFrom)]  # type: ignore[attr-defined]
    told = [value for value in results if value is not None]
    if len(taken) != 1 or not told:
        return False
    texts = made_of(project, scope.module, taken[0], target, hops - 1)
    return not any(_is_in(project, scope.module, text, value, hops - 1) for text in texts for value in told)


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=False))
    return [(target, value)]


def _goes_over_others(project: Project, module: Module, call: ast.Call, given: ast.expr, hops: int) -> bool:
    """Return whether a call makes an object that keeps what it is handed, and gives nothing of it when gone over."""
    info = project.classes.get(project.types.of(call, project.scope_at(call, module)) or "")
    made, over = (info.methods.get(name) for name in ("__init__", "__iter__")) if info is not None else (None, None)
    if info is None or made is None or over is None:
        return False
    taken = {
        a.arg for a in walk(made.args) if isinstance(a, ast.arg) and argument(call, made, a.arg, bound=True) is given
    }
    kept = {text_of(t) for n in inner(made, ast.Assign) for target in n.targets  # type: ignore[attr-defined]
            for t, value in _pairs(target, n.value) if tail_of(value) in taken}  # type: ignore[attr-defined]  # fmt: skip
    there = info.scope.module
    told = [n.value for n in inner(over, ast.Yield, ast.YieldFrom) if n.value is not None]  # type: ignore[attr-defined]
    texts = {text for each in kept for text in made_of(project, there, each, over, hops - 1)}
    return bool(told) and not any(_is_in(project, there, text, value, hops - 1) for text in texts for value in told)


def giving(project: Project) -> frozenset[str]:
    """Return the names of the functions that return what they started a backward pass from."""
    return project.once(_giving)[0]


def _giving(project: Project) -> Iterator[frozenset[str]]:
    found: set[str] = set()
    for module in project.modules.values():
        for function in functions(module):
            begun = with_others(starts(function), function)
            for node in inner(function, ast.Return) if begun else ():
                value = node.value if isinstance(node, ast.Return) else None
                parts = walk(value) if value is not None else ()
                if any(isinstance(n, ast.Name | ast.Attribute) and text_of(n) in begun for n in parts):
                    found |= {function.name, *(project.names_for(function.name) or ())}
    yield frozenset(found)


def given_by(origins: Origins, node: ast.expr, scope: Scope) -> Origin | None:
    """Return what a function returns with the graph of its backward pass, if a value is, or holds, such a thing."""
    ways = origins.ways(node, scope)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        held = [(value, where) for made, where, path in ways if isinstance(made, ast.Dict) and len(path) == 1
                for key, value in zip(made.keys, made.values, strict=True)
                if isinstance(key, ast.Constant) and key.value == node.slice.value]  # fmt: skip
    else:
        held = [(made, where) for made, where, path in ways if not path]
    others = [(made, where) for made, where in held if where.function is not scope.function]
    started = (Origin(part, where) for made, where in others for part in _within(made) if _is_started(part, where))
    return next(started, None)


def _within(made: ast.expr) -> list[ast.expr]:
    if isinstance(made, ast.Dict):
        return made.values
    return made.elts if isinstance(made, ast.Tuple | ast.List) else [made]


def _is_started(node: ast.expr, scope: Scope) -> bool:
    body = scope.function
    if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(body, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    name = text_of(node)
    return name in starts(body) - {"self"} and not is_cut(name, node, scope.module, body)
