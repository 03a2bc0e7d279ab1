"""The modules that lie beside the tests of a task: helpers, and classes whose tests others inherit."""

from collections.abc import Iterator
from pathlib import Path

from gates.project.files import files_of
from gates.task.task import Task


def files_beside_tests(task: Task, root: Path) -> Iterator[Path]:
    """Yield the Python files in the folders of the tests, as far up as these are of tests alone."""
    own = [root / path for path in task.implementation]
    paths = dict.fromkeys([*task.tests, *(path for criterion in task.criteria for path in criterion.tests)])
    folders = {folder for path in paths if (folder := _folder(root / path.split("::")[0], root, own)) != root}
    for path in files_of(tuple(str(folder) for folder in folders), root):
        nearest = max((len(folder.parts) for folder in folders if path.is_relative_to(folder)), default=0)
        inside = max((len(folder.parts) for folder in own if path.is_relative_to(folder)), default=0)
        if path.suffix == ".py" and nearest > inside:
            yield path


def _folder(path: Path, root: Path, own: list[Path]) -> Path:
    """Return the outermost folder around tests in which no implementation lies."""
    folder = path if path.is_dir() else path.parent
    while folder.is_relative_to(root) and folder.parent not in {root, folder}:
        around = folder.parent
        if any(one.is_relative_to(around) or around.is_relative_to(one) for one in own):
            break
        folder = around
    return folder if folder.is_relative_to(root) else root
