"""What a test asserts, and whether one assertion asks for less than another."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from gates.evidence._goalposts.plain import plain
from gates.evidence._goalposts.tolerances import is_wider, last, number
from gates.evidence._pytest_witness.settled import Settled

STRICTNESS: dict[type[ast.cmpop], int] = {
    ast.Eq: 4, ast.Is: 4, ast.Lt: 3, ast.Gt: 3, ast.LtE: 2, ast.GtE: 2,
    ast.In: 1, ast.NotEq: 1, ast.IsNot: 1, ast.NotIn: 1,
}  # fmt: skip
ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
BROADEST = {"Exception", "BaseException"}
PART = "a part of it is looked at no more"
EXACT = {"equal", "array_equal", "array_equiv", "assert_array_equal", "assert_equal"}
CLOSE = {"allclose", "isclose", "assert_allclose", "assert_close", "assert_almost_equal", "assert_array_almost_equal"}
REDUCES = {"len", "set", "frozenset", "sorted", "type", "bool", "isinstance", "sum", "min", "max", "int", "abs"}
FACETS = {"shape", "dtype", "ndim", "device", "size", "__class__"}
PARTLY = {"startswith", "endswith", "keys"}
RAISES = {"assertRaises", "assertRaisesRegex", "assertWarns", "assertWarnsRegex"}
CALLED = ("assert_called", "assert_called_once", "assert_any_call", "assert_called_with", "assert_called_once_with")
MATCHES_ALL = {"", ".", ".*", ".+", "^", "$", "(?s).*", "[\\s\\S]*"}


@dataclass(frozen=True)
class Assertion:
    """One live assertion of a test: its text with constants filled in, its line, and the conditions around it."""

    text: str
    line: int
    guards: tuple[str, ...] = ()
    node: ast.expr | None = field(default=None, compare=False)

    @property
    def subject(self) -> str:
        """Return what it speaks of: the left side of a comparison, a call with its first argument."""
        return _subject(plain(self.tree))

    @property
    def tree(self) -> ast.expr:
        """Return the expression that must hold."""
        return self.node or ast.parse(self.text, mode="eval").body


def written(node: ast.AST) -> str:
    """Return a tree as source; the few that Python cannot write itself as a dump, which tells them apart as well."""
    try:
        return ast.unparse(node)
    except (ValueError, RecursionError):
        return ast.dump(node)


def weaker(before: Assertion, after: Assertion) -> str:
    """Return in words how the second assertion asks for less than the first, or nothing where it does not."""
    old, new = plain(before.tree), plain(after.tree)
    if always_holds(new) and not always_holds(old):
        return "always holds"
    if isinstance(new, ast.BoolOp) and isinstance(new.op, ast.Or) and _is_part(old, new):
        return "another way to hold was added"
    if isinstance(old, ast.BoolOp) and isinstance(old.op, ast.And) and _is_part(new, old):
        return "a part of it was dropped"
    if isinstance(new, ast.IfExp) and ast.dump(plain(new.body)) == ast.dump(old) and always_holds(new.orelse):
        return "another way to hold was added"
    if _is_of_a_part(old, new) or _is_reduced(old, new):
        return PART
    if _is_near(old, new):
        return "a tolerance was added"
    if _has_any(new) and not _has_any(old) and _subject(old) == _subject(new):
        return "anything fits there"
    if _subject(old) != _subject(new):
        return ""
    return _looser_comparison(old, new) or _looser_call(old, new)


def always_holds(test: ast.expr) -> bool:
    """Return whether an expression is true whatever the code does: it is settled, or a thing compared with itself."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        same = ast.dump(test.left) == ast.dump(test.comparators[0])
        if same and isinstance(test.ops[0], ast.Eq | ast.Is | ast.LtE | ast.GtE):
            return True
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return any(map(always_holds, test.values))
    statement = ast.Assert(test)
    return Settled(ast.Module([statement], [])).holds(statement)


def _is_of_a_part(old: ast.expr, new: ast.expr) -> bool:
    """Return whether a comparison speaks of one item of what another speaks of, or of fewer of its items."""
    if not (isinstance(old, ast.Compare) and isinstance(new, ast.Compare)) or type(old.ops[0]) is not type(new.ops[0]):
        return False
    was, now = old.left, new.left
    if isinstance(now, ast.Subscript) and ast.dump(now.value) == ast.dump(was):
        return True
    if not isinstance(was, ast.List | ast.Tuple | ast.Set) or type(was) is not type(now):
        return False
    items, left = ([ast.dump(item) for item in side.elts] for side in (was, now))
    return len(left) < len(items) and all(item in items for item in left)


def _is_reduced(old: ast.expr, new: ast.expr) -> bool:
    """Return whether of what was equal to something only the length, the kind, the shape or a part is looked at now."""
    whole = _whole(old)
    if whole is None:
        return False
    sides = [new.left, *new.comparators] if isinstance(new, ast.Compare) else [new]
    if isinstance(new, ast.Compare) and isinstance(new.ops[0], ast.In) and ast.dump(sides[1]) == whole:
        return True
    first = sides[0]
    if isinstance(first, ast.Call) and isinstance(first.func, ast.Attribute) and first.func.attr in PARTLY:
        return ast.dump(first.func.value) == whole
    if isinstance(first, ast.Attribute):
        return first.attr in FACETS and ast.dump(first.value) == whole
    named = isinstance(first, ast.Call) and isinstance(first.func, ast.Name) and first.func.id in REDUCES
    return named and isinstance(first, ast.Call) and [*map(ast.dump, first.args[:1])] == [whole]


def _whole(test: ast.expr) -> str | None:
    """Return what an assertion holds equal to something, all of it; `None` where it asks for something else."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq):
        return ast.dump(test.left)
    return ast.dump(test.args[0]) if isinstance(test, ast.Call) and last(test) in EXACT | CLOSE and test.args else None


def _has_any(test: ast.expr) -> bool:
    """Return whether something in an expression is equal to everything."""
    names = (getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(test))
    return "ANY" in names


def _is_near(old: ast.expr, new: ast.expr) -> bool:
    """Return whether what was equal to something may be off now: `abs(y - 4) < 0.1`, `isclose(y, 4)`."""
    if not isinstance(old, ast.Compare) or not isinstance(old.ops[0], ast.Eq):
        return False
    call = new.left if isinstance(new, ast.Compare) and isinstance(new.ops[0], ast.Lt | ast.LtE) else new
    if not isinstance(call, ast.Call) or not call.args:
        return False
    given = call.args[0]
    if last(call) == "abs" and isinstance(given, ast.BinOp) and isinstance(given.op, ast.Sub):
        return ast.dump(old.left) in {ast.dump(given.left), ast.dump(given.right)}
    return last(call) in CLOSE and ast.dump(given) == ast.dump(old.left)


def _is_part(one: ast.expr, whole: ast.BoolOp) -> bool:
    parts = {ast.dump(value) for value in whole.values}
    inner = one.values if isinstance(one, ast.BoolOp) and type(one.op) is type(whole.op) else [one]
    return {ast.dump(value) for value in inner} < parts


def _looser_comparison(old: ast.expr, new: ast.expr) -> str:
    """Compare operator, limit and tolerance of two comparisons of one subject."""
    if not isinstance(old, ast.Compare):
        return ""
    if not isinstance(new, ast.Compare):
        return "compares no more" if ast.dump(new) == ast.dump(old.left) else ""
    was, now = type(old.ops[-1]), type(new.ops[-1])
    left, right = old.comparators[-1], new.comparators[-1]
    if was is now and (last(new.left), last(old.left)) != ("", ""):
        rounded = last(new.left) == "round" and last(old.left) != "round"
        if rounded or is_wider(old.left, new.left):
            return "a tolerance was added" if rounded else "a wider tolerance"
    if STRICTNESS.get(now, 0) < STRICTNESS.get(was, 0):
        return "a weaker comparison"
    if was is now and was in ORDERED:
        one, other = number(left), number(right)
        raised = one is not None and other is not None and one != other and (other > one) == (was in {ast.Lt, ast.LtE})
        return "a wider limit" if raised else ""
    if isinstance(left, ast.Call) or isinstance(right, ast.Call):
        return _looser_call(left, right)
    return ""


def _looser_call(old: ast.expr, new: ast.expr) -> str:
    """Compare tolerances and expected exceptions of two calls, wherever they stand in an expression."""
    if is_wider(old, new):
        return "a wider tolerance"
    called = {last(call) for call in ast.walk(old) if isinstance(call, ast.Call)}
    if isinstance(old, ast.Call) and last(new) == "approx" and "approx" not in called:
        return "a wider tolerance"
    if last(new) == "approx" and not isinstance(old, ast.Call):
        return "a tolerance was added"
    if last(old) in CALLED and isinstance(new, ast.Attribute):
        return "less of the call is looked at"
    if not isinstance(old, ast.Call) or not isinstance(new, ast.Call):
        return ""
    if last(old) in EXACT and last(new) in CLOSE:
        return "a tolerance was added"
    if (last(old), last(new)) == ("all", "any"):
        return "one of them is enough"
    if last(old) in CALLED and last(new) in CALLED and CALLED.index(last(new)) < CALLED.index(last(old)):
        return "less of the call is looked at"
    if last(old) == last(new) in {"raises", "warns", *RAISES}:
        return _looser_exception(old, new)
    return ""


def _looser_exception(old: ast.Call, new: ast.Call) -> str:
    one, other = ({written(arg) for arg in _exceptions(call)} for call in (old, new))
    if one != other and (other & BROADEST or one < other):
        return "a broader exception"
    names = [{keyword.arg for keyword in call.keywords} for call in (old, new)]
    if "match" in names[0] - names[1]:
        return "the message is not looked at any more"
    was, now = (next((k.value for k in call.keywords if k.arg == "match"), None) for call in (old, new))
    return "less of the message is looked at" if _matches_more(was, now) else ""


def _matches_more(was: ast.expr | None, now: ast.expr | None) -> bool:
    """Return whether a pattern is a part of the other, or one that matches everything."""
    if not isinstance(now, ast.Constant) or was is None:
        return False
    old, new = was.value if isinstance(was, ast.Constant) else None, str(now.value)
    return old != now.value and (new in MATCHES_ALL or (isinstance(old, str) and new in old)) and old not in MATCHES_ALL


def _exceptions(call: ast.Call) -> list[ast.expr]:
    first = call.args[0] if call.args else None
    return [*first.elts] if isinstance(first, ast.Tuple) else [first] if first else []


def _subject(test: ast.expr) -> str:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _subject(test.operand)
    if isinstance(test, ast.Compare):
        return _subject(test.left) if last(test.left) == "round" else written(test.left)
    if isinstance(test, ast.Call) and last(test) == "round" and test.args:
        return written(test.args[0])
    if isinstance(test, ast.Attribute) and test.attr == "called":
        return f"{written(test.value)} called"
    if isinstance(test, ast.Call) and last(test) in {"raises", "warns", *RAISES}:
        return last(test)
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and last(test) in {*CALLED, "all", "any"}:
        return f"{written(test.func.value)} {'called' if last(test) in CALLED else 'items'}"
    if isinstance(test, ast.Call) and last(test) in {"all", "any"} and test.args:
        return f"{written(test.args[0])} items"
    if isinstance(test, ast.Call) and last(test) in EXACT | CLOSE and test.args:
        return f"{written(test.args[0])} like"
    if isinstance(test, ast.Call) and last(test).lstrip("_").startswith("assert"):
        return f"{written(test.func)} {written(test.args[0]) if test.args else ''}"
    return written(test)


class Filled(ast.NodeTransformer):
    """Puts constant numbers in the place of their names, those that a module has or imports."""

    def __init__(self, constants: Mapping[str, ast.expr]) -> None:
        self._constants = constants

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Return the number that a name stands for."""
        return self._constants.get(node.id, node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Return the number that a name of an imported module stands for."""
        return self._constants.get(written(node)) or self.generic_visit(node)


def constants_of(module: ast.Module) -> dict[str, ast.expr]:
    """Return the names that a module gives a number to, once."""
    found: dict[str, list[ast.expr]] = {}
    for node in module.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
                found.setdefault(target.id, []).append(node.value)
    return {name: values[0] for name, values in found.items() if len(values) == 1 and number(values[0]) is not None}
