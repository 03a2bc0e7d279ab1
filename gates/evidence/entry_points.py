"""Production code run to its end: the entry points that a task names, commands and callables."""

import ast
import re
import tomllib
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Self

from gates.check import Evidence
from gates.child import process
from gates.child.asking import command
from gates.child.probing import Entry, Probed, Question, crash_of, written
from gates.child.process import ProcessRun
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.model import CommandRecord, Location, Model
from gates.project.files import import_roots
from gates.task.task import EntryPoint, Task
from gates.words import printable

TABLES = (("project", "scripts"), ("project", "gui-scripts"), ("tool", "poetry", "scripts"))
CALLED = "main"
NO_RESULT = ("error", "errors", "skipped")  # a number under such a key is a count or a measure
SAYS_FAILED = re.compile(r"(?:[\w ]{1,30}[:=]\s*)?(?:BLOCK|BLOCKED|FAIL|FAILED)(?:\s*(?:[:!.(-]|$))(?!\s*0\b)")


class EntryRun(Model):
    """One entry point: how it ended; for a crash the exception and the innermost line in the project.

    `error` is the exception's type and message, `function` the one that the crash was in; `returned` is what a
    callable returned, as `repr` shows it, cut to a bounded length, and `exit_code` what a console script makes of it.
    `no_result` says why one that ended well came to nothing: what it returned or wrote says so.
    """

    index: int
    name: str
    process: ProcessRun | None
    problem: str = ""
    crash: Location | None = None
    error: str = ""
    function: str = ""
    returned: str | None = None
    exit_code: int | None = None
    no_result: str = ""


class EntryPointRuns(Evidence):
    """All entry points of a task, each run once."""

    runs: tuple[EntryRun, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Run each entry point in its own process."""
        if not task.entry_points:
            raise EvidenceUnavailable(f"{task.path} names no 'entry_points'")
        folder = context.folder("entry_points").evidence
        runs = tuple(_run(i, entry, task, context, folder) for i, entry in enumerate(task.entry_points))
        commands = tuple(_recorded(run, task.entry_points[run.index].run or (run.name,)) for run in runs)
        return cls(how="each command and each call made once, in a process of its own", commands=commands, runs=runs)


def _recorded(run: EntryRun, argv: tuple[str, ...]) -> CommandRecord:
    if run.process:
        return run.process.as_command("entry point", argv)
    return CommandRecord(purpose="entry point", argv=argv, ended=run.problem, duration_s=0)


def _run(index: int, entry: EntryPoint, task: Task, context: Context, folder: Path) -> EntryRun:
    name = entry.name
    paths = [str(path) for path in import_roots(task, context)]
    asked = {"call": entry.call, "args": entry.args, "paths": paths}
    question = Question(folder / f"{index}.jsonl", asked) if entry.call else None
    argv = command(context.python, "calculating:once", str(question.path)) if question else None
    argv = argv or context.argv(entry.run or (), out=str(folder / f"{index}.out"))
    limit = entry.timeout_s or context.timeout_s
    try:
        with question or nullcontext():
            ended = process.run(argv, cwd=context.root, timeout_s=limit, log=folder / str(index))
    except OSError as error:
        return EntryRun(index=index, name=name, process=None, problem=f"cannot be started: {error.strerror or error}")
    told = Probed.told(question.journal, question.secret) if question else Probed()
    returned = next(iter(told.of("returned")), None)
    text = written(folder / f"{index}.stderr.txt")
    problem, clean_end = told.problem, ended.exit_code == 0 and not ended.timed_out
    if question and clean_end and returned is None:
        problem = "the process ended before the call returned"
    crash = None if problem or clean_end else crash_of(text, context)
    raised = {"crash": crash.location, "error": crash.error, "function": crash.function} if crash else {}
    return EntryRun(
        index=index,
        name=name,
        process=None if problem else ended,
        problem=problem,
        **raised,
        returned=str(returned["text"]) if returned else None,
        exit_code=exit_code_of(entry.call or "", returned or {}, context.root),
        no_result=printable(_no_result(str((returned or {}).get("text", "")), ended.stdout.tail)) if clean_end else "",
    )


def _no_result(returned: str, written: str) -> str:
    """Return why an entry point that ended well has no result: what it returned or wrote says that it failed."""
    try:
        value = ast.literal_eval(returned)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = None
    if isinstance(value, dict):
        for name, each in value.items():
            if str(name).lower() in NO_RESULT and (each is True or (isinstance(each, str) and each)):
                return f"it returned {name!s}: {each!s}"
        if value and all(each is None for each in value.values()):
            return f"it returned None for {', '.join(map(str, value))}"
    said = next((line.strip() for line in written.splitlines() if SAYS_FAILED.match(line.strip())), "")
    return f"its output says {said!r}" if said else ""


def exit_code_of(call: str, returned: Entry, root: Path) -> int | None:
    """Return what the process of a console script would end with; `None` for a callable that need not be one.

    A function that is called `main` and returns a whole number returns an exit code by convention; of one that
    `pyproject.toml` names as a script, `sys.exit` takes 0, `None` and `False` for success, and nothing else.
    """
    status, is_number = returned.get("status"), bool(returned.get("number"))
    is_script = call in scripts_of(root) or (is_number and call.partition(":")[2] == CALLED)
    return status if is_script and isinstance(status, int) else None


def scripts_of(root: Path) -> set[str]:
    """Return the functions that `pyproject.toml` makes commands of, as `package.module:name`."""
    try:
        said = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    return {"".join(text.partition("[")[0].split()) for table in TABLES for text in _values(said, table)}


def _values(said: object, table: tuple[str, ...]) -> Iterator[str]:
    for name in table:
        said = said.get(name) if isinstance(said, dict) else None
    yield from (text for text in said.values() if isinstance(text, str)) if isinstance(said, dict) else ()
