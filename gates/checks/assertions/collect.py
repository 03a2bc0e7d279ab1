"""Assertions as they are written in test files, and what ruff finds in these: checks that cannot fail."""

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from gates.check import Derived, EvidenceSet
from gates.child import process
from gates.code.syntax import defined
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.tests.bound_tests import tests_of
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import CommandRecord, Location, Model
from gates.task.task import Task

Function = ast.FunctionDef | ast.AsyncFunctionDef
MAYBE = (ast.If, ast.Match, ast.ExceptHandler, ast.IfExp)  # what stands under these need not run here
# conditions that are constant, comparisons of constants or that nobody reads, assertions on tuples and texts,
# numbers for messages, mocks that are asked by a name that is none of their methods
RULES = "SIM220,SIM221,SIM222,SIM223,PLR0133,F631,F634,B015,PLW0129,RUF040,PGH005"
LIMIT_S = 60.0


class Asserted(Model):
    """An `assert` statement of a test file: its lines, and the outermost function that it is written in."""

    location: Location
    function: str


class Linted(Model):
    """A place of a test file where ruff says that a check cannot fail."""

    rule: str
    message: str
    location: Location
    function: str


class TestFiles(Derived):
    """The test files of the criteria: assertions that any run should come to, what ruff finds, and who calls whom.

    `names` are the names that each function of a file reads, by file and function. `unlinted` says why ruff did not
    run.
    """

    __test__ = False

    asserted: tuple[Asserted, ...]
    linted: tuple[Linted, ...]
    names: dict[str, dict[str, tuple[str, ...]]]
    unlinted: str = ""

    @classmethod
    def derive(cls, task: Task, context: Context, seen: EvidenceSet) -> Self:
        """Read the files of the tests that stand for a criterion, and have ruff look at them."""
        run = seen.get(PytestRun)
        if run is None:
            raise EvidenceUnavailable(seen.why_missing(PytestRun))
        tests = [test for criterion in task.criteria for test in tests_of(task, criterion, run)]
        paths = sorted({test.location.path for test in tests if test.location.path.endswith(".py")})
        trees = {path: tree for path in paths if (tree := _parsed(context.root / path))}
        if not trees:
            raise EvidenceUnavailable("no test that is written in Python verifies a criterion")
        linted, unlinted, commands = _linted(trees, context)
        return cls(
            how="ast, and ruff check --isolated",
            commands=commands,
            unlinted=unlinted,
            linted=(*linted, *(each for path, tree in trees.items() for each in _decided(path, tree))),
            asserted=tuple(each for path, tree in trees.items() for each in _asserted(path, tree)),
            names={path: dict(_names(tree)) for path, tree in trees.items()},
        )


def _parsed(path: Path) -> ast.Module | None:
    try:
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None  # the run says so


def _functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Yield the outermost functions of a file, those of classes as `Class::name`, as node ids name them."""
    return ((name.replace(".", "::"), node) for name, node in defined(tree) if isinstance(node, Function))


def _asserted(path: str, tree: ast.Module) -> Iterator[Asserted]:
    for name, function in _functions(tree):
        for node in _surely(function):
            if isinstance(node, ast.Assert) and not (isinstance(node.test, ast.Constant) and not node.test.value):
                yield Asserted(location=Location(path=path, line=node.lineno, last_line=node.end_lineno), function=name)


def _surely(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is in a function and under no condition."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, MAYBE):
            yield child
            yield from _surely(child)


def _decided(path: str, tree: ast.Module) -> Iterator[Linted]:
    """Yield assertions that a constant decides beside a call, which ruff leaves alone for what the call may do."""
    for name, function in _functions(tree):
        for node in ast.walk(function):
            if isinstance(node, ast.Assert) and isinstance(node.test, ast.BoolOp):
                decides = isinstance(node.test.op, ast.Or)
                constants = [each.value for each in node.test.values if isinstance(each, ast.Constant)]
                if any(bool(value) is decides for value in constants):
                    place = Location(path=path, line=node.lineno)
                    yield Linted(rule="constant", message=ast.unparse(node.test), location=place, function=name)


def _names(tree: ast.Module) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, function in _functions(tree):
        nodes = list(ast.walk(function))
        read = {node.id for node in nodes if isinstance(node, ast.Name)}
        yield name, tuple(sorted(read | {node.attr for node in nodes if isinstance(node, ast.Attribute)}))


def _linted(
    trees: dict[str, ast.Module], context: Context
) -> tuple[tuple[Linted, ...], str, tuple[CommandRecord, ...]]:
    log = context.folder("assertions").evidence / "ruff"
    argv = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--preview"]
    argv += ["--output-format", "json", "--select", RULES, "--", *trees]
    ended = process.run(argv, cwd=context.root, timeout_s=LIMIT_S, log=log)
    command = ended.as_command("checks that cannot fail", ("ruff", *argv[3:]))
    try:
        told = json.loads(log.with_suffix(".stdout.txt").read_text(encoding="utf-8"))
        found = tuple(each for one in told if (each := _place(one, trees, context)))
    except (OSError, ValueError, KeyError, TypeError):
        return (), f"ruff did not run: {ended.last_words}", (command,)
    return found, "", (command,)


def _place(one: dict[str, dict[str, int]], trees: dict[str, ast.Module], context: Context) -> Linted | None:
    """Return a finding of ruff with its function, or nothing where the place is meant to raise."""
    path, line = context.shown(Path(str(one["filename"]))), int(one["location"]["row"])
    for name, function in _functions(trees[path]):
        if function.lineno <= line <= (function.end_lineno or line):
            if any(block.lineno <= line <= (block.end_lineno or line) for block in _raising(function)):
                return None
            message = " ".join(str(one["message"]).split())
            return Linted(
                rule=str(one["code"]), message=message, location=Location(path=path, line=line), function=name
            )
    return None


def _raising(function: Function) -> list[ast.With | ast.AsyncWith]:
    """Return the blocks that wait for an exception, as `pytest.raises` and `assertRaises` do."""
    blocks = [each for each in ast.walk(function) if isinstance(each, ast.With | ast.AsyncWith)]
    return [each for each in blocks if any("raises" in ast.unparse(item.context_expr).lower() for item in each.items)]
