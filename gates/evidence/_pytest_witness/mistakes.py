"""Which statements look like assertions and ask nothing: `assert f(x), 6`, `assert f(x) == 6 or 9`, `raises(E)`."""

import ast
from collections.abc import Mapping, Sequence

from .asserting import asserts
from .bindings import Bindings
from .swallowing import TELLING
from .tolerance import last_name
from .truths import Truths

# how many arguments each may have and still do nothing but make what a `with` statement would enter
CONTEXTS = {
    "raises": 1, "warns": 1, "deprecated_call": 0, "assertRaises": 1, "assertWarns": 1, "assertRaisesRegex": 2,
    "assertWarnsRegex": 2, "assertLogs": 2, "assertNoLogs": 2,
}  # fmt: skip
QUIET = TELLING | {"getattr", "isinstance", "len", "repr", "sorted", "str", "type"}


class Mistakes:
    """Reads the statements of one module; `methods` are the functions of its classes, by name."""

    def __init__(self, bindings: Bindings, methods: Mapping[str, Sequence[ast.FunctionDef]], truths: Truths) -> None:
        self._bindings = bindings
        self._methods = methods
        self._truths = truths

    def is_one(self, statement: ast.AST) -> bool:
        """Return whether a statement would ask something of the code, had it been written another way."""
        if isinstance(statement, ast.Assert):
            return self._is_beside_the_point(statement) or _has_truth_for_a_part(statement.test)
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call):
            return False
        if last_name(call.func) in {"assertTrue", "assert_"} and call.args and _has_truth_for_a_part(call.args[0]):
            return True
        return self._is_dropped_context(call) or self._cannot_fail(call)

    def _is_beside_the_point(self, statement: ast.Assert) -> bool:
        """Return whether the message is what the value should be: no message is a number."""
        given = statement.msg
        number = given.operand if isinstance(given, ast.UnaryOp) else given
        if not isinstance(number, ast.Constant) or not isinstance(number.value, int | float | complex | bytes):
            return False
        return isinstance(statement.test, ast.Call) and not self._truths.is_a_truth(statement.test)

    def _is_dropped_context(self, call: ast.Call) -> bool:
        """Return whether a call only makes a context, and nothing is run in it."""
        most = CONTEXTS.get(last_name(call.func))
        starred = any(isinstance(argument, ast.Starred) for argument in call.args)
        if most is None or starred or len(call.args) > most or any(word.arg is None for word in call.keywords):
            return False
        if isinstance(call.func, ast.Attribute):
            return isinstance(call.func.value, ast.Name) and call.func.value.id in {"pytest", "self"}
        values = self._bindings.values(call.func) if isinstance(call.func, ast.Name) else None
        imported = [value.module for value in values or () if isinstance(value, ast.ImportFrom)]
        return bool(imported) and len(imported) == len(values or ()) and set(imported) == {"pytest"}

    def _cannot_fail(self, call: ast.Call) -> bool:
        """Return whether a method that is called as unittest's is one of this module that fails by nothing."""
        func = call.func
        if not isinstance(func, ast.Attribute) or getattr(func.value, "id", "") != "self":
            return False
        own = self._methods.get(func.attr, ()) if func.attr.startswith("assert") else ()
        return bool(own) and all(map(_fails_by_nothing, own))


def _has_truth_for_a_part(test: ast.expr) -> bool:
    """Return whether a comparison has a value beside it that is always true, where another comparison was meant."""
    if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.Or):
        return False
    given = [part for part in test.values if isinstance(part, ast.Constant) and not isinstance(part.value, bool)]
    return any(part.value for part in given) and any(isinstance(part, ast.Compare) for part in test.values)


def _fails_by_nothing(function: ast.FunctionDef) -> bool:
    inner = [one for part in function.body for one in ast.walk(part)]
    if any(isinstance(one, ast.Raise | ast.Yield | ast.Await) or asserts(one) for one in inner):
        return False
    if function.decorator_list or not any(isinstance(one, ast.If | ast.Compare) for one in inner):
        return False
    calls = [last_name(one.func) for one in inner if isinstance(one, ast.Call)]
    return all(name in QUIET for name in calls)
