"""What was tried before, of the same state of all that it rests on: a proof can be taken up again."""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from gates import __version__
from gates.project.files import cache_folder, files_of
from gates.proving.proof import End, TriedFault
from gates.task.task import Task

FORM = 1
SETTINGS = ("pyproject.toml", "pytest.ini", "setup.cfg", "tox.ini", "conftest.py")


class _File(BaseModel):
    head: str
    faults: dict[str, TriedFault]


class Known:
    """The faults of a task that were tried, by criterion and fault; it lies outside of the project."""

    def __init__(self, name: str, digest: str, *, fresh: bool) -> None:
        self._path: Path = cache_folder() / "prove" / f"{name}.json"
        self._head = f"{FORM} {__version__} {digest}"
        self._faults = {} if fresh else self._read()
        self.taken_up = len(self._faults)

    def get(self, criterion: str, fault: str) -> TriedFault | None:
        """Return how a fault ended, where it was tried to its end."""
        return self._faults.get(f"{criterion} {fault}")

    def put(self, criterion: str, fault: TriedFault) -> None:
        """Keep how a fault ended; one that was not tried will be."""
        if fault.end is not End.NOT_TRIED:
            self._faults[f"{criterion} {fault.id}"] = fault

    def save(self) -> None:
        """Write all of it, whole or not at all; a folder that cannot be written to is no error."""
        file = _File(head=self._head, faults=self._faults)
        with suppress(OSError, PydanticSerializationError):  # a name that is not UTF-8 is not kept
            text = file.model_dump_json()
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            number, name = tempfile.mkstemp(dir=self._path.parent)
            with os.fdopen(number, "w", encoding="utf-8") as written:
                written.write(text)
            Path(name).replace(self._path)

    def _read(self) -> dict[str, TriedFault]:
        try:
            found = _File.model_validate_json(self._path.read_bytes())
        except (OSError, ValueError, ValidationError):
            return {}
        return found.faults if found.head == self._head else {}


def digest(task: Task, root: Path) -> str:
    """Return the SHA-256 over the task and every file of its implementation, its tests and their settings."""
    whole = hashlib.sha256(task.digest.encode())
    for path in sorted(set(_files(task, root))):
        whole.update(f"{path.relative_to(root).as_posix()}\0".encode("utf-8", "backslashreplace"))
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def _files(task: Task, root: Path) -> Iterator[Path]:
    tests = tuple(dict.fromkeys([*task.tests, *(path for c in task.criteria for path in c.tests)]))
    yield from files_of((*task.implementation, *tests), root)
    yield from (root / name for name in SETTINGS if (root / name).is_file())
    for path in tests:
        folder = (root / path.split("::")[0]).parent
        while folder.is_relative_to(root):
            if (folder / "conftest.py").is_file():
                yield folder / "conftest.py"
            if folder == root:
                break
            folder = folder.parent
