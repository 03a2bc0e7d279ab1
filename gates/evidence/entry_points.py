"""Production code run to its end: the entry points that a task names, commands and callables."""

import json
import os
from pathlib import Path
from typing import Self

from gates.check import Evidence
from gates.child import process
from gates.child.process import ProcessRun
from gates.child.tracebacks import crash_of, warnings_of, written
from gates.context import Context
from gates.errors import EvidenceUnavailable
from gates.evidence._scripts import exit_code_of
from gates.evidence.test_records import Warned
from gates.model import CommandRecord, Location, Model
from gates.project.import_paths import import_roots
from gates.task.task import EntryPoint, Task
from gates.terminal import printable

RUNNER = Path(__file__).with_name("_call_runner.py")
# shown once for each line, as a developer sees them; all other warnings are shown anyway
DEPRECATIONS = "default::DeprecationWarning,default::PendingDeprecationWarning"


class EntryRun(Model):
    """One entry point: how it ended; for a crash the exception and the innermost line in the project.

    `error` is the exception's type and message, `function` the one that the crash was in; `returned` is what a
    callable returned, as `repr` shows it, cut to a bounded length, and `exit_code` what a console script makes of it.
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
    warnings: tuple[Warned, ...] = ()


class EntryPointRuns(Evidence):
    """All entry points of a task, each run once."""

    runs: tuple[EntryRun, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Run each entry point in its own process."""
        if not task.entry_points:
            raise EvidenceUnavailable(f"{task.path} names no 'entry_points'")
        inside = context.folder("entry_points")
        runs = tuple(_run(i, entry, task, context, inside.evidence) for i, entry in enumerate(task.entry_points))
        return cls(
            how="each command and each call made once, in a process of its own",
            commands=tuple(
                CommandRecord(
                    purpose="entry point",
                    argv=task.entry_points[run.index].run or (run.name,),
                    ended=run.process.ended if run.process else run.problem,
                    duration_s=run.process.duration_s if run.process else 0,
                )
                for run in runs
            ),
            runs=runs,
        )


def _run(index: int, entry: EntryPoint, task: Task, context: Context, folder: Path) -> EntryRun:
    name, result = entry.name, folder / f"{index}.result.json"
    argv = _argv(entry, task, context, result, out=folder / f"{index}.out")
    limit = entry.timeout_s or context.timeout_s
    env = {"PYTHONWARNINGS": os.environ.get("PYTHONWARNINGS") or DEPRECATIONS}
    try:
        ended = process.run(argv, cwd=context.root, timeout_s=limit, log=folder / str(index), env=env)
    except OSError as error:
        return EntryRun(index=index, name=name, process=None, problem=f"cannot be started: {error.strerror or error}")
    told = _result(result) if entry.call else {}
    text = written(folder / f"{index}.stderr.txt")
    problem = printable(told.get("problem", ""))
    clean_end = ended.exit_code == 0 and not ended.timed_out
    if entry.call and clean_end and "returned" not in told:
        problem = "the process ended before the call returned"
    crash = None if problem or clean_end else crash_of(text, context)
    return EntryRun(
        index=index,
        name=name,
        process=None if problem else ended,
        problem=problem,
        crash=crash.location if crash else None,
        error=": ".join(part for part in (crash.error, crash.message) if part) if crash else "",
        function=crash.function if crash else "",
        returned=printable(told["returned"]) if "returned" in told else None,
        exit_code=_exit_code(entry, told, context),
        warnings=tuple(warnings_of(text, context)),
    )


def _argv(entry: EntryPoint, task: Task, context: Context, result: Path, *, out: Path) -> list[str]:
    if entry.call is None:
        return context.argv(entry.run or (), out=str(out))
    paths = [str(path) for path in import_roots(task, context)]
    asked = json.dumps({"call": entry.call, "args": entry.args, "paths": paths})
    return [context.python, str(RUNNER), asked, str(result)]


def _exit_code(entry: EntryPoint, told: dict[str, str], context: Context) -> int | None:
    """Return what a callable that is a console script would end with."""
    try:
        return exit_code_of(entry.call or "", int(told["status"]), context.root, is_number=told["number"] == "True")
    except (KeyError, ValueError):
        return None


def _result(path: Path) -> dict[str, str]:
    """Return what the runner wrote; nothing where it did not come to that."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(name): str(value) for name, value in told.items()} if isinstance(told, dict) else {}
