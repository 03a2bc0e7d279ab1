"""What `gates list` shows: the tasks, their criteria, and how each stood in its last run."""

from gates import store
from gates.config import Project
from gates.errors import UsageError
from gates.report import Report
from gates.task import loading as spec
from gates.task.task import Task


def overview(project: Project) -> tuple[list[str], list[str]]:
    """Return the lines of the list, and what is wrong with the task files that could not be loaded."""
    lines: list[str] = []
    broken: list[str] = []
    named: dict[str, list[str]] = {}
    files = spec.task_files(project.tasks)
    for path in files:
        try:
            task = spec.load(path, project.root)
            report = store.last(project.reports / task.id)
        except UsageError as error:
            broken.append(str(error))
            continue
        lines += _task(task, report)
        named.setdefault(task.id, []).append(task.path)
    broken += [spec.twins(name, paths) for name, paths in named.items() if len(paths) > 1]
    if not files:
        lines.append(f"no task file (*.yaml) in {project.settings.tasks!r}")
    return lines, broken


def _task(task: Task, report: Report | None) -> list[str]:
    if report is None:
        verdict = "never run"
    else:
        stale = "" if report.task.digest == task.digest else "; the task file has changed since"
        verdict = f"{report.headline} on {report.started_at}{stale}"
    status = {criterion.id: criterion.status.value for criterion in report.criteria} if report else {}
    return [
        f"{task.id}  {task.title}  [{verdict}]",
        *(f"  {c.id:<6} {c.level.value:<9} {status.get(c.id, '-'):<16} {c.text}" for c in task.criteria),
    ]
