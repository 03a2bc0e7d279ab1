"""What the coverage plugin is told before a test run, and where it leaves what it saw."""

import json
from pathlib import Path

from gates.context import Context
from gates.project.files import copy_package
from gates.task.task import Task

COVERAGE_PLUGIN = "gates_pytest_coverage"
FOLDER = "coverage"


def copy_plugin(folder: Path) -> list[str]:
    """Copy the plugin to a folder that the project's interpreter looks in; return the options that load it."""
    source = Path(__file__).with_name("_pytest_coverage")
    copy_package(source, folder / COVERAGE_PLUGIN)
    return ["-p", f"{COVERAGE_PLUGIN}.hooks"]


def coverage_env(folder: Path, task: Task, context: Context) -> dict[str, str]:
    """Make the folder that the plugin writes to, and return the environment that tells it what to trace."""
    folder.mkdir(parents=True, exist_ok=True)
    tests = (path.split("::")[0] for path in (*task.tests, *(path for c in task.criteria for path in c.tests)))
    entries = dict.fromkeys((*task.implementation, *tests))
    paths = [str(path) for entry in entries for path in _patterns(context.root / entry)]
    return {"GATES_COVERAGE": json.dumps({"folder": str(folder), "paths": paths, "root": str(context.root)})}


def _patterns(path: Path) -> list[str]:
    """Return a path as a pattern that matches it alone, or all below it."""
    plain = "".join("?" if sign in "*?[]" else sign for sign in str(path))
    return [f"{plain}/*"] if path.is_dir() else [plain]


def noting(plugins: Path, task: Task, context: Context) -> tuple[list[str], dict[str, str]]:
    """Put the plugin into a folder; return the options and the environment that `ExecutedLines` is read after."""
    folder = context.folder("pytest").evidence / FOLDER
    return copy_plugin(plugins), coverage_env(folder, task, context)
