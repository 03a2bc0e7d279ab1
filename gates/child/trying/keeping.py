"""The copy that a worker runs in: one fault is put in, and afterwards everything is as it was."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

PLAN, RESULTS = "plan.json", "results.jsonl"  # what a worker is to try, and what came of it
MARK = "where a mark is left"  # of code that is called, in the text of a fault
CACHES = {"__pycache__", ".pytest_cache", ".hypothesis"}
LATER_NS = 7_000_000_000  # a file's compiled form is told by whole seconds


class Copy:
    """A copy of the project beside a pristine one that nothing runs in."""

    def __init__(self, root: Path, pristine: Path, turn: int = 0) -> None:
        self.root, self._pristine, self._turn = root, pristine, turn
        self._state = dict(_stamps(root))

    def put(self, name: str, text: str) -> None:
        """Write a file with a fault, and let it look newer than all that was compiled from it."""
        path = self.root / name
        before = (self._pristine / name).stat().st_mtime_ns
        path.write_bytes(text.encode("utf-8", "backslashreplace"))
        self._turn += 1
        os.utime(path, ns=(before + LATER_NS * self._turn,) * 2)

    def restore(self) -> None:
        """Bring back every file that is not as it was, remove what is new."""
        now = dict(_stamps(self.root))
        changed = [name for name in {**self._state, **now} if self._state.get(name) != now.get(name)]
        for name in sorted(changed, reverse=True):
            self._bring_back(name)

    def _bring_back(self, name: str) -> None:
        path, source = self.root / name, self._pristine / name
        with suppress(OSError):
            path.parent.chmod(0o700)
        if path.is_dir() and not path.is_symlink():
            with suppress(OSError):
                path.chmod(0o700)
            shutil.rmtree(path, ignore_errors=True)
        elif path.exists() or path.is_symlink():
            path.unlink()
        if source.exists() or source.is_symlink():
            for folder in reversed(path.relative_to(self.root).parents):
                (self.root / folder).mkdir(exist_ok=True)
            shutil.copy2(source, path, follow_symlinks=False)
            self._state[name] = _stamp(path)


def marked(text: str, mark: Path) -> str:
    """Return a text that leaves its mark in a place."""
    return text.replace(repr(MARK), repr(str(mark)))


def _stamps(root: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield each file of a copy with what tells that it was changed; caches are nobody's concern."""
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in CACHES]
        for name in files:
            path = Path(folder, name)
            with suppress(FileNotFoundError):
                yield path.relative_to(root).as_posix(), _stamp(path)


def _stamp(path: Path) -> tuple[int, ...]:
    found = path.lstat()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode, found.st_ino


def lines_in(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file that are whole, each as JSON; what is there is what was done."""
    found = []
    with suppress(OSError):
        for line in path.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError):
                found.append(json.loads(line))
    return found
