"""The last proof of a task: read back, and compared with the files that it rests on."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from gates import config
from gates.check import Evidence
from gates.context import Context
from gates.errors import EvidenceUnavailable, UsageError
from gates.project.files import files_of
from gates.proof import PROOF, Proof
from gates.task.task import Task

SETTINGS = ("pyproject.toml", "pytest.ini", "setup.cfg", "tox.ini", "conftest.py")


class LastProof(Evidence):
    """What the last `gates prove` came to, and whether it speaks of the files as they are now."""

    proof: Proof
    fits: bool

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Read the proof from the folder of the task's reports."""
        try:
            path = config.reports_of(context.root) / task.id / PROOF
        except UsageError as error:
            raise EvidenceUnavailable(str(error)) from error
        if not path.is_file():
            raise EvidenceUnavailable(f"there is no proof yet (run `gates prove {task.id}`)")
        try:
            proof = Proof.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            reason = str(error).splitlines()[0]
            raise EvidenceUnavailable(f"{context.shown(path)} is no proof of this version: {reason}") from error
        if proof.task != task.id:
            raise EvidenceUnavailable(f"{context.shown(path)} is a proof of {proof.task!r}")
        return cls(how=f"{context.shown(path)}", proof=proof, fits=proof.digest == digest(task, context.root))


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
