"""What code keeps beyond a step: what it adds to a list, a mapping or a sum, as it is."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.reading.code import Loop, class_of, loop_of
from gates.scan.analyses.training.graphs import CUT, carried
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of

ADDS = {"append", "add", "appendleft", "extend", "add_"}
JOINS = {"cat", "concat", "hstack"}
COUNTER = re.compile(r"(?i)step|iter|^it$|^i$|^idx$|batch")
OWN = re.compile(r"(?i)loss|pred|logit|outputs?$|^outs?$|tensor|grad|embed|feature|recon|^kl$|^nll$")
COLLECTS = re.compile(
    r"(?i)histor|meter|track|record|logger|log$|logs$|averag|mean$|stats|statistic|metric|collect|monitor|running|"
    r"aggregat|accumulat|buffer|journal|curve|scalars|store$|window"
)
TENSORS = re.compile(r"\btorch\.|\.(item|float|detach|to|cpu|tolist)\(")
Kept = tuple[ast.AST, ast.Name, ast.expr]  # where something is kept, by what name, and in what
MINDS = re.compile(r"no_grad|inference_mode|detach|requires_grad|set_grad_enabled")


def is_of_caller(call: ast.Call, there: Module, kept: Kept, keeper: Function, module: Module) -> bool:
    """Return whether the one call that hands over a graph should have cut it off, and not what keeps it.

    So it is where a history of another file stores whatever it is handed, and has nothing to do with gradients, and
    where the call cuts off others that it hands over. What sums its values up knows that they are numbers.
    """
    owner = class_of(keeper, module)
    if not _is_general(keeper, owner, kept):
        return False
    values = [*call.args, *(more.value for more in call.keywords)]
    if any(isinstance(value, ast.Call) and tail_of(value.func) in CUT for value in values):
        return True
    if owner is None or there is module or _sums_up(kept[0]):
        return False
    return COLLECTS.search(owner.name) is not None and MINDS.search(text_of(owner)) is None


def adds_tensors(keeper: Function, module: Module, node: ast.AST) -> bool:
    """Return whether what sums values up is made for tensors, and not for the numbers that callers may read first."""
    owner = class_of(keeper, module)
    return _sums_up(node) and TENSORS.search(text_of(owner if owner is not None else keeper)) is not None


def _sums_up(node: ast.AST) -> bool:
    """Return whether code adds a value to a sum, and not to a list: `total += loss`, not `rows += [loss]`."""
    if not isinstance(node, ast.Assign | ast.AugAssign):
        return isinstance(node, ast.Call) and tail_of(node.func) == "add_"
    ways = (node.value.body, node.value.orelse) if isinstance(node.value, ast.IfExp) else (node.value,)
    sums = [part for way in ways if isinstance(way, ast.BinOp) for part in (way.left, way.right)]
    terms = [*sums, *(ways if isinstance(node, ast.AugAssign) else ())]
    return bool(terms) and not any(isinstance(term, ast.List | ast.Tuple | ast.Dict) for term in terms)


def _is_general(keeper: Function, owner: ast.ClassDef | None, kept: Kept) -> bool:
    """Return whether a function keeps whatever it is handed: nothing in it is called what has a graph."""
    arguments = keeper.args
    given = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
    texts = [keeper.name, kept[1].id, text_of(kept[2]), *(arg.arg for arg in given if arg is not None)]
    return not any(OWN.search(text) for text in [*texts, owner.name if owner is not None else ""])


def is_reset(name: str, statement: ast.stmt | None, loop: Loop, module: Module) -> bool:
    """Return whether each turn of a loop sets a name anew; what is set only now and then holds many steps."""
    for other in inner(loop, ast.Assign):
        if not isinstance(other, ast.Assign) or other is statement:
            continue
        targets = [t for t in other.targets if isinstance(t, ast.Name) and t.id == name]
        is_anew = any(not _holds_on(target, other.value) for target in targets)
        if is_anew and not (statement is not None and _is_now_and_then(other, statement, loop, module)):
            return True
    return False


def _holds_on(target: ast.Name, value: ast.expr) -> bool:
    """Return whether an assignment may leave what its target held before, or adds to it."""
    is_choice = isinstance(value, ast.IfExp) and any(_is_before(v, target) for v in (value.body, value.orelse))
    return is_choice or any(True for _ in _assigned(target, value))


def _is_now_and_then(node: ast.stmt, statement: ast.stmt, loop: Loop, module: Module) -> bool:
    """Return whether a statement of a loop is left out in turns in which another one runs."""
    around: list[ast.AST] = [statement, *module.ancestors(statement)]
    tests = {text_of(a.test) for a in around if isinstance(a, ast.If)}
    below: ast.AST = node
    for above in module.ancestors(node):
        if above is loop:
            break
        if isinstance(above, ast.If):
            is_shared = above in around and (below in above.orelse) is any(a in above.orelse for a in around)
            if not is_shared and (above in around or text_of(above.test) not in tests):
                return True
        below = above
    leaving = (n for n in inner(loop, ast.Continue) if loop_of(n, module) is loop)
    return any(statement.lineno < n.lineno < node.lineno for n in leaving if isinstance(n, ast.Continue))


def kept_in(body: ast.AST) -> Iterator[tuple[ast.AST, ast.expr, ast.expr]]:
    """Yield where a body adds something to something: the node, what is added as it is, and to what."""
    for node in inner(body, ast.Call, ast.Assign, ast.AugAssign):
        for value, into in _kept(node):
            for part in carried(value):
                yield node, part, into


def _kept(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what a node adds to something, and to what."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ADDS and node.args:
            into = node.func.value
            is_made = isinstance(into, ast.Call) and tail_of(into.func) == "setdefault"
            if len(node.args) == 1 and (node.func.attr != "extend" or isinstance(node.args[0], ast.List | ast.Tuple)):
                yield node.args[0], into.func.value if is_made else into  # type: ignore[attr-defined]  # a method
    elif isinstance(node, ast.AugAssign):
        if isinstance(node.op, ast.Add):
            yield node.value, node.target
    elif isinstance(node, ast.Assign) and len(node.targets) == 1:
        yield from _assigned(node.targets[0], node.value)


def _assigned(target: ast.expr, given: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what an assignment adds to what its target held before, or keeps under the number of a step."""
    if isinstance(given, ast.Call) and tail_of(given.func) in JOINS and given.args:
        joined = given.args[0].elts if isinstance(given.args[0], ast.List | ast.Tuple) else []
        before = [part for part in joined if _is_before(part, target)]
        yield from ((part, target) for part in joined if before and part not in before)
    for value in (given.body, given.orelse) if isinstance(given, ast.IfExp) else (given,):
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
            sides = (value.left, value.right)
            yield from [(other, target) for one, other in (sides, sides[::-1]) if _is_before(one, target)][:1]
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Name) and COUNTER.search(target.slice.id):
        yield given, target.value


def _is_before(value: ast.expr, target: ast.expr) -> bool:
    """Return whether a value is what a target held before: `total`, `sums.get(key, 0)` of `sums[key]`."""
    if isinstance(value, ast.Call) and tail_of(value.func) == "get" and isinstance(target, ast.Subscript):
        return text_of(value.func) == f"{text_of(target.value)}.get"
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):  # what a running mean keeps
        return text_of(target) in {text_of(value.left), text_of(value.right)}
    return text_of(value) == text_of(target)
