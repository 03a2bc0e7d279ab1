"""Whether conditions hold in the worlds that a program may be run in: on an accelerator that has all it is asked."""

import ast
import re
from collections.abc import Iterable

from gates.scan.analyses.reading.code import constant
from gates.scan.analyses.settings.worlds import FALSY, OFF, Asking, Atom, Known, Thing, Truths, Value, World, few_truths
from gates.scan.program.module import tail_of
from gates.scan.program.scope import Scope

ON_DEVICE = re.compile(r"(?i)(^|_)(cuda|gpu)$|^is_available$")
SUPPORTED = re.compile(
    r"(?i)(bf16|bfloat16)_?(is_)?(available|supported|support|ok)$|^(supports?|has)_(bf16|bfloat16)$"
)
SPELLS = {"startswith": str.startswith, "endswith": str.endswith}
DEVICES = {"cuda": True, "gpu": True, "cpu": False, "mps": False, "xpu": False}
EQUAL, DIFFERENT = (ast.Eq, ast.Is, ast.In), (ast.NotEq, ast.IsNot, ast.NotIn)


def truths_of(ask: Asking, node: ast.expr, scope: Scope, world: World) -> Truths:
    """Return whether a condition holds, with the worlds in which it does and does not."""
    on = of_device(node)
    if on is not None:
        return [(on, world)]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return turned(ask.truths(node.operand, scope, world), turn=True)
    if isinstance(node, ast.BoolOp):
        return joined(ask, node.values, scope, world, ending=isinstance(node.op, ast.Or))
    if isinstance(node, ast.Compare):
        return _compared(ask, node, scope, world)
    if isinstance(node, ast.IfExp):
        chosen = sides(ask, node, scope, world)
        return few_truths(found for side, where in chosen for found in ask.truths(side, scope, where))
    if isinstance(node, ast.Call) and node.args:
        if isinstance(node.func, ast.Name) and node.func.id == "bool":
            return ask.truths(node.args[0], scope, world)
        if isinstance(node.func, ast.Attribute) and node.func.attr in SPELLS:
            return _spelt(ask, node, node.func, scope, world)
    return few_truths(pair for value, where in ask.values(node, scope, world) for pair in as_truth(value, where))


def _spelt(ask: Asking, node: ast.Call, func: ast.Attribute, scope: Scope, world: World) -> Truths:
    """Return whether a text begins or ends with another: a setting that does may be nothing more than that."""
    wanted = constant(node.args[0])
    if not isinstance(wanted, str):
        return [(None, world)]
    found: Truths = []
    for value, where in ask.values(func.value, scope, world):
        told = value.value if isinstance(value, Known) else None
        told = where.settled.get(value.name) if isinstance(value, Atom) else told
        if isinstance(told, str):
            found.append((SPELLS[func.attr](told, wanted), where))
        elif isinstance(value, Atom) and told is None:
            found += [(True, where.where(value, wanted)), (False, where.without(value, wanted))]
        else:
            found.append((None, where))
    return few_truths(found)


def of_device(node: ast.expr) -> bool | None:
    """Return what a condition on the device is on an accelerator; `None` for another one."""
    if isinstance(node, ast.Name | ast.Attribute | ast.Call):
        func = node.func if isinstance(node, ast.Call) else node
        if isinstance(node, ast.Call) and tail_of(func) == "startswith" and node.args:
            return DEVICES.get(str(constant(node.args[0])))
        return True if ON_DEVICE.search(tail_of(func)) else None
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    right = node.comparators[0]
    named = right.elts if isinstance(right, ast.Tuple | ast.List | ast.Set) else [right]
    known = {DEVICES.get(str(constant(each))) for each in named if isinstance(constant(each), str)}
    if not known or None in known or not isinstance(node.ops[0], (*EQUAL, *DIFFERENT)):
        return None
    return (True in known) is isinstance(node.ops[0], EQUAL)


def sides(ask: Asking, node: ast.IfExp, scope: Scope, world: World) -> list[tuple[ast.expr, World]]:
    """Return the sides of a choice that may be taken, each with the world in which it is."""
    found: list[tuple[ast.expr, World]] = []
    for truth, where in ask.truths(node.test, scope, world):
        found += [(node.body, where)] if truth is not False else []
        found += [(node.orelse, where)] if truth is not True else []
    return found


def turned(found: Truths, *, turn: bool) -> Truths:
    """Return truths, the other way round where they are asked to be."""
    return [(truth if truth is None else truth is not turn, world) for truth, world in found]


def joined(ask: Asking, parts: Iterable[ast.expr], scope: Scope, world: World, *, ending: bool) -> Truths:
    """Return whether one of several conditions holds, or all of them: the first that is `ending` ends it."""
    open_: Truths = [(not ending, world)]
    ended: Truths = []
    for part in parts:
        following: Truths = []
        for before, where in open_:
            for truth, there in ask.truths(part, scope, where):
                if truth is ending:
                    ended.append((ending, there))
                else:
                    following.append((None if None in {truth, before} else not ending, there))
        open_ = few_truths(following)
    return few_truths([*ended, *open_])


def as_truth(value: Value, world: World) -> Truths:
    """Return whether something counts as true."""
    if isinstance(value, Known):
        return [(value.value not in OFF, world)]
    if isinstance(value, Thing):
        return [(True, world)]
    if value is None:
        return [(None, world)]
    if value.name in world.settled:
        return [(world.settled[value.name] not in OFF, world)]
    if FALSY.value in world.ruled_out.get(value.name, ()):
        return [(True, world)]
    return [(True, world.without(value, FALSY.value)), (False, world.where(value, FALSY.value))]


def _compared(ask: Asking, node: ast.Compare, scope: Scope, world: World) -> Truths:
    if len(node.ops) != 1 or not isinstance(node.ops[0], (*EQUAL, *DIFFERENT)):
        return [(None, world)]
    found: Truths = []
    for left, where in ask.values(node.left, scope, world):
        if isinstance(node.ops[0], ast.In | ast.NotIn):
            found += _contained(ask, left, node.comparators[0], scope, where)
            continue
        for right, there in ask.values(node.comparators[0], scope, where):
            found += same(left, right, there)
    return few_truths(turned(found, turn=isinstance(node.ops[0], DIFFERENT)))


def same(left: Value, right: Value, world: World) -> Truths:
    """Return whether two things are the same, with the worlds in which they are and are not."""
    if isinstance(right, Atom) and not isinstance(left, Atom):
        left, right = right, left
    if isinstance(left, Known) and isinstance(right, Known):
        return [(left.value == right.value, world)]
    if isinstance(left, Atom) and isinstance(right, Known):
        told = world.is_same(left, right.value)
        if told is not None:
            return [(told, world)]
        return [(True, world.where(left, right.value)), (False, world.without(left, right.value))]
    is_nothing = Known(None) in (left, right) and (isinstance(left, Thing) or isinstance(right, Thing))
    return [(False if is_nothing else None, world)]


def _within(part: str, held: Known | Atom, world: World) -> Truths:
    """Return whether a text is a part of another: a setting that has it may be nothing more than that."""
    told = held.value if isinstance(held, Known) else world.settled.get(held.name)
    if isinstance(told, str) or isinstance(held, Known):
        return [(part in told if isinstance(told, str) else None, world)]
    return same(held, Known(part), world)


def _contained(ask: Asking, left: Value, node: ast.expr, scope: Scope, world: World) -> Truths:
    """Return whether something is one of what a container has that is written out."""
    found: Truths = []
    for held, where in ask.values(node, scope, world):
        if isinstance(left, Known) and isinstance(left.value, str) and isinstance(held, Known | Atom):
            found += _within(left.value, held, where)
            continue
        if not isinstance(held, Thing) or not isinstance(held.node, ast.Tuple | ast.List | ast.Set | ast.Dict):
            found.append((None, where))
            continue
        parts = held.node.keys if isinstance(held.node, ast.Dict) else held.node.elts
        open_ = [where]
        for part in parts:
            options = [(v, w) for w in open_ for v, w in (ask.values(part, held.scope, w) if part else [(None, w)])]
            pairs = [pair for value, there in options for pair in same(left, value, there)]
            found += [pair for pair in pairs if pair[0] is not False]
            open_ = [there for truth, there in pairs if truth is False]
        found += [(False, there) for there in open_]
    return few_truths(found)
