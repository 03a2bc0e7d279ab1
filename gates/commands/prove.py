"""What `gates prove` does: run the tests without a fault, make faults, try them, and write proof.md and proof.json."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path

from gates import progress, store
from gates.check import writable
from gates.child.guardian import every
from gates.config import Context, Project
from gates.errors import EvidenceUnavailable
from gates.model import Model
from gates.project import revision
from gates.project.files import near
from gates.project.policy import TEMPLATES
from gates.proving.bench import Bench, benched
from gates.proving.cases import Trial, concluded, observe
from gates.proving.proof import PROOF, PROOF_SCHEMA, Proof, markdown, text
from gates.task import loading as spec
from gates.task.task import Task, narrowed

PAGE = "proof.md"
TELL_S = 10.0
CHANGED = "files of the task changed during the proof: it speaks of what was there at its beginning"


class ProveRequest(Model):
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
    narrowed(task, request.only)
    out = request.out or request.project.reports / task.id
    store.prepare(out)
    web = revision.web_of(request.project.root)  # before the faults are tried, as what they are tried on
    context = request.project.context(Path())
    with benched(task, context, request.jobs) as bench:
        proof = writable(_prove(task, context, bench, request, say))
    told, page = proof.model_dump_json(indent=1, by_alias=True), markdown(proof, web, request.project.root / TEMPLATES)
    store.write({out / PAGE: page.encode(), out / PROOF: f"{told}\n".encode()}, "the proof", out)
    return f"{text(proof)}\nproof: {near(out) / PAGE}\n", proof.exit_code


def _prove(task: Task, context: Context, bench: Bench, asked: ProveRequest, say: Callable[[str], None]) -> Proof:
    begun, clock = datetime.now(UTC), time.time()
    chosen = [task.criterion(asked.only)] if asked.only else list(task.criteria)
    before = revision.observe(task, context)
    say("looking at the evidence without a fault")
    baseline, note = observe(narrowed(task, asked.only), bench)
    try:
        trial = Trial(task, bench, baseline)
    except EvidenceUnavailable as error:
        raise EvidenceUnavailable(f"nothing can be proved: {error}") from error
    cases = [trial.case(criterion, asked.at_least) for criterion in chosen]
    turns = zip_longest(*(faults.items() for _, faults in cases))  # each criterion in turn
    faults = dict(pair for turn in turns for pair in turn if pair)
    if faults:
        say(f"{len(faults)} faults to try by tests")
    with every(TELL_S, lambda: say(progress.so_far())):
        bench.try_all(baseline.run, tried := baseline.faults(faults, asked.budget_s))
    changed = revision.observe(task, context).digest != before.digest
    return Proof(
        schema=PROOF_SCHEMA,
        task=task.id,
        title=task.title,
        digest=before.digest,
        commit=before.commit,
        started_at=begun.strftime("%Y-%m-%dT%H:%M:%SZ"),
        duration_s=round(time.time() - clock, 1),
        budget_s=asked.budget_s,
        environment=revision.environment(context),
        notes=tuple(filter(None, (note, CHANGED if changed else ""))),
        criteria=tuple(concluded(*case, tried.ends) for case in cases),
    )
