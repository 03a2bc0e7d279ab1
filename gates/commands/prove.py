"""What `gates prove` does: load, check the declared faults, prove, and write proof.md and proof.json."""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from gates import store
from gates.check import writable
from gates.child.guardian import guarded_folder
from gates.child.interrupts import stop_if_interrupted, uninterrupted
from gates.config import Settings
from gates.context import Context
from gates.errors import GatesError
from gates.project.files import near
from gates.project.revision import web_of
from gates.proving import page
from gates.proving.making import check_declared
from gates.proving.proof import PROOF, Proof
from gates.proving.proving import Asked, prove
from gates.task import loading as spec
from gates.task.task import Task

PAGE = "proof.md"


@dataclass(frozen=True)
class ProveRequest:
    """What was asked for on the command line, defaults filled in."""

    task: str
    root: Path
    settings: Settings
    only: str | None
    budget_s: float
    jobs: int
    fresh: bool
    out: Path | None
    timeout_s: float
    python: str


def perform(request: ProveRequest, *, say: Callable[[str], None]) -> tuple[str, int]:
    """Prove a task and publish the proof; return the summary and the exit code."""
    path = spec.find(request.task, request.root / request.settings.tasks, request.root)
    task = spec.load(path, request.root)
    if request.only:
        task.criterion(request.only)
    check_declared(task, path, request.root)
    out = request.out or request.root / request.settings.reports / task.id
    store.prepare(out)
    web = web_of(request.root)  # before the faults are tried, as what they are tried on
    with guarded_folder() as folder:
        context = Context(root=request.root, evidence=folder, python=request.python, timeout_s=request.timeout_s,
                          rules=request.root / request.settings.rules)  # fmt: skip
        asked = Asked(
            only=request.only,
            budget_s=request.budget_s,
            jobs=request.jobs,
            fresh=request.fresh,
            reports=request.root / request.settings.reports,
            state=sha256(f"{request.root}\0{task.path}".encode("utf-8", "backslashreplace")).hexdigest()[:24],
        )
        proof = _with_earlier(task, writable(prove(task, context, asked, say)), out)
    files = {
        PAGE: page.markdown(proof, web),
        PROOF: proof.model_dump_json(indent=1, by_alias=True) + "\n",
    }
    _publish(out, files)
    return f"{page.text(proof)}\nproof: {near(out) / PAGE}\n", proof.exit_code


def _with_earlier(task: Task, proof: Proof, out: Path) -> Proof:
    """Add the criteria that were not asked for from the last proof, where that speaks of the same files."""
    try:
        earlier = Proof.model_validate_json((out / PROOF).read_bytes())
    except (OSError, ValidationError):
        return proof
    if (earlier.task, earlier.digest) != (proof.task, proof.digest):
        return proof
    known = {criterion.id: criterion for criterion in (*earlier.criteria, *proof.criteria)}
    return proof.model_copy(update={"criteria": tuple(known[c.id] for c in task.criteria if c.id in known)})


def _publish(out: Path, files: dict[str, str]) -> None:
    """Put files into a folder, each whole; what tells the last proof is put there last."""
    stop_if_interrupted()
    with uninterrupted():
        staged: list[tuple[Path, Path]] = []
        try:
            for name, text in files.items():
                number, temporary = tempfile.mkstemp(dir=out, prefix=f"{store.STAGING}{os.getpid()}-")
                staged.append((Path(temporary), out / name))
                with os.fdopen(number, "w", encoding="utf-8", newline="\n") as file:
                    file.write(text)
                Path(temporary).chmod(0o644)
            for temporary_path, path in staged:
                temporary_path.replace(path)
        except OSError as error:
            raise GatesError(f"the proof cannot be written into {str(out)!r}: {error.strerror or error}") from error
        finally:
            for temporary_path, _ in staged:
                with suppress(OSError):
                    temporary_path.unlink(missing_ok=True)
