"""Optimizers that are made for what the same turn of a loop makes: they have no gradients of the turn before."""

import ast
import re
from collections.abc import Iterator

from gates.scan.paths.place import ITSELF, Place
from gates.scan.paths.values import Value
from gates.scan.program.known import MODULE, OPTIMIZER
from gates.scan.program.module import Function, tail_of
from gates.scan.program.nodes import inner, text_of
from gates.scan.program.parameters import argument
from gates.scan.program.scope import Scope

FILTERS = frozenset({"filter", "list", "tuple"})
BUILDS = re.compile(
    r"(?i)(^|_)(make|build|create|new|init|load|from_\w+|spawn)(_|$)|fn$|func$|factory$|(?<!get_)model$"
)
MODEL = re.compile(r"(?i)(^|[\W_])(model|net|network|module|self)($|\W)")
CREATING = frozenset(
    {
        "Parameter",
        "clone",
        "deepcopy",
        "detach",
        "empty",
        "empty_like",
        "full",
        "full_like",
        "ones",
        "ones_like",
        "rand",
        "rand_like",
        "randn",
        "randn_like",
        "tensor",
        "zeros",
        "zeros_like",
    }
)


def made_for_new(written: ast.expr, place: Place) -> str | None:
    """Return the tensors or the module that an optimizer is for, where each turn of a loop makes new ones."""
    if not place.turns:
        return None
    values = list(_optimized(written, place))
    is_new = bool(values) and all(_is_new(value, place.turns) for value in values)
    return ", ".join(value.key for value in values) if is_new else None


def _optimized(written: ast.expr, place: Place) -> Iterator[Value]:
    """Yield what an optimizer is for: tensors, the module of `net.parameters()`, or of `groups(net, decay)`."""
    behind = place.through(written) if isinstance(written, ast.Name) else None
    tensors, where = behind or (written, place)
    if isinstance(tensors, ast.List | ast.Tuple):
        yield from (where.value(part) for part in tensors.elts)
    elif (
        isinstance(tensors, ast.Call) and isinstance(tensors.func, ast.Attribute) and tensors.func.attr == "parameters"
    ):
        yield where.value(tensors.func.value)
    elif isinstance(tensors, ast.Call) and tensors.args:
        inside = tensors.args[-1] if tail_of(tensors.func) in FILTERS else tensors.args[0]
        yield from _optimized(inside, where) if isinstance(inside, ast.Call) else [where.value(inside)]


def _is_new(value: Value, turns: str) -> bool:
    """Return whether a value was made in a turn, without a gradient: `zeros(3)`, `x.detach().to(device)`, `Net()`."""
    made, place = value.node, value.place
    while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr in ITSELF:
        made = made.func.value
    if not isinstance(made, ast.Call) or place is None or place.turns != turns:
        return False
    is_module = tail_of(made.func)[:1].isupper() and place.project.types.is_a(place.dotted(made.func), MODULE)
    return tail_of(made.func) in CREATING or bool(is_module) or _is_built(made, place)


def _is_built(call: ast.Call, place: Place) -> bool:
    """Return whether a call of what reading does not know builds a model, by its name, and is not handed one."""
    return place.dotted(call.func) not in place.project.functions and _builds(call)


def _builds(call: ast.Call) -> bool:
    """Return whether a call builds something by its name, and is handed no model for it."""
    return BUILDS.search(tail_of(call.func)) is not None and not any(
        MODEL.search(text_of(arg)) for arg in (*call.args, *(k.value for k in call.keywords))
    )


def made_by_helper(node: ast.Name, names: object) -> str | None:
    """Return the call of a helper that makes an optimizer in this turn, for a model that is as new."""
    if not isinstance(names, Place) or not names.turns:
        return None
    call, index = _helped(node, names)
    if call is not None and _builds(call):
        return f"{text_of(call)}{names.turns}"
    function = names.project.types.function(call, names.scope) if call is not None else None
    if call is None or function is None:
        return None
    scope = names.project.scope_of(function, names.scope.module)
    told = [r.value for r in inner(function, ast.Return) if isinstance(r, ast.Return)]
    parts = [v.elts[index] if isinstance(v, ast.Tuple) and index < len(v.elts) else v for v in told]
    made = [_made(part, scope) for part in parts]
    is_new = all(m is not None and _is_of_new_model(m, scope, call, function, names) for m in made)
    return f"{text_of(call)}{names.turns}" if made and is_new else None


def _helped(node: ast.Name, place: Place) -> tuple[ast.Call | None, int]:
    """Return the call that gives what a variable is, with its place in what that returns."""
    bound = place.scope.bindings.get(node.id, [])
    made = bound[0].node if len(bound) == 1 and bound[0].kind in {"value", "item"} else None
    return (made, bound[0].index) if isinstance(made, ast.Call) else (None, 0)


def _made(node: ast.expr | None, scope: Scope) -> ast.Call | None:
    """Return the constructor of an optimizer that a function returns."""
    behind = scope.through(node) if isinstance(node, ast.Name) else None
    made = behind[0] if behind is not None else node
    is_optimizer = isinstance(made, ast.Call) and scope.project.types.is_a(scope.dotted(made.func), OPTIMIZER)
    return made if is_optimizer and isinstance(made, ast.Call) and made.args else None


def _is_of_new_model(made: ast.Call, scope: Scope, call: ast.Call, function: Function, place: Place) -> bool:
    """Return whether a helper makes the model as well, or is handed one that the same turn has made."""
    of = made.args[0]
    of = of.func if isinstance(of, ast.Call) else of
    model = of.value if isinstance(of, ast.Attribute) and of.attr == "parameters" else None
    found = scope.lookup(model.id) if isinstance(model, ast.Name) else None
    if not isinstance(model, ast.Name) or found is None or found[0] is not scope:
        return False
    if any(binding.kind == "parameter" for binding in found[1]):
        given = argument(call, function, model.id, bound=scope.owner is not None)
        return given is not None and _is_new(place.value(given), place.turns)
    here = Place(place.project, scope, {}, {}, place.turns)
    values = [binding.node for binding in found[1] if isinstance(binding.node, ast.expr)]
    firsts = [value for value in values if not MODEL.search(text_of(value))] or values
    return bool(values) and all(_is_new(here.value(value), place.turns) for value in firsts)
