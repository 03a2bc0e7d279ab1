"""What `gates prove` does: load, prove, and write proof.md and proof.json."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gates import store
from gates.check import writable
from gates.child.guardian import guarded_folder
from gates.config import Project
from gates.project.files import near
from gates.project.revision import web_of
from gates.proving.proof import PROOF, markdown, text
from gates.proving.proving import Asked, prove
from gates.task import loading as spec

PAGE = "proof.md"


@dataclass(frozen=True)
class ProveRequest:
    """What was asked for on the command line, defaults filled in."""

    task: str
    project: Project
    only: str | None
    at_least: float
    budget_s: float
    jobs: int
    out: Path | None


def perform(request: ProveRequest, *, say: Callable[[str], None]) -> tuple[str, int]:
    """Prove a task and publish the proof; return the summary and the exit code."""
    task = spec.of_project(request.task, request.project)
    if request.only:
        task.criterion(request.only)
    out = request.out or request.project.reports / task.id
    store.prepare(out)
    web = web_of(request.project.root)  # before the faults are tried, as what they are tried on
    with guarded_folder() as folder:
        context = request.project.context(folder)
        asked = Asked(request.only, request.at_least, request.budget_s, request.jobs, request.project.reports)
        proof = writable(prove(task, context, asked, say))
    told = proof.model_dump_json(indent=1, by_alias=True) + "\n"
    store.write({out / PAGE: markdown(proof, web).encode(), out / PROOF: told.encode()}, "the proof", out)
    return f"{text(proof)}\nproof: {near(out) / PAGE}\n", proof.exit_code
