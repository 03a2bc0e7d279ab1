"""What may stand for a criterion in the place of tests: parts of the task, unless they are seen to miss its code."""

import ast
import itertools
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from gates.evidence.reach import Reached
from gates.evidence.source_tree import SourceTree
from gates.model import Finding, Outcome
from gates.stages._about import About
from gates.task.calls import called_by, measured_by
from gates.task.code_binding import CodeBinding
from gates.task.measurement import Measurement
from gates.task.task import Criterion, EntryPoint, Task
from gates.task.types import Located

# programs that run no code of a project, whatever words they are given
MEASURED = "measured, in the performance gate"
IDLE = frozenset({"true", ":", "echo", "printf", "sleep", "ls", "pwd", "date", "hostname", "uname", "whoami"})


def without_tests(about: About, task: Task, criterion: Criterion, tree: SourceTree | None) -> Finding:
    """Judge a criterion without a test: something else must stand for it, and not be seen to pass its code by."""
    strays: list[str] = []
    for says, found in _instead(task, criterion).items():
        why = [astray(part, criterion, tree) for part in found]
        if found and not all(why):
            place = task.place(criterion if says == MEASURED else found[0])
            return about(
                outcome=Outcome.NOT_APPLICABLE, location=place, actual=says.split(",")[0],
                message=f"{criterion.id} is {says}; no test is bound to it.",
            )  # fmt: skip
        strays += why
    marker = f'@pytest.mark.criterion("{task.id}/{criterion.id}")'
    if strays:
        return about(
            outcome=Outcome.UNKNOWN, location=task.place(criterion), expected="something that runs its code",
            actual="its code is not run", message=f"What stands for {criterion.id} does not run its code: {strays[0]}.",
            remediation="Let something that is there stand for it and call its code, or trace it to the code that is "
            "called.",
        )  # fmt: skip
    return about(
        outcome=Outcome.UNKNOWN, location=task.place(criterion), actual="no test",
        message=f"No test and no measure stands for {criterion.id}; reading its code proves nothing.",
        remediation=f"Name tests under 'tests', or mark them with {marker}.",
    )  # fmt: skip


def _instead(task: Task, criterion: Criterion) -> dict[str, list[Located]]:
    """Return what may stand for a criterion in the place of tests, by how it is said: what is measured first."""
    found: dict[str, list[Located]] = {MEASURED: [*measured_by(task, criterion)]}
    for part in task.shown_by(criterion):
        found.setdefault(part.shown, []).append(part)
    return found


def astray(part: object, criterion: Criterion, tree: SourceTree | None) -> str:
    """Return why a part of the task cannot run the code of a criterion, or nothing where it may."""
    symbols = [binding for binding in criterion.code if binding.symbol]
    if not symbols or len(symbols) < len(criterion.code):
        return ""
    if isinstance(part, Measurement):
        commands = [part.run, *(command for arm in part.arms.values() for command in (arm.call, arm.run, arm.time))]
        commands = [command for command in commands if command]
        idle = [isinstance(command, Sequence) and runs_nothing(command) for command in commands]
        if idle and all(idle):
            return f"the commands of measurement {part.id} call nothing"
        calls = called_by(part)
        return _past(calls, symbols, tree) if all(command in calls for command in commands) else ""
    if isinstance(part, EntryPoint) and part.run:
        return f"`{part.name}` calls nothing" if runs_nothing(part.run) else ""
    return _past(called_by(part), symbols, tree)


def _past(calls: Sequence[str], symbols: Sequence[CodeBinding], tree: SourceTree | None) -> str:
    """Return why functions that are called do not come to some code, or nothing where one may."""
    traces = [tree.stands_for(call, binding) for call in calls for binding in symbols] if tree else []
    past = bool(traces) and all(trace is not None and trace.reached is Reached.NO for trace in traces)
    absent = next((trace.problem for trace in traces if trace and trace.problem), "") if past else ""
    if absent:
        return absent  # what is not there calls nothing: that is the first to mend
    verb = "do" if len(calls) > 1 else "does"
    return f"{' and '.join(calls)} {verb} not call {', '.join(one.name for one in symbols)}" if past else ""


def runs_nothing(command: Sequence[str]) -> bool:
    """Return whether a command calls nothing of anybody: `true`, or Python with a program without a call."""
    if isinstance(command, str) or not command:
        return False
    if PurePath(command[0]).name in IDLE:
        return True
    return any(not _calls(code) for code in _programs(command))


def _programs(command: Sequence[str]) -> Iterator[str]:
    """Yield what Python is given with `-c`."""
    name = PurePath(command[0]).name
    if name == "{python}" or name.startswith(("python", "pypy")):
        yield from (code for flag, code in itertools.islice(itertools.pairwise(command), 1, 4) if flag == "-c")


def _calls(code: str) -> bool:
    """Return whether a program may call anything; to import a function's module is not to call it."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    idle = (ast.Pass, ast.Import, ast.ImportFrom)
    return not all(isinstance(statement, idle) or _is_constant(statement) for statement in tree.body)


def _is_constant(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr | ast.Assert) and all(
        isinstance(node, ast.Constant) for node in ast.iter_child_nodes(statement)
    )
