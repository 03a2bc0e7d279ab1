"""The log of a project's runs: a line for each in `.gates/history.jsonl`, as context; no verdict rests on it."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from pydantic import Field, ValidationError

from gates.model import Decision, Model

NAME = Path(".gates", "history.jsonl")
MOST_BYTES = 16 * 1024 * 1024


class Number(Model):
    """The median of what a run measured, by a name that stays the same from run to run."""

    name: str
    value: float = Field(allow_inf_nan=False)
    unit: str
    n: int


class LoggedRun(Model):
    """One run: when, of which revision, on which machine, how it ended, and the medians of what it measured."""

    task: str
    at: str
    commit: str | None
    dirty: bool | None
    digest: str
    machine: str
    decision: Decision
    score: int
    gates: tuple[str, ...]
    only: str | None = None
    duration_s: float
    numbers: tuple[Number, ...] = ()

    @property
    def revision(self) -> str:
        """Return the commit as people read it, with a plus where the work tree differed from it."""
        return f"{self.commit[:12]}{'+' if self.dirty else ''}" if self.commit else "no commit"


def append(root: Path, run: LoggedRun) -> str:
    """Add a run to the log; return why it is not there, where that is so."""
    path = root / NAME
    try:
        path.parent.mkdir(exist_ok=True)
        with suppress(FileExistsError), (path.parent / ".gitignore").open("x", encoding="utf-8") as file:
            file.write("*\n")
        with path.open("a", encoding="utf-8", newline="\n") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(f"{run.model_dump_json()}\n")
    except OSError as error:
        return f"{path} cannot be written: {error.strerror or error}"
    return ""


def read(root: Path, task: str) -> tuple[LoggedRun, ...]:
    """Return the runs of a task, the oldest first; a line that is no run is passed over."""
    found = []
    with suppress(OSError), (root / NAME).open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - MOST_BYTES))
        for line in file.read().split(b"\n"):
            with suppress(ValidationError):
                found.append(LoggedRun.model_validate_json(line))
    return tuple(run for run in found if run.task == task)
