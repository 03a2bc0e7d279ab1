"""Where bundles lie: files and folders that were named, and the folder of the task among the project's own."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from gates.bundles.encoding import BadBundle, read
from gates.errors import UsageError
from gates.terminal import visible

SUFFIX = ".json"


def handed_in(named: Sequence[Path], committed: Path, task: str, root: Path) -> tuple[str, ...]:
    """Return the paths of the bundles to look at, as seen from the root, each once and in one order.

    Of a folder those that are of other tasks are passed over; raise `UsageError` for a path that leads nowhere.
    """
    found: set[Path] = set(_in_folder(committed, task)) if committed.is_dir() else set()
    for path in named:
        if path.is_dir():
            found |= set(_in_folder(path, task))
        elif path.exists() or path.is_symlink():
            found.add(path)
        else:
            raise UsageError(f"--evidence {str(path)!r}: there is no such file or folder")
    return tuple(sorted({_shown(path, root) for path in found}))


def _shown(path: Path, root: Path) -> str:
    """Return a path as seen from the root; raise `UsageError` for one that a report cannot name."""
    shown = Path(os.path.relpath(path.absolute(), root)).as_posix()
    if visible(shown) != shown:
        raise UsageError(f"{visible(shown)}: the name of the bundle holds what cannot be shown; rename it")
    return shown


def _in_folder(folder: Path, task: str) -> Iterator[Path]:
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            own = read(path).task.id == task
        except BadBundle:
            own = True  # it is named in the report, not passed over
        if own:
            yield path
