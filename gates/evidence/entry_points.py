"""Production code run to its end: the entry points that a task names."""

import re
from pathlib import Path
from typing import Self

from gates import process
from gates.context import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.kind import Evidence
from gates.model import CommandRecord, Location, Model
from gates.process import ProcessRun
from gates.task import EntryPoint, Task

FRAME = re.compile(r'^\s*File "(?P<path>[^"]+)", line (?P<line>\d+)', re.MULTILINE)


class EntryRun(Model):
    """One entry point: how it ended, and for a crash the innermost line in the project."""

    index: int
    name: str
    process: ProcessRun | None
    problem: str = ""
    crash: Location | None = None


class EntryPointRuns(Evidence):
    """All entry points of a task, each run once."""

    runs: tuple[EntryRun, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Run each entry point in its own process."""
        if not task.entry_points:
            raise EvidenceUnavailable(f"{task.path} names no 'entry_points'")
        inside = context.folder("entry_points")
        runs = tuple(_run(i, entry, context, inside.evidence) for i, entry in enumerate(task.entry_points))
        return cls(
            how="each command run once, in a process of its own",
            commands=tuple(
                CommandRecord(
                    purpose="entry point",
                    argv=tuple(task.entry_points[run.index].name.split(" ")),
                    ended=run.process.ended if run.process else run.problem,
                    duration_s=run.process.duration_s if run.process else 0,
                )
                for run in runs
            ),
            runs=runs,
        )


def _run(index: int, entry: EntryPoint, context: Context, folder: Path) -> EntryRun:
    name = entry.name
    argv = context.argv(entry.run or (), out=str(folder / f"{index}.out"))
    limit = entry.timeout_s or context.timeout_s
    try:
        ended = process.run(argv, cwd=context.root, timeout_s=limit, log=folder / str(index))
    except OSError as error:
        return EntryRun(index=index, name=name, process=None, problem=f"cannot be started: {error.strerror or error}")
    return EntryRun(index=index, name=name, process=ended, crash=innermost(ended.stderr.tail, context))


def innermost(text: str, context: Context) -> Location | None:
    """Return the innermost frame of the last traceback in a text that lies in the project."""
    last = text.rpartition("Traceback (most recent call last):")[2]
    for match in reversed(list(FRAME.finditer(last))):
        path = Path(match["path"])
        absolute = path if path.is_absolute() else context.root / path
        if int(match["line"]) and absolute.is_relative_to(context.root) and "site-packages" not in absolute.parts:
            return Location(path=context.shown(absolute), line=int(match["line"]))
    return None
