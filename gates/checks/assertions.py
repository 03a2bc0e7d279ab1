"""Facts of a criterion's tests that leave it open: assertions that never ran, warnings, checks that cannot fail."""

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Self

from gates.check import About, Check, Evidence, EvidenceSet, about_criterion, beside
from gates.child import process
from gates.code.meanings import Function
from gates.code.syntax import defined
from gates.config import Context
from gates.errors import Absent, EvidenceUnavailable
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.lines.traced import TEST
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.pytest_run import PytestRun, tests_of
from gates.evidence.tests.test_records import UNAWAITED, TestRecord
from gates.model import CommandRecord, Finding, Level, Location, Model, Planned, Severity
from gates.project.files import tree_of
from gates.task.task import Criterion, Task

Trees = dict[str, ast.Module]
MAYBE = (ast.If, ast.Match, ast.ExceptHandler, ast.IfExp)  # what stands under these need not run here
# conditions that are constant, comparisons of constants or that nobody reads, assertions on tuples and texts,
# numbers for messages, mocks that are asked by a name that is none of their methods
RUFF = "SIM220,SIM221,SIM222,SIM223,PLR0133,F631,F634,B015,PLW0129,RUF040,PGH005"
LIMIT_S = 60.0


class Written(Model):
    """A check as it is written: its lines, the outermost function that it is in, and why it cannot fail, by a rule."""

    location: Location
    function: str
    rule: str = ""
    message: str = ""


class TestFiles(Evidence):
    """Assertions of the criteria's test files that any run should meet, what ruff finds, and the names they read."""

    __test__ = False

    asserted: tuple[Written, ...]
    linted: tuple[Written, ...]
    names: dict[str, dict[str, tuple[str, ...]]]
    unlinted: str = ""  # why ruff did not run

    @classmethod
    def derive(cls, task: Task, context: Context, seen: EvidenceSet) -> Self:
        """Read the files of the tests that stand for a criterion, and have ruff look at them."""
        if (run := seen.get(PytestRun)) is None:
            raise EvidenceUnavailable(seen.why_missing(PytestRun))
        tests = [test for criterion in task.criteria for test in tests_of(task, criterion, run)]
        paths = sorted({test.location.path for test in tests if test.location.path.endswith(".py")})
        if not (trees := {path: tree for path in paths if (tree := tree_of(context.root / path))}):
            raise Absent("no test that is written in Python verifies a criterion")
        linted, unlinted, commands = _linted(trees, context)
        return cls(
            how="ast, and ruff check --isolated",
            commands=commands,
            unlinted=unlinted,
            linted=(*linted, *(each for path, tree in trees.items() for each in _decided(path, tree))),
            asserted=tuple(each for path, tree in trees.items() for each in _asserted(path, tree)),
            names={path: dict(_names(tree)) for path, tree in trees.items()},
        )


def _functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Yield the outermost functions of a file, those of classes as `Class::name`, as node ids name them."""
    return ((name.replace(".", "::"), node) for name, node in defined(tree) if isinstance(node, Function))


def _asserted(path: str, tree: ast.Module) -> Iterator[Written]:
    for name, function in _functions(tree):
        for node in _surely(function):
            if isinstance(node, ast.Assert) and not (isinstance(node.test, ast.Constant) and not node.test.value):
                yield Written(location=Location(path=path, line=node.lineno, last_line=node.end_lineno), function=name)


def _surely(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is in a function and under no condition."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, MAYBE):
            yield child
            yield from _surely(child)


def _decided(path: str, tree: ast.Module) -> Iterator[Written]:
    """Yield assertions that a constant decides beside a call, which ruff leaves alone for what the call may do."""
    for name, function in _functions(tree):
        for node in ast.walk(function):
            if isinstance(node, ast.Assert) and isinstance(node.test, ast.BoolOp):
                decides = isinstance(node.test.op, ast.Or)
                if any(isinstance(each, ast.Constant) and bool(each.value) is decides for each in node.test.values):
                    place = Location(path=path, line=node.lineno)
                    yield Written(rule="constant", message=ast.unparse(node.test), location=place, function=name)


def _names(tree: ast.Module) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, function in _functions(tree):
        nodes = [node for node in ast.walk(function) if isinstance(node, ast.Name | ast.Attribute)]
        yield name, tuple(sorted({node.id if isinstance(node, ast.Name) else node.attr for node in nodes}))


def _linted(trees: Trees, context: Context) -> tuple[tuple[Written, ...], str, tuple[CommandRecord, ...]]:
    log = context.folder("assertions").evidence / "ruff"
    beside = Path(sys.executable).with_name("ruff")  # what `python -m ruff` starts, too, a little later
    program = [str(beside)] if beside.is_file() else [sys.executable, "-m", "ruff"]
    argv = ["check", "--isolated", "--no-cache", "--preview", "--output-format", "json", "--select", RUFF, "--", *trees]
    ended = process.run([*program, *argv], cwd=context.root, timeout_s=LIMIT_S, log=log)
    command = ended.as_command("checks that cannot fail", ("ruff", *argv))
    try:
        told = json.loads(log.with_suffix(".stdout.txt").read_text(encoding="utf-8"))
        found = tuple(each for one in told if (each := _place(one, trees, context)))
    except (OSError, ValueError, KeyError, TypeError):
        return (), f"ruff did not run: {ended.last_words}", (command,)
    return found, "", (command,)


def _place(one: dict[str, dict[str, int]], trees: Trees, context: Context) -> Written | None:
    """Return a finding of ruff with its function, or nothing where the place is meant to raise."""
    path, line = context.shown(Path(str(one["filename"]))), int(one["location"]["row"])
    for name, function in _functions(trees[path]):
        if function.lineno <= line <= (function.end_lineno or line):
            if any(block.lineno <= line <= (block.end_lineno or line) for block in _raising(function)):
                return None
            said, place = " ".join(str(one["message"]).split()), Location(path=path, line=line)
            return Written(rule=str(one["code"]), message=said, location=place, function=name)
    return None


def _raising(function: Function) -> list[ast.With | ast.AsyncWith]:
    """Return the blocks that wait for an exception, as `pytest.raises` and `assertRaises` do."""
    blocks = [each for each in ast.walk(function) if isinstance(each, ast.With | ast.AsyncWith)]
    return [each for each in blocks if any("raises" in ast.unparse(item.context_expr).lower() for item in each.items)]


# what pytest itself says of a test that checks less than it seems to
UNHANDLED = {f"PytestUnhandled{what}Warning" for what in ("Coroutine", "ThreadException")}
WARNINGS = {"PytestReturnNotNoneWarning", "PytestUnraisableExceptionWarning"} | UNHANDLED


def plan(task: Task) -> Iterator[Planned]:
    """Plan a check for each criterion."""
    yield from beside(task.criteria, "assertions", "The tests of {} check what they seem to")


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge the tests of each criterion that passed."""
    run, files, lines = evidence.get(PytestRun), evidence.get(TestFiles), evidence.get(ExecutedLines)
    for criterion in task.criteria:
        about = about_criterion(criterion, "BL021", f"assertions:{criterion.id}")
        advised = about.but(level=Level.ADVISORY, severity=Severity.INFO)
        bound = tests_of(task, criterion, run)
        own = [test for test in bound if test.passed]
        if run and not bound:
            yield advised.not_asked(f"No test is bound to {criterion.id}.")
            continue
        if run is None or files is None or not own:
            none_passed = run is not None and not own
            why = "none passed" if none_passed else evidence.why_missing(TestFiles if run else PytestRun)
            yield advised.unknown(f"The tests of {criterion.id} were not read: {why}.", follows=none_passed)
            continue
        own = _about(criterion, own, files, evidence) or own
        found = [*_unexecuted(about, own, files, lines), *_warned(about, own, run), *_constant(about, own, files)]
        yield from found
        if not found:
            unseen = "" if lines else f"which lines ran was not seen: {evidence.why_missing(ExecutedLines)}"
            doubts = "; ".join(filter(None, (unseen, files.unlinted)))
            said = f"No check in the tests of {criterion.id} was found that did not run or cannot fail"
            yield advised.unknown(f"{said} ({doubts}).") if doubts else advised.passed(f"{said}.")


def _doubt(about: About, rule: str, place: Location, message: str, fix: str, actual: str) -> Finding:
    """Say of a check that it shows nothing: that leaves a criterion open."""
    own = about.but(rule=rule, location=place, subject=f"{PurePosixPath(place.path).name}:{place.line}", actual=actual)
    return own.unknown(message, fix, expected="a check that can fail")


def _about(criterion: Criterion, own: list[TestRecord], files: TestFiles, evidence: EvidenceSet) -> list[TestRecord]:
    """Return the tests that run code of the criterion or name it; all, where nobody can tell."""
    tree, lines = evidence.get(SourceTree), evidence.get(ExecutedLines)
    if tree is None or lines is None:
        return own
    places = [place for binding in criterion.code for place in tree.ways(binding)]
    bodies = [each.body for each in lines.functions if any(map(each.body.meets, places))]
    ran = {name for body in bodies for name in lines.contexts_in(body)}
    if any(name and not name.startswith(TEST) for name in ran):  # in a fixture that many tests share
        return own
    symbols = {binding.symbol.replace(":", ".").rpartition(".")[2] for binding in criterion.code if binding.symbol}
    naming = {each for each in {*map(_written, own)} if not symbols.isdisjoint(_read(each, files))}
    ran |= {*lines.unseen}  # where something ran that nobody saw
    return [test for test in own if f"{TEST}{test.id}" in ran or _written(test) in naming]


def _written(test: TestRecord) -> tuple[str, str]:
    return test.location.path, test.function.partition("::")[2]


def _read(place: tuple[str, str], files: TestFiles) -> set[str]:
    """Return the names that a test function reads, and the helpers of its file that it calls."""
    names = files.names.get(place[0], {})
    return {name for function in _called({place[1]}, names) for name in names.get(function, ())}


def _unexecuted(about: About, own: list[TestRecord], files: TestFiles, ran: ExecutedLines | None) -> Iterator[Finding]:
    """Yield the assertions that no test executed, in the criterion's test functions and the helpers that they name."""
    ran_in = ran.lines if ran else {}
    for path in sorted({test.location.path for test in own} & ran_in.keys()):
        asked = _called({function for file, function in map(_written, own) if file == path}, files.names.get(path, {}))
        places = [each.location for each in files.asserted if each.location.path == path and each.function in asked]
        for place in [each for each in places if ran_in[path].keys().isdisjoint(each.lines)]:
            message = f"The assertion at {place} was executed by no test."
            yield _doubt(about, "BL021", place, message, "Let it run, or remove it.", "never executed")


def _called(functions: set[str], names: dict[str, tuple[str, ...]]) -> set[str]:
    """Return test functions with the functions of their file that they name, and those that these name."""
    found, todo = set(functions), list(functions)
    while todo:
        read = set(names.get(todo.pop(), ()))
        last = {name: name.rpartition("::")[2] for name in names}
        new = {name for name in names if last[name] in read and not last[name].startswith("test")} - found
        found |= new
        todo += new
    return found


def _warned(about: About, own: list[TestRecord], run: PytestRun) -> Iterator[Finding]:
    tests, paths = {test.id: test for test in own}, {test.location.path for test in own}
    counting = [each for each in run.warnings if each.category in WARNINGS or UNAWAITED in each.message]
    for one in [each for each in counting if each.test in tests or (not each.test and each.location.path in paths)]:
        place = tests[one.test].location if one.test in tests else one.location
        said = one.message.splitlines()[0] if one.message else one.category
        message = f"{one.test or one.location}: {one.category}: {said}"
        yield _doubt(about, "BL019", place, message, "Let the test assert, await or join what it starts.", one.category)


def _constant(about: About, own: list[TestRecord], files: TestFiles) -> Iterator[Finding]:
    asked = {*map(_written, own)}
    for each in [one for one in files.linted if (one.location.path, one.function) in asked]:
        message = f"{each.location} cannot fail: {each.message} ({each.rule})."
        yield _doubt(about, "BL020", each.location, message, "Assert on what the code does.", each.rule)


CHECK = Check("assertions", "business-logic", 35, (TestFiles,), plan, judge)
