"""The log of runs, in `.gates/history.jsonl`, and what `gates history` shows of it; no verdict rests on it."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from gates.config import Project
from gates.measuring import machine
from gates.model import Decision, Model
from gates.project.files import append
from gates.task import loading as spec
from gates.words import sparkline

NAME = Path(".gates", "history.jsonl")
MOST_BYTES = 16 * 1024 * 1024


class LoggedRun(Model):
    """One run: when, of which revision, on which machine, how it ended, and the numbers that it judged."""

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
    numbers: dict[str, Annotated[float, Field(allow_inf_nan=False)]] = Field(default={})

    @property
    def revision(self) -> str:
        """Return the commit as people read it, with a plus where the work tree differed from it."""
        return f"{self.commit[:12]}{'+' if self.dirty else ''}" if self.commit else "no commit"


def log_run(root: Path, run: LoggedRun) -> str:
    """Add a run to the log; return why it is not there, where that is so."""
    return append(root / NAME, run.model_dump_json())


def runs_of(root: Path, task: str) -> tuple[LoggedRun, ...]:
    """Return the runs of a task, the oldest first; a line that is no run is passed over."""
    runs: list[LoggedRun] = []
    with suppress(OSError):
        for line in (root / NAME).read_bytes()[-MOST_BYTES:].split(b"\n"):
            with suppress(ValidationError):
                runs.append(LoggedRun.model_validate_json(line))
    return tuple(run for run in runs if run.task == task)


def perform(project: Project, task_id: str, last: int) -> Iterator[str]:
    """Yield the last runs of a task, so many at most, the oldest first."""
    task = spec.of_project(task_id, project)
    runs = runs_of(project.root, task.id)[-last:]
    yield f"{task.id}  {task.title}"
    if not runs:
        yield f"  no run is in {NAME}; `gates run {task.id}` adds one"
    here = machine.name()
    for run in runs:
        asked = [*([f"--only {run.only}"] if run.only else []), *([] if run.machine == here else ["another machine"])]
        ended, ran = f"{run.decision.value:<14}  {run.score:>3}/100", " ".join(run.gates) or "no gate"
        yield f"  {run.at}  {ended}  {run.revision:<13}  {run.duration_s:>7.1f} s  {', '.join([ran, *asked])}"
    yield from _courses([run for run in runs if run.machine == here])


def _courses(runs: Sequence[LoggedRun]) -> Iterator[str]:
    """Yield how each number went; only what one machine measured stands in one row."""
    names = dict.fromkeys(name for run in runs for name in run.numbers)
    if names:
        yield ""
        yield "  numbers on this machine, the oldest first; no verdict rests on them"
    for name in names:
        values = [run.numbers[name] for run in runs if name in run.numbers]
        yield f"  {name}: {sparkline(values)}  {values[0]:.4g} -> {values[-1]:.4g}, {len(values)} runs"
