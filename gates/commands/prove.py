"""What `gates prove` does: load, check the declared faults, prove, and write proof.md and proof.json."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from gates import store
from gates.check import writable
from gates.child.guardian import guarded_folder
from gates.config import Project
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
    project: Project
    only: str | None
    budget_s: float
    jobs: int
    fresh: bool
    out: Path | None


def perform(request: ProveRequest, *, say: Callable[[str], None]) -> tuple[str, int]:
    """Prove a task and publish the proof; return the summary and the exit code."""
    path = spec.find(request.task, request.project.tasks, request.project.root)
    task = spec.load(path, request.project.root)
    if request.only:
        task.criterion(request.only)
    check_declared(task, path, request.project.root)
    out = request.out or request.project.reports / task.id
    store.prepare(out)
    web = web_of(request.project.root)  # before the faults are tried, as what they are tried on
    with guarded_folder() as folder:
        context = request.project.context(folder)
        asked = Asked(
            only=request.only,
            budget_s=request.budget_s,
            jobs=request.jobs,
            fresh=request.fresh,
            reports=request.project.reports,
            state=sha256(f"{request.project.root}\0{task.path}".encode("utf-8", "backslashreplace")).hexdigest()[:24],
        )
        proof = _with_earlier(task, writable(prove(task, context, asked, say)), out)
    told = proof.model_dump_json(indent=1, by_alias=True) + "\n"
    store.write({out / PAGE: page.markdown(proof, web).encode(), out / PROOF: told.encode()}, "the proof", out)
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
