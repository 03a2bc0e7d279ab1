"""What a run of pytest is given so that it leaves a record of executed lines, for whoever starts one."""

from pathlib import Path

from gates.context import Context
from gates.evidence._coverage_plan import FOLDER, copy_plugin, coverage_env
from gates.project.import_paths import import_roots
from gates.task.task import Task


def noting(plugins: Path, task: Task, context: Context) -> tuple[list[str], dict[str, str]]:
    """Put the plugin into a folder; return the options and the environment that `ExecutedLines` is read after."""
    folder = context.folder("pytest").evidence / FOLDER
    return copy_plugin(plugins), coverage_env(folder, task, context)


def module_roots(task: Task, context: Context) -> list[Path]:
    """Return the folders that the modules of a task's implementation are imported from."""
    return import_roots(task, context)
