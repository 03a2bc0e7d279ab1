"""Which assertions hold whatever the code does: all that they look at is written out in the test itself.

What cannot be told by reading one module is open: an assertion is settled only where nothing else could be.
"""

import ast
import builtins
from collections.abc import Set as AbstractSet

from .asking import asks, does_nothing, is_protocol
from .asserting import asserts
from .bindings import COMPREHENSIONS, Bindings, Bound, Each, is_straight, parameters
from .conditions import condition_of, waits_for_anything
from .libraries import is_of_library
from .mistakes import Mistakes
from .tautology import Tautologies
from .tolerance import is_boundless, last_name

PURE = frozenset({
    "abs", "all", "any", "ascii", "bin", "bool", "bytes", "chr", "complex", "dict", "divmod", "enumerate", "float",
    "format", "frozenset", "hex", "int", "isinstance", "issubclass", "len", "list", "max", "min", "object", "oct",
    "ord", "pow", "range", "repr", "reversed", "round", "set", "slice", "sorted", "str", "sum", "tuple", "type", "zip",
})  # fmt: skip
PLAIN = frozenset({"abs", "bool", "bytes", "float", "int", "len", "max", "min", "range", "round", "str", "sum"})
EXCEPTIONS = frozenset(n for n, v in vars(builtins).items() if isinstance(v, type) and issubclass(v, BaseException))
UNITTEST = frozenset({
    "assertEqual", "assertNotEqual", "assertTrue", "assertFalse", "assertIs", "assertIsNot", "assertIsNone",
    "assertIsNotNone", "assertIn", "assertNotIn", "assertIsInstance", "assertAlmostEqual", "assertGreater",
    "assertGreaterEqual", "assertLess", "assertLessEqual", "assertCountEqual", "assertListEqual", "assertDictEqual",
})  # fmt: skip
RAISES = frozenset({"raises", "assertRaises"})
# of these all is known where their parts are
MADE_OF_PARTS = (
    ast.Tuple, ast.List, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Subscript,
    ast.Slice, ast.Starred, ast.Attribute, ast.JoinedStr, ast.FormattedValue, ast.NamedExpr, ast.comprehension,
    *COMPREHENSIONS,
)  # fmt: skip


class Settled:
    """Reads the assertions of one module; `traced` are the names of the functions that criteria are traced to."""

    def __init__(self, module: ast.Module, traced: AbstractSet[str] = frozenset()) -> None:
        self._bindings = Bindings(module)
        self._traced = traced
        self._tautologies = Tautologies(self._bindings, traced)
        self._asking: set[ast.AST] = set()
        self._methods: dict[str, list[ast.FunctionDef]] = {}
        for node, around in self._bindings.parents.items():
            if isinstance(node, ast.FunctionDef) and isinstance(around, ast.ClassDef) and not is_protocol(around):
                self._methods.setdefault(node.name, []).append(node)
        self._mistakes = Mistakes(self._bindings, self._methods, self._tautologies.truths)

    def holds(self, statement: ast.stmt) -> bool:
        """Return whether a statement that asserts holds, once it is executed, whatever the code does."""
        try:
            return self._holds(statement)
        except RecursionError:  # an expression of thousands of parts
            return False

    def is_mistaken(self, statement: ast.stmt) -> bool:
        """Return whether a statement would compare what the code comes to, and asserts only that it could."""
        if self._mistakes.is_one(statement):
            return True
        call = statement.value if isinstance(statement, ast.Expr) else None
        test = statement.test if isinstance(statement, ast.Assert) else None
        if isinstance(call, ast.Call) and last_name(call.func) == "assertTrue" and call.args:
            test = call.args[0]
        if isinstance(call, ast.Call) and self._only_asks(call):
            return not all(map(self._fixed, call.args))
        return test is not None and self._tautologies.truths.is_mistaken(test) and not self._fixed(test)

    def _holds(self, statement: ast.stmt) -> bool:
        if self._mistakes.is_one(statement):
            return True
        if isinstance(statement, ast.Assert):
            return self._always(statement.test)
        if isinstance(statement, ast.If):
            return self._fixed(statement.test)
        if isinstance(statement, ast.With):
            return self._raises_by_itself(statement)
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            call = statement.value
            return self._fixed(call) or self._is_settled_call(call) or is_boundless(call) or self._only_asks(call)
        return False

    def is_left_to_others(self, statement: ast.stmt) -> bool:
        """Return whether a statement only calls a function of this module, whose own assertions are counted."""
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call):
            return False
        if isinstance(call.func, ast.Name):
            called = self._bindings.values(call.func) or [None]
        else:
            of_self = isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") == "self"
            called = [*self._methods.get(last_name(call.func) if of_self else "", [None])]
            if of_self and last_name(call.func) in UNITTEST and all(map(does_nothing, called)):
                return True
        return all(isinstance(node, ast.FunctionDef) and any(map(asserts, ast.walk(node))) for node in called)

    def _only_asks(self, call: ast.Call) -> bool:
        """Return whether what is called is written here, says how it is, and fails by nothing itself."""
        called = self._bindings.values(call.func) if isinstance(call.func, ast.Name) else None
        return bool(called) and all(asks(node, self._tautologies.truths) for node in called or ())

    def _always(self, test: ast.expr) -> bool:
        """Return whether a condition holds wherever it is asked; one that is written to fail is none."""
        if isinstance(test, ast.Constant):
            return bool(test.value)
        return self._fixed(test) or self._tautologies.is_true(test) or is_boundless(test)

    def _is_settled_call(self, call: ast.Call) -> bool:
        """Return whether a call of unittest's assertions compares what is written out in the test."""
        func = call.func
        if not (isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self"):
            return False
        if func.attr not in UNITTEST or func.attr in self._methods or not call.args:
            return False
        condition = condition_of(call)
        if func.attr == "assertTrue" and condition is not None:
            return self._always(condition)
        return all(map(self._fixed, call.args)) or (condition is not None and self._tautologies.is_true(condition))

    def _raises_by_itself(self, statement: ast.With) -> bool:
        """Return whether what `raises` waits for is raised by the test itself, whatever comes before."""
        calls = [item.context_expr for item in statement.items]
        if not all(isinstance(call, ast.Call) and last_name(call.func) in RAISES for call in calls):
            return False
        raising = [isinstance(s, ast.Raise) and s.exc is not None and self._fixed(s.exc) for s in statement.body]
        if any(raising) and all(map(waits_for_anything, calls)):
            return True
        if any(map(self._names_nothing, statement.body)):
            return all(waits_for_anything(call, "NameError") for call in calls)
        return all(
            raises or (isinstance(inner, ast.Expr | ast.Assert) and self._fixed(next(ast.iter_child_nodes(inner))))
            for inner, raises in zip(statement.body, raising, strict=True)
        )

    def _names_nothing(self, statement: ast.stmt) -> bool:
        """Return whether a statement reads a name, whatever happens, that nothing in the module binds."""
        nodes = [*ast.walk(statement)] if isinstance(statement, ast.Expr | ast.Assign) else []
        if any(isinstance(node, (*COMPREHENSIONS, ast.Lambda, ast.IfExp, ast.BoolOp, ast.NamedExpr)) for node in nodes):
            return False
        names = (node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
        return any(not hasattr(builtins, n.id) and self._bindings.values(n) == [] for n in names if "__" not in n.id)

    def _fixed(self, node: ast.AST) -> bool:
        """Return whether a value is all written out in the module, so that no other code has a part in it."""
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Name):
            return self._is_fixed_name(node)
        if isinstance(node, ast.Call):
            parts = (*node.args, *(word.value for word in node.keywords))
            return all(map(self._fixed, parts)) and self._answers_by_itself(node.func)
        if isinstance(node, ast.Lambda | ast.FunctionDef):
            return self._is_closed(node)
        if not isinstance(node, MADE_OF_PARTS):
            return False
        return all(self._fixed(part) for part in ast.iter_child_nodes(node) if _is_value(part))

    def _answers_by_itself(self, func: ast.expr) -> bool:
        """Return whether what is called looks only at what it is given."""
        if isinstance(func, ast.Attribute):
            given = self._bindings.assigned(func) if func.attr in self._traced else None
            if given is not None:
                return self._fixed(given)
            return is_of_library(func, self._bindings) or self._is_own_method(func) or self._fixed(func.value)
        if isinstance(func, ast.Name):
            return is_of_library(func, self._bindings) or self._is_fixed_name(func)
        return isinstance(func, ast.Lambda) and self._is_closed(func)

    def _is_own_method(self, func: ast.Attribute) -> bool:
        """Return whether a method is defined here, by a class that rests on no other, and looks at no instance."""
        made: Bound = func.value
        if isinstance(made, ast.Name):
            made = next(iter(self._bindings.values(made) or [None]))
        if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Name):
            return False
        for kind in self._bindings.values(made.func) or ():
            if not isinstance(kind, ast.ClassDef) or kind.bases or kind.keywords or kind.decorator_list:
                continue
            for method in kind.body:
                if isinstance(method, ast.FunctionDef) and method.name == func.attr and self._is_closed(method):
                    instance = next(iter(parameters(method)), "")
                    return not any(isinstance(n, ast.Name) and n.id == instance for n in ast.walk(method))
        return False

    def _is_fixed_name(self, name: ast.Name) -> bool:
        values = self._bindings.values(name)
        if values is None or name in self._asking:
            return False
        if not values:
            return name.id in PURE or name.id in EXCEPTIONS
        self._asking.add(name)
        try:
            if not all(self._is_fixed_value(value) for value in values):
                return False
            return all(map(self._is_plain, values)) or self._is_left_alone(name)
        finally:
            self._asking.discard(name)

    def _is_left_alone(self, name: ast.Name) -> bool:
        scope = self._bindings.scope(name)
        return all(self._is_harmless(load, scope) for load in self._bindings.loads(name))

    def _is_fixed_value(self, value: Bound) -> bool:
        return value is not None and self._fixed(value.of if isinstance(value, Each) else value)

    def _is_plain(self, value: Bound) -> bool:
        """Return whether nobody can change a value once it is there."""
        if isinstance(value, Each):
            if isinstance(value.of, ast.List | ast.Tuple | ast.Set):
                return all(map(self._is_plain, value.of.elts))
            if isinstance(value.of, ast.Name):
                through = self._bindings.values(value.of) or [None]
                return all(isinstance(one, ast.expr) and self._is_plain(Each(one)) for one in through)
            return isinstance(value.of, ast.Constant | ast.Call) and self._is_plain(value.of)
        if isinstance(value, ast.Constant | ast.JoinedStr | ast.Compare | ast.Lambda | ast.FunctionDef):
            return True
        if isinstance(value, ast.Call):
            return isinstance(value.func, ast.Name) and (
                value.func.id in PLAIN or (value.func.id == "param" and all(map(self._is_plain, value.args)))
            )
        if isinstance(value, ast.Tuple):
            return all(map(self._is_plain, value.elts))
        operands: tuple[ast.AST, ...] = ()
        if isinstance(value, ast.UnaryOp):
            operands = (value.operand,)
        elif isinstance(value, ast.BinOp):
            operands = (value.left, value.right)
        elif isinstance(value, ast.BoolOp):
            operands = tuple(value.values)
        return bool(operands) and all(map(self._is_plain, operands))

    def _is_harmless(self, load: ast.Name, scope: ast.AST) -> bool:
        """Return whether something that could be changed is only looked at, or changed to what is fixed."""
        for child, node in self._bindings.up(load):
            if isinstance(node, ast.Call) and child is not node.func and not self._only_looks(node.func):
                return False
            if isinstance(node, ast.For | ast.AsyncFor):
                return child is node.iter
            if isinstance(node, ast.stmt):
                return self._leaves_it_fixed(node, child, scope)
        return False

    def _leaves_it_fixed(self, statement: ast.stmt, part: ast.AST, scope: ast.AST) -> bool:
        """Return whether a statement with a name in one part of it leaves what the name stands for as it is written.

        What is changed in a branch, or in a function that somebody may call, is changed by what the code does.
        """
        called = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(called, ast.Call) and self._only_looks(called.func):
            return True
        at_once = self._is_at_once(statement, scope)
        if isinstance(called, ast.Call):
            return at_once and all(map(self._fixed, (*called.args, *(word.value for word in called.keywords))))
        if isinstance(statement, ast.Assign):
            return at_once and part is not statement.value and self._fixed(statement.value)
        if isinstance(statement, ast.FunctionDef):
            return part in statement.decorator_list
        return isinstance(statement, ast.Assert | ast.If)

    def _is_at_once(self, statement: ast.stmt, scope: ast.AST) -> bool:
        """Return whether a statement is executed whatever happens, as often as is written."""
        for _, node in self._bindings.up(statement):
            if node is scope:
                return True
            if not isinstance(node, ast.For) or not self._fixed(node.iter) or not is_straight(scope):
                return False
        return False

    def _only_looks(self, func: ast.expr) -> bool:
        if isinstance(func, ast.Name):
            return func.id in PURE or is_of_library(func, self._bindings)
        return isinstance(func, ast.Attribute) and func.attr in {*UNITTEST, "parametrize", "approx"}

    def _is_closed(self, function: ast.Lambda | ast.FunctionDef) -> bool:
        """Return whether a function looks at nothing but its parameters and what it makes of them."""
        given = function.args
        defaults = (*given.defaults, *(value for value in given.kw_defaults if value is not None))
        if getattr(function, "decorator_list", ()) or not all(map(self._fixed, defaults)):
            return False
        body = [function.body] if isinstance(function, ast.Lambda) else function.body
        nodes = [node for part in body for node in ast.walk(part)]
        if any(isinstance(n, ast.Import | ast.ImportFrom | ast.Global | ast.Nonlocal | ast.Await) for n in nodes):
            return False
        names = [node for node in nodes if isinstance(node, ast.Name)]
        own = {*parameters(function), *(n.id for n in names if not isinstance(n.ctx, ast.Load))}
        return all(self._is_builtin(name) for name in names if name.id not in own)

    def _is_builtin(self, name: ast.Name) -> bool:
        return name.id in PURE | EXCEPTIONS and self._bindings.values(name) == []


def _is_value(node: ast.AST) -> bool:
    """Return whether a part of an expression has a value of its own, and is none that is only bound there."""
    if isinstance(getattr(node, "ctx", None), ast.Store):
        return False
    return isinstance(node, ast.expr | ast.comprehension)
