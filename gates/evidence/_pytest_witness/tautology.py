"""Which conditions are true whatever their parts come to: `x == ANY`, `x != nan`, `x in [x]`, `x == 4 or x != 4`."""

import ast
import re
from collections.abc import Set as AbstractSet

from .bindings import Bindings
from .tolerance import last_name
from .truths import Truths

CONTRARY = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq)
DISPLAYS = (ast.List, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.JoinedStr)
NEVER_NONE = frozenset({"bool", "bytes", "float", "frozenset", "id", "int", "len", "list", "object", "repr", "set",
                        "str", "tuple", "type"})  # fmt: skip
MATCHING = frozenset({"match", "search"})
SPECIAL = re.compile(r"\$|\\[AZbB]|\(\?[=!<]|\^")  # what may keep a pattern that fits nothing from fitting all


class Tautologies:
    """Reads the conditions of one module; `traced` are the names of the functions that criteria are traced to."""

    def __init__(self, bindings: Bindings, traced: AbstractSet[str]) -> None:
        self._bindings = bindings
        self._traced = traced
        self.truths = Truths(bindings)

    def is_true(self, test: ast.expr) -> bool:
        """Return whether a condition is true whatever its parts are: `True or f()`, `isinstance(x, object)`."""
        if isinstance(test, ast.Constant):
            return bool(test.value)
        if isinstance(test, ast.BoolOp):
            if isinstance(test.op, ast.And):
                return all(map(self.is_true, test.values))
            return any(map(self.is_true, test.values)) or _has_contraries(test.values)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._is_false(test.operand)
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return self._compares_true(test.left, test.ops[0], test.comparators[0])
        if self.truths.is_true(test):
            return True
        if isinstance(test, ast.Call):
            return self._answers_true(test)
        return self._is_traced(test) or self._is_finished_process(test)

    def _is_false(self, test: ast.expr) -> bool:
        """Return whether a condition is false whatever its parts are."""
        if isinstance(test, ast.Constant):
            return not test.value
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self.is_true(test.operand)
        if isinstance(test, ast.ListComp | ast.SetComp | ast.DictComp):
            return any(_is_empty(generator.iter) for generator in test.generators)
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            contrary = CONTRARY.get(type(test.ops[0]))
            sides = (test.left, test.comparators[0])
            if contrary is not None and self._compares_true(sides[0], contrary(), sides[1]):
                return True
            return isinstance(test.ops[0], ORDERS) and any(map(self._is_nan, sides))
        return False

    def _compares_true(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> bool:
        sides = (left, right)
        if isinstance(operator, ast.GtE | ast.Gt):
            return _is_least(left, right, operator)
        if isinstance(operator, ast.LtE | ast.Lt):
            return _is_least(right, left, ast.GtE() if isinstance(operator, ast.LtE) else ast.Gt())
        if isinstance(operator, ast.Is):
            return _are_one(left, right, operator)
        if isinstance(operator, ast.Eq):
            return self._are_equal(left, right)
        if isinstance(operator, ast.NotEq):
            return any(self._is_nan(side) or _is_call_of(side, {"object"}) for side in sides)
        if isinstance(operator, ast.IsNot):
            if any(isinstance(side, DISPLAYS) or _is_call_of(side, {"object"}) for side in sides):
                return True
            return _is_none(right) and (_is_call_of(left, NEVER_NONE) or self._is_never_none(left))
        return isinstance(operator, ast.In) and self._is_among(left, right)

    def _are_equal(self, left: ast.expr, right: ast.expr) -> bool:
        """Return whether two sides are equal constants, or one of them is equal to everything, part by part."""
        if self._is_any(left) or self._is_any(right) or _are_one(left, right, ast.Eq()):
            return True
        if type(left) is not type(right):
            return False
        if isinstance(left, ast.Dict) and isinstance(right, ast.Dict):
            return _keys(left) == _keys(right) != [] and all(map(self._are_equal, left.values, right.values))
        if isinstance(left, ast.List | ast.Tuple) and isinstance(right, ast.List | ast.Tuple):
            return len(left.elts) == len(right.elts) > 0 and all(map(self._are_equal, left.elts, right.elts))
        return False

    def _is_among(self, left: ast.expr, right: ast.expr) -> bool:
        """Return whether something is looked for where it has just been put, or a truth among both truths."""
        parts = right.elts if isinstance(right, ast.List | ast.Tuple | ast.Set) else []
        parts = [key for key in right.keys if key is not None] if isinstance(right, ast.Dict) else parts
        if self.truths.is_a_truth(left):
            return {part.value for part in parts if isinstance(part, ast.Constant)} >= {True, False}
        return isinstance(left, ast.Name) and any(ast.dump(part) == ast.dump(left) for part in parts)

    def _answers_true(self, call: ast.Call) -> bool:
        name, given = last_name(call.func), call.args
        if isinstance(call.func, ast.Attribute):
            return self._is_of(call.func, {"re"}) and name in MATCHING and bool(given) and _fits_all(given[0])
        if name == "isinstance" and len(given) == 2:
            kinds = given[1].elts if isinstance(given[1], ast.Tuple) else [given[1]]
            wide = {"object", "bool", "int"} if self.truths.is_a_truth(given[0]) else {"object"}
            return any(isinstance(kind, ast.Name) and kind.id in wide for kind in kinds)
        if name == "callable" and len(given) == 1:
            return self._is_traced(given[0])
        if name == "hasattr" and len(given) == 2:
            return isinstance(given[1], ast.Constant) and given[1].value in self._traced and self._is_imported(given[0])
        if name == "all" and len(given) == 1 and isinstance(given[0], ast.GeneratorExp | ast.ListComp):
            return any(_is_empty(generator.iter) for generator in given[0].generators)
        return False

    def _is_traced(self, node: ast.expr) -> bool:
        """Return whether an expression only names a function that a criterion is traced to: `double`, `core.double`."""
        if last_name(node) not in self._traced:
            return False
        return self._is_imported(node.value if isinstance(node, ast.Attribute) else node)

    def _is_imported(self, node: ast.expr) -> bool:
        values = self._bindings.values(node) if isinstance(node, ast.Name) else None
        return bool(values) and all(isinstance(value, ast.Import | ast.ImportFrom) for value in values or ())

    def _is_never_none(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Attribute) and node.attr == "returncode":
            return self._is_finished_process(node.value)
        if self._is_traced(node) or self._is_finished_process(node):
            return True
        return self.truths.is_true(node) or self.truths.is_a_truth(node)

    def _is_finished_process(self, node: ast.expr) -> bool:
        """Return whether a name stands for what `subprocess.run` returned, however the process ended."""
        values = self._bindings.values(node) if isinstance(node, ast.Name) else None
        calls = [value.func for value in values or () if isinstance(value, ast.Call)]
        return bool(calls) and len(calls) == len(values or ()) and all(
            isinstance(func, ast.Attribute) and func.attr == "run" and self._is_of(func, {"subprocess"})
            for func in calls
        )  # fmt: skip

    def _is_of(self, func: ast.Attribute, modules: AbstractSet[str]) -> bool:
        """Return whether an attribute is one of a module that is imported by its own name."""
        return isinstance(func.value, ast.Name) and func.value.id in modules and self._is_imported(func.value)

    def _is_any(self, node: ast.expr) -> bool:
        """Return whether something is `ANY` of `unittest.mock`, which is equal to everything."""
        if last_name(node) != "ANY":
            return False
        root = node.value if isinstance(node, ast.Attribute) else node
        if isinstance(root, ast.Attribute):
            return ast.unparse(root) == "unittest.mock"
        values = self._bindings.values(root) if isinstance(root, ast.Name) else None
        return bool(values) and all(
            any("mock" in name for name in _imported(value)) for value in values or () if isinstance(value, ast.AST)
        )

    def _is_nan(self, node: ast.expr) -> bool:
        """Return whether something is not a number, which is neither equal to, less nor more than anything."""
        if _is_call_of(node, {"float"}) and isinstance(node, ast.Call) and len(node.args) == 1:
            text = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
            return isinstance(text, str) and text.strip().lower().lstrip("+-") == "nan"
        return isinstance(node, ast.Attribute) and node.attr == "nan" and self._is_of(node, {"math", "np", "numpy"})


def _imported(statement: ast.AST) -> list[str]:
    if isinstance(statement, ast.ImportFrom):
        return [f"{statement.module}.{alias.name}" for alias in statement.names]
    return [alias.name for alias in statement.names] if isinstance(statement, ast.Import) else []


def _has_contraries(parts: list[ast.expr]) -> bool:
    """Return whether of several conditions two are the contrary of each other, on what does not change meanwhile."""
    if any(isinstance(node, ast.Call | ast.Await | ast.NamedExpr) for part in parts for node in ast.walk(part)):
        return False
    told = {ast.dump(part) for part in parts}
    return any(ast.dump(contrary) in told for part in parts for contrary in _contraries(part))


def _contraries(part: ast.expr) -> list[ast.expr]:
    found: list[ast.expr] = [part.operand] if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not) else []
    if isinstance(part, ast.Compare) and len(part.ops) == 1 and type(part.ops[0]) in CONTRARY:
        found.append(ast.Compare(part.left, [CONTRARY[type(part.ops[0])]()], part.comparators))
    return found


def _are_one(left: ast.expr, right: ast.expr, operator: ast.cmpop) -> bool:
    """Return whether two sides are equal constants, or the same object; that may compare with itself as it likes."""
    if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
        return bool(left.value == right.value)
    return isinstance(operator, ast.Is) and isinstance(left, ast.Name) and ast.dump(left) == ast.dump(right)


def _is_least(length: ast.expr, least: ast.expr, operator: ast.cmpop) -> bool:
    """Return whether a length is compared with what no length is less than."""
    least = least.operand if (below := isinstance(least, ast.UnaryOp) and isinstance(least.op, ast.USub)) else least
    number = least.value if isinstance(least, ast.Constant) else None
    if not _is_call_of(length, {"len"}) or not isinstance(number, int):
        return False
    return (number == 0 and isinstance(operator, ast.GtE)) or (below and number > 0)


def _keys(node: ast.Dict) -> list[object]:
    """Return the keys of a dict that are all written out; none where they are not."""
    keys: list[object] = [key.value for key in node.keys if isinstance(key, ast.Constant)]
    return keys if len(keys) == len(node.keys) else []


def _is_empty(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return last_name(node.func) in {"list", "tuple", "set", "dict"} and not node.args and not node.keywords
    return not getattr(node, "elts", getattr(node, "keys", [node]))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_call_of(node: ast.expr, names: AbstractSet[str]) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def _fits_all(pattern: ast.expr) -> bool:
    """Return whether a regular expression is found in any text whatever."""
    text = pattern.value if isinstance(pattern, ast.Constant) else None
    if not isinstance(text, str) or SPECIAL.search(text):
        return False
    try:
        return re.match(text, "") is not None
    except re.error:
        return False
