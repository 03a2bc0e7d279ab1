"""Builders of bundles with honest defaults: a speedup of 2 on a CUDA device, made for the task as it is."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from building import a_criterion, a_measure, a_process, a_task, evidence, measured, samples

from gates.bundles import Bundle, BundledRun, Definition, definition_of, encode
from gates.check import EvidenceSet
from gates.evidence.bundles import Bundles, HandedIn, SeenRun
from gates.measuring.samples import Samples
from gates.measuring.taken import MeasurementRun
from gates.task.task import Task

ON_CUDA = a_criterion(id="AC2", tests=[], code=[], measures=[a_measure(on="cuda")], line=12)
CUDA = samples(device="cuda")
ORIGIN = {
    "at": "2026-01-02T03:04:05Z",
    "by": "somebody@somewhere",
    "command": ["gates", "measure", "T1", "--on", "cuda"],
    "environment": {"python": "3.11.0"},
    "commit": "c" * 40,
    "dirty": False,
}


def a_cuda_task(**changes: Any) -> Task:
    """A task with one criterion, which is measured on a CUDA device."""
    return a_task(**{"entry_points": [], "criteria": [ON_CUDA], **changes})


def a_bundled_run(seen: Samples = CUDA, device: str = "cuda", **changes: Any) -> BundledRun:
    """A run of the measurement `bench` that took some samples."""
    task = a_cuda_task()
    facts: dict[str, Any] = {
        "definition": definition_of(task.measurements[0]),
        "measures": measures_of(task),
        "files": [{"path": "pkg/core.py", "sha256": "0" * 64}],
        "run": MeasurementRun(id="bench", device=device, process=a_process(), samples=seen),
    }
    return BundledRun.model_validate({**facts, **changes})


def a_bundle(*runs: BundledRun, **changes: Any) -> Bundle:
    """A bundle of the task T1."""
    facts: dict[str, Any] = {
        "schema": "gates.bundle/1",
        "task": {"id": "T1", "title": "Doubling", "path": "tasks/T1.yaml", "digest": "d" * 64},
        "origin": ORIGIN,
        "runs": runs or (a_bundled_run(),),
        "digest": "0" * 64,
    }
    return Bundle.model_validate({**facts, **changes})


def measures_of(task: Task) -> tuple[Definition, ...]:
    """What a run of a task's measurements was made for."""
    return tuple(definition_of(measure) for criterion in task.criteria for measure in criterion.measures)


def handed(seen: Samples = CUDA, path: str = "a.json", task: Task | None = None, **changes: Any) -> HandedIn:
    """A bundle that was read and fits, with some samples."""
    run = MeasurementRun(
        id="bench", device=seen.device.type, process=None, samples=seen, raw="bundles/0.json", elsewhere=path
    )
    whole = SeenRun(run=run, measures=measures_of(task or a_cuda_task()), changed=())
    return HandedIn.model_validate({"path": path, "origin": ORIGIN, "runs": [whole], **changes})


def with_bundles(*bundles: HandedIn, here: Sequence[Samples | str] = ("there is no CUDA device",)) -> EvidenceSet:
    """What was measured here, which by default is nothing, and some bundles."""
    return evidence(measured(*here, device="cuda"), Bundles(how="bundles", handed_in=bundles))


def put(bundle: Bundle, path: Path) -> Path:
    """Write a bundle to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode(bundle))
    return path
