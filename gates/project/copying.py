"""Copies of a project: all that its tests may need, and none of what only takes room.

The history of a repository is not copied: a copy has a repository of its own that borrows the project's objects.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from gates.errors import EvidenceUnavailable, UsageError
from gates.project.checkout import give_history
from gates.project.history import run_git

LEFT_OUT = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", ".tox", ".nox", "node_modules", "__pycache__", ".pytest_cache",
     ".ruff_cache", ".mypy_cache", ".hypothesis", ".ipynb_checkpoints", ".import_linter_cache", ".eggs"}
)  # fmt: skip
ELSEWHERE = frozenset({"HOME", "TMPDIR"})  # what lies there is no part of a project
REPORT = ("result.json", "proof.json")
COMPILED = frozenset({".so", ".pyd", ".dylib", ".dll", ".pyc"})
SPARE_BYTES = 256 * 1024**2


def copy_project(root: Path, target: Path, reports: Path, copies: int) -> None:
    """Copy a project, links inside of it staying inside; raise `UsageError` where so many copies do not fit."""
    size = sum(_size(path) for path in _files(root, reports))
    target.mkdir()
    free = shutil.disk_usage(target).free
    if size * (copies + 1) + SPARE_BYTES > free:
        raise UsageError(
            f"{copies + 1} copies of {root} need {size * (copies + 1) >> 20} MiB, and {target.parent} has "
            f"{free >> 20}; set TMPDIR to a folder with more room, or remove what the tests do not need"
        )
    leave = _leave(root, reports)
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        folders[:] = [name for name in folders if not leave(here / name)]
        there = target / here.relative_to(root)
        there.mkdir(exist_ok=True)
        own = (each for each in files if each != ".git")  # such a file names the repository of another work tree
        for name in [*own, *(each for each in folders if (here / each).is_symlink())]:
            with suppress(FileNotFoundError):
                _copy(here / name, there / name, root, target)
    with suppress(EvidenceUnavailable):  # a copy without its history says so by the tests that need it
        give_history(root, target)


def lend_generated(root: Path, target: Path, reports: Path) -> None:
    """Copy what git ignores and a build once wrote (such as `_version.py`) to an older state of the project.

    Compiled extensions are left out: they hold the code of today.
    """
    done = run_git(root, ("ls-files", "--others", "--ignored", "--exclude-standard", "-z", "--", "."))
    leave = _leave(root, reports)
    for name in filter(None, os.fsdecode(done.stdout).split("\0")):
        source, there = root / name, target / name
        above = [folder for folder in source.parents if folder.is_relative_to(root)]
        if source.suffix in COMPILED or any(map(leave, above)) or os.path.lexists(there):
            continue
        there.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            _copy(source, there, root, target)


def relocated(env: Mapping[str, str], root: Path, copy: Path) -> dict[str, str]:
    """Return `PYTHONPATH` and the variables that name places of a project, each with the places of a copy."""
    found = {}
    for name, value in env.items():
        moved = os.pathsep.join(_moved(each, root, copy) for each in value.split(os.pathsep))
        if name == "PYTHONPATH" or (moved != value and name not in ELSEWHERE):
            found[name] = moved
    return found


def _moved(text: str, root: Path, copy: Path) -> str:
    for path in (Path(text), Path(os.path.realpath(text))):
        if Path(text).is_absolute() and path.is_relative_to(root):
            there = copy / path.relative_to(root)
            return str(there) if os.path.lexists(there) else text
    return text


def _copy(source: Path, target: Path, root: Path, copy: Path) -> None:
    if not source.is_symlink():
        if source.is_file():  # a pipe or a socket is no part of a project
            shutil.copy2(source, target)
        return
    to = source.readlink()
    if to.is_absolute() and to.is_relative_to(root):  # a copy is copied itself
        to = Path(os.path.relpath(copy / to.relative_to(root), target.parent))
    elif not to.is_absolute() and not Path(os.path.normpath(source.parent / to)).is_relative_to(root):
        to = Path(os.path.normpath(source.parent / to))
    target.symlink_to(to)


def _files(root: Path, reports: Path) -> Iterator[Path]:
    leave = _leave(root, reports)
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not leave(Path(folder, name))]
        yield from (Path(folder, name) for name in files)


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _leave(root: Path, reports: Path) -> Callable[[Path], bool]:
    """Return what tells the folders that no test can need: history, environments, caches, earlier reports."""

    def leave(path: Path) -> bool:
        if path.name in LEFT_OUT and path.is_dir():
            return True
        if (path / "pyvenv.cfg").is_file() or path.is_relative_to(root / ".gates"):
            return True
        return path.is_relative_to(reports) and path != reports and any((path / name).is_file() for name in REPORT)

    return leave
