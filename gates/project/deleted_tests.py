"""Tests that a task names, that the merge base has, and that the change deleted."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from gates.errors import GatesError
from gates.project import merge_base as bases
from gates.project.history import History
from gates.project.two_states import TwoStates


def deleted_tests(paths: Iterable[str], root: Path, base: str | None) -> tuple[str, ...]:
    """Return the named files and tests that the merge base has and the work tree has not; none without a base."""
    paths = tuple(dict.fromkeys(paths))
    try:
        history = History(root)
        states = TwoStates(history, bases.find(history, base).commit, root)
        old, new = states.named(dict.fromkeys(path.split("::")[0] for path in paths))
    except GatesError:
        return ()
    return tuple(path for path in paths if _is_written(path, old) and not _is_written(path, new))


def _is_written(path: str, files: Mapping[str, bytes]) -> bool:
    """Return whether the file of a test is there, and each class and function that its id names in it."""
    file, *names = path.split("[")[0].split("::")
    made = (rb"(?m)^\s*(?:async\s+def|def|class)\s+%b\b" % re.escape(name.encode()) for name in names)
    return file in files and all(re.search(pattern, files[file]) for pattern in made)
