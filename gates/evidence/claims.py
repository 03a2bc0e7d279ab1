"""Claims that a task's files and reports make, each with what was seen in the project's files of which it speaks."""

import hashlib
from pathlib import Path
from typing import Self

from gates.check import Evidence
from gates.claims import claims_file, reading
from gates.claims.claim import Claim
from gates.claims.sources import Looked, Sources
from gates.context import Context
from gates.errors import EvidenceUnavailable, UsageError
from gates.model import Model
from gates.task.task import Task
from gates.terminal import printable

MAX_BYTES = 2 * 1024 * 1024
YAML = {".yaml", ".yml"}


class ClaimsSource(Model):
    """One file of claims: what it claims, or the reason why that cannot be read."""

    path: str
    sha256: str = ""
    claims: tuple[Looked, ...] = ()
    problem: str = ""


class Claims(Evidence):
    """What every file of claims of a task says, looked up in the project's files."""

    sources: tuple[ClaimsSource, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Read every file of claims, and the lines that it speaks of."""
        if not task.claims:
            raise EvidenceUnavailable(f"{task.path} names no 'claims'")
        files = Sources(context.root)
        return cls(
            how="the files of claims, and the lines of the project that they name",
            sources=tuple(read(context.root / path, path, files) for path in task.claims),
        )

    def of(self, path: str) -> ClaimsSource | None:
        """Return what was read of a file."""
        return next((source for source in self.sources if source.path == path), None)


def read(path: Path, shown_as: str, files: Sources) -> ClaimsSource:
    """Read one file of claims: YAML in the form of `gates schema claims`, anything else as a Markdown report."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            return ClaimsSource(path=shown_as, problem=f"it has {size} bytes, more than {MAX_BYTES}")
        raw = path.read_bytes()
        claims = _claims(path, shown_as, raw)
    except OSError as error:
        return ClaimsSource(path=shown_as, problem=f"it cannot be read: {error.strerror or error}")
    except UnicodeDecodeError:
        return ClaimsSource(path=shown_as, problem="it is not UTF-8")
    except UsageError as error:
        return ClaimsSource(path=shown_as, problem=" ".join(str(error).split()))
    digest = hashlib.sha256(raw).hexdigest()
    return ClaimsSource(path=shown_as, sha256=digest, claims=tuple(files.look(claim) for claim in claims))


def _claims(path: Path, shown_as: str, raw: bytes) -> tuple[Claim, ...]:
    if path.suffix.lower() in YAML:
        return claims_file.load(path, shown_as)
    return reading.read(printable(raw.decode("utf-8-sig")), shown_as)
