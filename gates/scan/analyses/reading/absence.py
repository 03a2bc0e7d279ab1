"""What a condition says is not there: a key of a dictionary, a value that is `None`; and what is loaded from it."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.reading.code import calls, constant, function_of
from gates.scan.analyses.reading.flow import set_before
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import is_none, text_of, walk

MAX_HOPS = 4
TAKES = {"get", "pop"}
READS = {*TAKES, "keys", "items", "values"}
EMPTY = (None, False, 0, "")


def lacking(test: ast.expr, module: Module, *, holds: bool, hops: int = MAX_HOPS) -> set[str]:
    """Return the texts of what is not there where a condition holds, or does not hold."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return lacking(test.operand, module, holds=not holds, hops=hops)
    if isinstance(test, ast.BoolOp):
        is_all = isinstance(test.op, ast.And) is holds
        asked = test.values if is_all else [each for each in test.values if not _is_of_kind(each)]
        parts = [lacking(part, module, holds=holds, hops=hops) for part in asked or test.values]
        return set.union(*parts) if is_all else set.intersection(*parts)
    if isinstance(test, ast.Call) and tail_of(test.func) == "bool" and len(test.args) == 1:
        return lacking(test.args[0], module, holds=holds, hops=hops)
    if isinstance(test, ast.NamedExpr):
        names: set[str] = set() if holds else {text_of(test.target)}
        return names | lacking(test.value, module, holds=holds, hops=hops)
    if isinstance(test, ast.Compare):
        return _compared(test, module, holds=holds, hops=hops)
    behind = _behind(test, module) if hops else None
    found = lacking(behind, module, holds=holds, hops=hops - 1) if behind is not None else set()
    return found if holds else found | _none(test, module)


def _is_of_kind(test: ast.expr) -> bool:
    """Return whether a condition picks things of one kind, of which another one then says what is there."""
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    return isinstance(test, ast.Call) and tail_of(test.func) in {"isinstance", "issubclass"}


def _compared(test: ast.Compare, module: Module, *, holds: bool, hops: int) -> set[str]:
    """Return what `key not in state` and `state.get(key) is None` say is not there."""
    left, op, right = test.left, test.ops[0], test.comparators[0]
    if len(test.ops) > 1:
        return set()
    if isinstance(op, ast.In | ast.NotIn):
        return _spelt(_container(right), left) if isinstance(op, ast.NotIn) is holds else set()
    if is_none(right) and isinstance(op, ast.Is | ast.Eq | ast.IsNot | ast.NotEq):
        return _none(left, module) if isinstance(op, ast.Is | ast.Eq) is holds else set()
    if isinstance(constant(right), bool) and isinstance(op, ast.Is | ast.Eq | ast.IsNot | ast.NotEq):
        is_same = isinstance(op, ast.Is | ast.Eq) is bool(constant(right))
        return lacking(left, module, holds=holds is is_same, hops=hops)
    return set()


def _none(node: ast.expr, module: Module) -> set[str]:
    """Return the texts of an expression that is `None` or empty, and of what it was taken from."""
    if isinstance(node, ast.NamedExpr):
        return {text_of(node.target)} | _none(node.value, module)
    if isinstance(node, ast.Call):
        is_taken = isinstance(node.func, ast.Attribute) and tail_of(node.func) in TAKES and _is_open(node)
        return _spelt(node.func.value, node.args[0]) if is_taken and isinstance(node.func, ast.Attribute) else set()
    if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        return set()
    behind = _behind(node, module)
    return {text_of(node)} | (_none(behind, module) if isinstance(behind, ast.Call) else set())


def _is_open(call: ast.Call) -> bool:
    """Return whether a call for a key has nothing to give where the key is missing."""
    given = call.args[1:2] or [k.value for k in call.keywords]
    is_empty = all((isinstance(g, ast.Constant) and g.value in EMPTY) or _is_bare(g) for g in given)
    return bool(call.args) and is_empty


def _is_bare(node: ast.expr) -> bool:
    """Return whether an expression is an empty dictionary."""
    is_made = isinstance(node, ast.Call) and tail_of(node.func) == "dict" and not (node.args or node.keywords)
    return is_made or (isinstance(node, ast.Dict) and not node.keys)


def _behind(node: ast.expr, module: Module) -> ast.expr | None:
    """Return what a variable was last set to."""
    if not isinstance(node, ast.Name):
        return None
    found = set_before(function_of(node, module) or module.tree, node.id, node.lineno)
    return found[0][0] if len(found) == 1 else None


def _container(node: ast.expr) -> ast.expr:
    """Return what a membership test asks of: of `state.keys()`, `state`."""
    is_keys = isinstance(node, ast.Call) and tail_of(node.func) == "keys" and not node.args
    return node.func.value if is_keys and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else node


def _spelt(container: ast.expr, key: ast.expr) -> set[str]:
    """Return the ways to read what stands under a key."""
    if not isinstance(container, ast.Name | ast.Attribute | ast.Subscript):
        return set()
    held, under = text_of(container), text_of(key)
    return {f"{held}[{under}]", *(f"{held}.{take}({under})" for take in TAKES)}


def loads(branch: list[ast.stmt], absent: set[str]) -> ast.expr | None:
    """Return a state that is loaded and is not there, if nothing before may put it there."""
    roots = {text.partition("[")[0].partition(".get(")[0].partition(".pop(")[0] for text in absent}
    roots |= {root.partition(".")[0] for root in roots}  # a method of an object may set what it holds
    for statement in branch:
        if _is_filled(statement, roots):
            return None
        for call in calls(statement) if not isinstance(statement, ast.Try) else ():
            if (state := _state(call)) is not None and text_of(state) in absent:
                return state
    return None


def _state(call: ast.Call) -> ast.expr | None:
    """Return the state that a call loads: of `x or {}`, and of `saved.get(key, {})`, what that is where it is there."""
    given = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "state_dict")]
    if tail_of(call.func) != "load_state_dict" or not given:
        return None
    state = given[0]
    while isinstance(state, ast.BoolOp) and isinstance(state.op, ast.Or) and all(map(_is_bare, state.values[1:])):
        state = state.values[0]
    is_taken = isinstance(state, ast.Call) and tail_of(state.func) in TAKES and len(state.args) == 2
    if is_taken and isinstance(state, ast.Call) and _is_open(state):
        return ast.Call(state.func, state.args[:1], [])
    return state


def _is_filled(statement: ast.stmt, roots: set[str]) -> bool:
    """Return whether a statement may give a container, or what is in it, a value: sets it, or hands it on whole."""
    return any(text_of(node) in roots for node in _touched(statement))


def _touched(statement: ast.stmt) -> Iterator[ast.expr]:
    for node in walk(statement):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            yield node.value
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            yield node
        elif isinstance(node, ast.Call) and tail_of(node.func) != "load_state_dict":
            yield from (arg for arg in (*node.args, *(k.value for k in node.keywords)))
            if isinstance(node.func, ast.Attribute) and node.func.attr not in READS:
                yield node.func.value
