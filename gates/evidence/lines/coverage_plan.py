"""What the coverage plugin is told before a test run, and where it leaves what it saw."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from gates.context import Context
from gates.project.files import copy_package, files_of, import_roots, module_name
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
    told = {"folder": str(folder), "paths": paths, "root": str(context.root), "modules": modules_of(task, context)}
    return {"GATES_COVERAGE": json.dumps(told)}


def modules_of(task: Task, context: Context) -> dict[str, str]:
    """Return the names that the implementation's modules may be imported by, and the files they must come from."""
    return dict(_modules(task, context))


def _modules(task: Task, context: Context) -> Iterator[tuple[str, str]]:
    for path in files_of(task.implementation, context.root):
        for root in import_roots(task, context):
            if path.suffix != ".py" or not path.is_relative_to(root):
                continue
            name = module_name(path, root)
            if name and name.split(".")[0] not in sys.stdlib_module_names:
                yield name, os.path.realpath(path)


def _patterns(path: Path) -> list[str]:
    """Return a path as a pattern that matches it alone, or all below it."""
    plain = "".join("?" if sign in "*?[]" else sign for sign in str(path))
    return [f"{plain}/*"] if path.is_dir() else [plain]
