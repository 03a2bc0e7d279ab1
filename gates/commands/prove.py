"""What `gates prove` does: run the tests without a fault, make faults, try them, and write proof.md and proof.json."""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path

from gates import store
from gates.check import writable
from gates.child.guardian import guarded_folder
from gates.config import Context, Project
from gates.errors import EvidenceUnavailable
from gates.model import Model
from gates.project.files import near
from gates.project.policy import TEMPLATES
from gates.project.revision import environment, web_of
from gates.project.revision import observe as observe_revision
from gates.proving.bench import Bench, Told
from gates.proving.cases import Baseline, Case, Trial, observe
from gates.proving.proof import PROOF, PROOF_SCHEMA, CriterionProof, End, Proof, TriedFault, markdown, text
from gates.proving.source import Fault
from gates.task import loading as spec
from gates.task.task import Task, narrowed
from gates.words import printable

PAGE = "proof.md"
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
    if request.only:
        task.criterion(request.only)
    out = request.out or request.project.reports / task.id
    store.prepare(out)
    web = web_of(request.project.root)  # before the faults are tried, as what they are tried on
    with guarded_folder() as folder:
        context = request.project.context(folder)
        proof = writable(_prove(task, context, request, say))
    told, page = proof.model_dump_json(indent=1, by_alias=True), markdown(proof, web, request.project.root / TEMPLATES)
    store.write({out / PAGE: page.encode(), out / PROOF: f"{told}\n".encode()}, "the proof", out)
    return f"{text(proof)}\nproof: {near(out) / PAGE}\n", proof.exit_code


def _prove(task: Task, context: Context, asked: ProveRequest, say: Callable[[str], None]) -> Proof:
    """Try the faults of each criterion and tell what noticed them."""
    begun, clock = datetime.now(UTC), time.time()
    chosen = [task.criterion(asked.only)] if asked.only else list(task.criteria)
    before = observe_revision(task, context)
    bench = Bench(task, context, asked.jobs)
    say("looking at the evidence without a fault")
    run, baseline = observe(narrowed(task, asked.only), bench)
    try:
        trial = Trial(task, bench, run, baseline)
    except EvidenceUnavailable as error:
        raise EvidenceUnavailable(f"nothing can be proved: {error}") from error
    cases = [trial.case(criterion) for criterion in chosen]
    ends = _tried(cases, bench, baseline, time.time() + asked.budget_s, say)
    changed = observe_revision(task, context).digest != before.digest
    return Proof(
        schema=PROOF_SCHEMA,
        task=task.id,
        title=task.title,
        digest=before.digest,
        commit=before.commit,
        started_at=begun.strftime("%Y-%m-%dT%H:%M:%SZ"),
        duration_s=round(time.time() - clock, 1),
        budget_s=asked.budget_s,
        environment=environment(context),
        notes=tuple(filter(None, (baseline.note, CHANGED if changed else ""))),
        criteria=tuple(_told(task, case, ends, asked.at_least, passed_by=trial.passed_by(case)) for case in cases),
    )


def _tried(
    cases: list[Case], bench: Bench, baseline: Baseline, deadline: float, say: Callable[[str], None]
) -> dict[str, Told]:
    """Let the tests look at every fault, each criterion in turn; return what came of it by criterion and fault."""
    rows = [[(case, fault) for fault in case.faults] for case in cases if case.can_be_tried]
    pairs = [pair for turn in zip_longest(*rows) for pair in turn if pair]
    if not pairs:
        return {}
    say(f"{len(pairs)} faults to try by tests")
    asked = [baseline.asked(_name(case, fault), fault, case.tests[fault.id]) for case, fault in pairs]
    results = bench.try_all(asked, peak_bytes=baseline.peak_bytes, deadline=deadline, say=say)
    return {result["id"]: result["tries"][0] for result in results if result["tries"]}


def _name(case: Case, fault: Fault) -> str:
    return f"{case.criterion.id} {fault.id}"


def _told(task: Task, case: Case, ends: Mapping[str, Told], least: float, *, passed_by: bool) -> CriterionProof:
    criterion = case.criterion
    return CriterionProof(
        id=criterion.id,
        text=criterion.text,
        level=criterion.level,
        location=task.place(criterion),
        killed_at_least=least,
        tests=len(case.own),
        shown_otherwise=bool(criterion.measures or task.shown_by(criterion)),
        problem=case.problem,
        notes=tuple(dict.fromkeys(case.notes)),
        sampled=case.sampled,
        passed_by=passed_by,
        faults=tuple(_end(case, fault, ends.get(_name(case, fault))) for fault in case.faults),
    )


def _end(case: Case, fault: Fault, result: Told | None) -> TriedFault:
    """Return how a fault ended, as far as it was tried."""
    told = result or {"end": End.NOT_TRIED, "by": "", "message": "", "seconds": 0}
    words = {name: printable(told[name]) for name in ("by", "message")}
    same = {name: getattr(fault, name) for name in ("id", "title", "location", "diff")}
    tests = tuple(map(printable, case.tests.get(fault.id, ())))
    return TriedFault(**same, **words, end=End(told["end"]), seconds=told["seconds"], tests=tests)
