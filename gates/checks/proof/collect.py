"""The last proof of a task: read back, and compared with the files that it rests on."""

from typing import ClassVar, Self

from pydantic import ValidationError

from gates import config
from gates.check import Evidence
from gates.context import Context
from gates.errors import EvidenceUnavailable, UsageError
from gates.proving.proof import PROOF, Proof
from gates.proving.proving import digest
from gates.task.task import Task


class LastProof(Evidence):
    """What the last `gates prove` came to, and whether it speaks of the files as they are now."""

    lasting: ClassVar[bool] = False
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
