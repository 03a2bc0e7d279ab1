"""Tests as they are written: which there are, what they assert, what keeps them from running, which cases they have."""

import ast
import copy
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gates.evidence._goalposts import repeated
from gates.evidence._goalposts.assertions import Assertion, Filled, constants_of, written
from gates.evidence._goalposts.imported import Neighbours, Values
from gates.evidence._goalposts.plain import parts_of
from gates.evidence._goalposts.tolerances import number
from gates.evidence._markers import criteria_of

SKIPS = {"skip", "skipif", "skipIf", "skipUnless", "xfail", "expectedFailure"}
GATED = re.compile(r"(skip|requires?|needs?|unless|quarantined?)(_|$)")
SKIP_CALLS = {"skip", "xfail", "importorskip", "skipTest"}
ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
CATCHES_ASSERTIONS = {"AssertionError", "Exception", "BaseException"}
MOST_DEPTH = 60
ALONE = Neighbours({})
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class WrittenTest:
    """One test of a file: its name within it, where it begins, and all that decides what it can notice."""

    name: str
    line: int
    asserts: tuple[Assertion, ...]
    skips: tuple[str, ...]
    cases: tuple[repeated.Cases, ...]
    body: tuple[str, ...]
    loops: tuple[repeated.Cases, ...] = ()
    criteria: tuple[str, ...] = ()
    marks: frozenset[str] = frozenset()
    is_helper: bool = False
    called_here: bool = False


def written_tests(content: bytes, path: str = "", beside: Neighbours = ALONE) -> dict[str, WrittenTest]:
    """Return the tests of a file by name, and the other functions, which may assert something for tests.

    What it imports from the files beside it counts as if it stood in the file itself.
    Raise `SyntaxError` or `ValueError` for a file that is not Python.
    """
    module = ast.parse(content)
    reader = _Reader(module, beside.values(path, module))
    tests = {test.name: test for test in reader.tests(module.body, "", _marks(module.body))}
    return {**{helper.name: helper for helper in reader.helpers(module.body, "")}, **tests}


class _Reader:
    """Reads the tests of one module, whose constants, tables and helpers it knows, and the values it imports."""

    def __init__(self, module: ast.Module, imported: Values) -> None:
        self._module = module
        numbers = {name: value for name, value in imported.items() if number(value) is not None}
        self._filled = Filled({**numbers, **constants_of(module)})
        self._skips = tuple(self._module_skips())
        self._helpers = {node.name: node for node in module.body if isinstance(node, Function)}
        self._tables = imported | {
            target.id: node.value
            for node in module.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    def _module_skips(self) -> Iterator[str]:
        """Yield what skips the module as a whole while it is collected."""
        for statement in self._module.body:
            if not isinstance(statement, Function | ast.ClassDef):
                yield from skip_calls([statement], ())

    def tests(self, body: Sequence[ast.stmt], prefix: str, around: tuple[ast.expr, ...]) -> Iterator[WrittenTest]:
        """Yield the tests of a module or a class, those under `if` and `try` too."""
        for node in body:
            if isinstance(node, Function) and node.name.startswith("test"):
                yield self._test(node, prefix, (*around, *node.decorator_list))
            elif isinstance(node, ast.ClassDef) and not _is_off(node):
                own = (*around, *node.decorator_list, *_marks(node.body))
                yield from self.tests(node.body, f"{prefix}{node.name}.", own)
            elif isinstance(node, ast.If | ast.Try | ast.With):
                yield from self.tests(_branches(node), prefix, around)

    def helpers(self, body: Sequence[ast.stmt], prefix: str) -> Iterator[WrittenTest]:
        """Yield the functions of a module or a class that are no tests, and may assert something for some."""
        tests = [n for n in ast.walk(self._module) if isinstance(n, Function) and n.name.startswith("test")]
        called = {_mark_name(c.func) for test in tests for c in ast.walk(test) if isinstance(c, ast.Call)}
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield from self.helpers(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, Function) and not node.name.startswith("test"):
                yield replace(self._test(node, prefix, ()), is_helper=True, called_here=node.name in called)

    def _test(self, node: Function, prefix: str, marks: tuple[ast.expr, ...]) -> WrittenTest:
        inside = skip_calls(node.body, ())
        marks = tuple(map(self._named, marks))
        return WrittenTest(
            name=f"{prefix}{node.name}",
            line=node.lineno,
            asserts=tuple(self._asserts(node.body, (), frozenset({node.name}))),
            skips=(*self._skips, *(skip for mark in marks for skip in skips_in(mark)), *inside),
            cases=tuple(repeated.cases(node.decorator_list, self._tables)),
            loops=tuple(repeated.loops(node.body, self._tables)),
            body=tuple(written(statement) for statement in node.body if not _is_text(statement)),
            criteria=tuple(name for mark in marks for name in _criteria(mark)),
            marks=frozenset(_mark_name(node) for mark in marks for node in ast.walk(mark)) - {""},
        )

    def _named(self, mark: ast.expr) -> ast.expr:
        """Return the mark that a name of the module stands for: `needs_cuda = pytest.mark.skipif(...)`."""
        if isinstance(mark, ast.List | ast.Tuple):
            return ast.List([*map(self._named, mark.elts)], ast.Load())
        meant = self._tables.get(mark.id) if isinstance(mark, ast.Name) else None
        return meant if meant is not None and ".mark." in written(meant) else mark

    def _asserts(self, body: Sequence[ast.stmt], guards: tuple[str, ...], seen: frozenset[str]) -> Iterator[Assertion]:
        """Yield the assertions that a failure can come from: none after a return, none that is swallowed."""
        if len(guards) > MOST_DEPTH:
            return
        for node in body:
            if isinstance(node, ast.Assert):
                yield from self._assertions(node.test, guards)
            elif isinstance(node, ast.If):
                yield from self._of_if(node, guards, seen)
                if _always(node.test) and isinstance(node.body[-1], ENDS):
                    return
                if isinstance(node.body[-1], ENDS) and not node.orelse:
                    guards = (*guards, f"not ({written(node.test)})")
            elif not isinstance(node, ast.ClassDef):
                yield from self._calls(node, guards, seen)
                yield from self._asserts(_held(node), guards, seen)
            if isinstance(node, ENDS):
                return

    def _of_if(self, node: ast.If, guards: tuple[str, ...], seen: frozenset[str]) -> Iterator[Assertion]:
        constant = node.test.value if isinstance(node.test, ast.Constant) else None
        inner = guards if constant is not None else (*guards, written(node.test))
        if constant is None and not node.orelse and _is_failure(node.body[-1]):
            yield from self._assertions(ast.UnaryOp(ast.Not(), node.test, lineno=node.lineno), guards)
            return
        if constant is None or constant:
            yield from self._asserts(node.body, inner, seen)
        if constant is None or not constant:
            yield from self._asserts(node.orelse, inner, seen)

    def _calls(self, node: ast.stmt, guards: tuple[str, ...], seen: frozenset[str]) -> Iterator[Assertion]:
        """Yield the assertions that are calls, and those of helpers of the same file that are called."""
        for expression in _expressions(node):
            for call in ast.walk(expression):
                if not isinstance(call, ast.Call):
                    continue
                name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
                if name.lstrip("_").startswith("assert") or name in {"raises", "warns", "deprecated_call"}:
                    yield from self._assertions(call, guards)
                elif isinstance(call.func, ast.Name) and name in self._helpers and name not in seen:
                    yield from self._asserts(self._helpers[name].body, guards, seen | {name})

    def _assertions(self, test: ast.expr, guards: tuple[str, ...]) -> Iterator[Assertion]:
        """Yield what is asserted, each part of an `and` and of a chain of comparisons by itself."""
        filled = self._filled.visit(copy.deepcopy(test))
        parts = parts_of(filled)
        for part in parts if len(parts) > 1 else [filled]:
            yield Assertion(written(part), test.lineno, guards, part)


def _is_failure(node: ast.stmt) -> bool:
    """Return whether a statement fails the test: `pytest.fail(...)`, `raise AssertionError`."""
    if isinstance(node, ast.Raise) and node.exc is not None:
        return _mark_name(node.exc.func if isinstance(node.exc, ast.Call) else node.exc) == "AssertionError"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _mark_name(node.value.func) == "fail"


def _always(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value)


def _marks(body: Sequence[ast.stmt]) -> tuple[ast.expr, ...]:
    """Return what `pytestmark` says."""
    return tuple(
        node.value
        for node in body
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets)
    )


def _criteria(expression: ast.expr) -> Iterator[str]:
    """Yield the criteria that the marks in an expression name."""
    for node in ast.walk(expression):
        if isinstance(node, ast.Call) and _mark_name(node.func) == "criterion":
            yield from (str(arg.value) for arg in criteria_of(node) if isinstance(arg, ast.Constant))


def skips_in(expression: ast.expr) -> Iterator[str]:
    """Yield the marks in an expression that skip a test or expect it to fail, with condition and without reason."""
    outer = _mark_name(expression.func if isinstance(expression, ast.Call) else expression)
    if GATED.match(outer) and outer not in SKIPS:
        yield f"{outer}()"  # what it does stands in another file
    called = {id(node.func) for node in ast.walk(expression) if isinstance(node, ast.Call)}
    for node in ast.walk(expression):
        name = _mark_name(node.func if isinstance(node, ast.Call) else node)
        if name not in SKIPS or id(node) in called:
            continue
        conditions = _conditions(node, name) if isinstance(node, ast.Call) else []
        if not any(isinstance(c, ast.Constant) and not isinstance(c.value, str) and not c.value for c in conditions):
            yield f"{name}({', '.join(map(written, conditions))})"


def _mark_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _conditions(call: ast.Call, name: str) -> list[ast.expr]:
    named = [keyword.value for keyword in call.keywords if keyword.arg == "condition"]
    return [*([] if name == "skip" else call.args[:1]), *named]


def skip_calls(body: Sequence[ast.stmt], guards: tuple[str, ...]) -> Iterator[str]:
    """Yield the calls that skip while a test or module runs, each with the conditions that it stands under."""
    for node in body:
        if isinstance(node, Function | ast.ClassDef):
            continue
        inner = (*guards, written(node.test)) if isinstance(node, ast.If) else guards
        for expression in _expressions(node):
            for call in ast.walk(expression):
                func = call.func if isinstance(call, ast.Call) else None
                is_pytest = isinstance(func, ast.Attribute) and getattr(func.value, "id", "") in {"pytest", "self"}
                if func is not None and _mark_name(func) in SKIP_CALLS and is_pytest:
                    yield f"{_mark_name(func)}() {_when(guards)}".strip()
        if isinstance(node, ast.Raise) and node.exc and "SkipTest" in written(node.exc):
            yield f"SkipTest {_when(guards)}".strip()
        yield from skip_calls([*getattr(node, "body", []), *getattr(node, "orelse", [])], inner)
        if isinstance(node, ENDS):
            return


def _when(guards: tuple[str, ...]) -> str:
    return f"if {' and '.join(guards)}" if guards else ""


def _held(node: ast.stmt) -> list[ast.stmt]:
    """Return the statements that a compound statement holds, less those whose assertion errors it swallows."""
    if isinstance(node, ast.Try | ast.TryStar):
        swallowed = any(_swallows(handler) for handler in node.handlers)
        return [
            *([] if swallowed else node.body),
            *node.orelse,
            *node.finalbody,
            *(s for h in node.handlers for s in h.body),
        ]
    if isinstance(node, ast.With | ast.AsyncWith) and any(_suppresses(item.context_expr) for item in node.items):
        return []
    if isinstance(node, ast.Match):
        return [statement for case in node.cases for statement in case.body]
    return [*getattr(node, "body", []), *getattr(node, "orelse", [])]


def _swallows(handler: ast.ExceptHandler) -> bool:
    caught = {written(handler.type)} if handler.type else {"BaseException"}
    if isinstance(handler.type, ast.Tuple):
        caught = {written(kind) for kind in handler.type.elts}
    tells = any(isinstance(n, ast.Raise) or _mark_name(getattr(n, "func", n)) == "fail" for n in ast.walk(handler))
    return bool(caught & CATCHES_ASSERTIONS) and not tells


def _suppresses(expression: ast.expr) -> bool:
    if not isinstance(expression, ast.Call) or not written(expression.func).endswith("suppress"):
        return False
    return bool({written(arg) for arg in expression.args} & CATCHES_ASSERTIONS)


def _expressions(node: ast.stmt) -> list[ast.expr]:
    """Return the expressions of a statement itself, not those of statements inside it."""
    if isinstance(node, Function | ast.ClassDef):
        return []
    items = [item.context_expr for item in node.items] if isinstance(node, ast.With | ast.AsyncWith) else []
    return [*items, *(child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))]


def _branches(node: ast.If | ast.Try | ast.With) -> list[ast.stmt]:
    if isinstance(node, ast.If) and isinstance(node.test, ast.Constant):
        return node.body if node.test.value else node.orelse
    return [*node.body, *getattr(node, "orelse", []), *(s for h in getattr(node, "handlers", []) for s in h.body)]


def _is_off(node: ast.ClassDef) -> bool:
    """Return whether pytest is told not to collect a class."""
    return any("__test__" in written(line) and "False" in written(line) for line in node.body
               if isinstance(line, ast.Assign | ast.AnnAssign))  # fmt: skip


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
