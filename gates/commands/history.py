"""What `gates history` shows: the runs of a task so far, and how its numbers went on this machine."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gates.checks.measures.past_runs import this_machine
from gates.config import Project
from gates.project import run_log
from gates.project.run_log import LoggedRun
from gates.task import loading as spec
from gates.task.task import Task
from gates.words import sparkline


@dataclass(frozen=True)
class HistoryRequest:
    """What was asked for on the command line; `last` is how many runs are shown."""

    project: Project
    task: str
    form: str
    last: int


def perform(request: HistoryRequest) -> str:
    """Return the runs of a task, the oldest first."""
    task = spec.of_project(request.task, request.project)
    runs = run_log.read(request.project.root, task.id)[-request.last :]
    if request.form == "json":
        return json.dumps([run.model_dump(mode="json") for run in runs], indent=1) + "\n"
    return "\n".join([*_lines(task, runs), ""])


def _lines(task: Task, runs: Sequence[LoggedRun]) -> Iterator[str]:
    yield f"{task.id}  {task.title}"
    if not runs:
        yield f"  no run is in {run_log.NAME}; `gates run {task.id}` adds one"
        return
    here = this_machine()
    for run in runs:
        asked = [*([f"--only {run.only}"] if run.only else []), *([] if run.machine == here else ["another machine"])]
        yield (
            f"  {run.at}  {run.decision.value:<14}  {run.score:>3}/100  {run.revision:<13}  "
            f"{run.duration_s:>7.1f} s  {', '.join([' '.join(run.gates) or 'no gate', *asked])}"
        )
    yield from _courses([run for run in runs if run.machine == here])


def _courses(runs: Sequence[LoggedRun]) -> Iterator[str]:
    """Yield how each number went; only what one machine measured stands in one row."""
    courses: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        for number in run.numbers:
            courses.setdefault((number.name, number.unit), []).append(number.value)
    if courses:
        yield ""
        yield "  medians on this machine, the oldest first; no verdict rests on them"
    for (name, unit), values in courses.items():
        yield f"  {name}: {sparkline(values)}  {values[0]:.4g} -> {values[-1]:.4g} {unit}, {len(values)} runs"
