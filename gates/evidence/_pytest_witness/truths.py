"""Which values are true, or a truth, by the way they are written: `(x == y for x in z)`, `f"{x} is 4"`, `x == y`."""

import ast
from collections.abc import Callable
from collections.abc import Set as AbstractSet

from .bindings import Bindings, Function
from .tolerance import last_name

ITERATORS = frozenset({"enumerate", "filter", "iter", "map", "object", "reversed", "zip"})  # true whatever is in them
GATHERING = frozenset({"frozenset", "list", "set", "sorted", "tuple"})
TRUTHS = frozenset({"all", "any", "bool", "callable", "hasattr", "isinstance", "issubclass"})
LOOKING = GATHERING | ITERATORS | TRUTHS | {"dict", "len", "max", "min", "print", "repr", "str", "sum"}
ASKING = (ast.Assert, ast.BoolOp, ast.Compare, ast.For, ast.FormattedValue, ast.If, ast.UnaryOp, ast.comprehension)
Gathered = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Truths:
    """Reads the values of one module."""

    def __init__(self, bindings: Bindings) -> None:
        self._bindings = bindings
        self._asking: set[ast.AST] = set()

    def is_true(self, node: ast.AST | None) -> bool:
        """Return whether a value is true whatever the values are that it is made of."""
        if isinstance(node, ast.GeneratorExp | ast.Lambda):
            return True
        if isinstance(node, ast.JoinedStr):
            return any(isinstance(part, ast.Constant) and part.value for part in node.values)
        if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
            return _has_parts(node)
        if isinstance(node, Gathered):
            return self._gathers(node)
        if isinstance(node, Function):
            return not node.decorator_list
        if isinstance(node, ast.NamedExpr):
            return self.is_true(node.value)
        if isinstance(node, ast.IfExp):
            return self.is_true(node.body) and self.is_true(node.orelse)
        if isinstance(node, ast.Call):
            return self._answers_true(node)
        return isinstance(node, ast.Name) and self._is_kept(node) and self._is_all(node, self.is_true)

    def is_mistaken(self, node: ast.AST | None) -> bool:
        """Return whether something is written where a condition was meant: what would compare, and is not asked."""
        if isinstance(node, ast.GeneratorExp):
            return True
        if isinstance(node, ast.JoinedStr):
            return self.is_true(node) and any(isinstance(part, ast.FormattedValue) for part in node.values)
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp):
            return _compares(node)
        return isinstance(node, ast.Call) and self._is_builtin(node.func, {"filter", "map", "zip"})

    def is_a_truth(self, node: ast.AST | None) -> bool:
        """Return whether a value can only be true or false: a comparison, a `not`, what asks something."""
        if isinstance(node, ast.Compare):
            return True
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.Not)
        if isinstance(node, ast.BoolOp):
            return all(map(self.is_a_truth, node.values))
        if isinstance(node, ast.Constant):
            return isinstance(node.value, bool)
        if isinstance(node, ast.Call):
            return self._is_builtin(node.func, TRUTHS)
        return isinstance(node, ast.Name) and self._is_all(node, self.is_a_truth)

    def _answers_true(self, call: ast.Call) -> bool:
        if self._is_builtin(call.func, GATHERING) and len(call.args) == 1:
            given = call.args[0]
            return isinstance(given, Gathered) and self._gathers(given)
        return self._is_builtin(call.func, ITERATORS)

    def _gathers(self, node: Gathered) -> bool:
        """Return whether a comprehension makes a truth of each part, or goes through what is written out."""
        if _compares(node):
            return True
        if any(generator.ifs for generator in node.generators):
            return False
        return all(self._is_some(generator.iter) for generator in node.generators)

    def _is_some(self, node: ast.AST | None) -> bool:
        """Return whether what is gone through has parts, as it is written."""
        if isinstance(node, ast.Constant):
            return isinstance(node.value, str | bytes) and bool(node.value)
        if isinstance(node, ast.Name):
            return self._is_kept(node) and self._is_all(node, self._is_some)
        return _has_parts(node)

    def _is_all(self, name: ast.Name, wanted: Callable[[ast.AST], bool]) -> bool:
        """Return whether a name stands for such values only."""
        values = self._bindings.values(name)
        if not values or name in self._asking:
            return False
        self._asking.add(name)
        try:
            return all(isinstance(value, ast.AST) and wanted(value) for value in values)
        finally:
            self._asking.discard(name)

    def _is_kept(self, name: ast.Name) -> bool:
        """Return whether nothing is done to what a name stands for: it is only gone through and looked at."""
        return all(self._only_looks(load) for load in self._bindings.loads(name))

    def _only_looks(self, load: ast.Name) -> bool:
        around = self._bindings.parents[load]
        if isinstance(around, ast.Call):
            return load is around.func or self._is_builtin(around.func, LOOKING) or _is_asserting(around)
        if isinstance(around, ast.Attribute):
            return around.attr in {"items", "keys", "values"}
        if isinstance(around, ast.Subscript):
            return isinstance(around.ctx, ast.Load)
        return isinstance(around, ASKING)

    def _is_builtin(self, func: ast.expr, names: AbstractSet[str]) -> bool:
        return isinstance(func, ast.Name) and func.id in names and self._bindings.values(func) == []


def _compares(node: Gathered) -> bool:
    """Return whether a comprehension makes a truth of each part, and leaves none out."""
    made = node.value if isinstance(node, ast.DictComp) else node.elt
    return isinstance(made, ast.Compare) and not any(generator.ifs for generator in node.generators)


def _has_parts(node: ast.AST | None) -> bool:
    parts = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", ())
    return any(part is not None and not isinstance(part, ast.Starred) for part in parts)


def _is_asserting(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and last_name(call.func).startswith("assert")
