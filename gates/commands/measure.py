"""What `gates measure` does: take the measurements of a task here, and write them into a bundle."""

import platform
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import psutil

from gates import store
from gates.bundles import Bundle, BundledRun, Origin, decode, definition_of, encode, sign, signed_part
from gates.child.guardian import guarded_folder
from gates.config import Context, Project
from gates.errors import UsageError
from gates.evidence.bundles import bind
from gates.evidence.measurements import asked_of, take
from gates.model import Model
from gates.project.files import near, of_its_sources
from gates.project.revision import environment, observe
from gates.task import loading as spec
from gates.task.measurement import Measurement
from gates.task.task import Task, narrowed
from gates.words import visible


class MeasureRequest(Model):
    """What was asked for on the command line, defaults filled in."""

    task: str
    project: Project
    on: str | None
    only: str | None
    out: Path | None
    by: str | None
    sign_key: Path | None


def perform(request: MeasureRequest, *, say: Callable[[str], None]) -> tuple[str, int]:
    """Measure, and write a bundle of what was measured; return the summary and the exit code."""
    task = spec.of_project(request.task, request.project)
    asked = narrowed(task, request.only)
    if not (wanted := [(one, device) for one in asked.measurements for device in asked_of(asked, one, request.on)]):
        on = f" on {request.on}" if request.on else ""
        raise UsageError(f"{task.path}: no criterion that was asked for is measured{on} (no bundle holds a base)")
    out = request.out or request.project.root / request.project.settings.evidence / task.id
    is_folder = out.is_dir() or not out.suffix
    store.prepare(out if is_folder else out.parent)
    if request.sign_key and not request.sign_key.is_file():
        raise UsageError(f"--sign-key {request.sign_key}: there is no such file")
    runs, lines = list[BundledRun](), list[str]()
    with guarded_folder() as folder:
        context = request.project.context(folder)
        origin = _origin(request, task, context)
        of_its_sources(request.project.root)
        for one, device in wanted:
            say(f"measuring {one.id} on {device}")
            run, said = _measured(task, asked, one, device, request.on, context)
            lines.append(visible(f"{one.id} on {device}: {said}"))
            runs += [run] if run else []
    if not runs:
        return "\n".join([*lines, "nothing was measured, and no bundle was written", ""]), 3
    target = out / _name(runs) if is_folder else out
    bundle = Bundle(schema="gates.bundle/1", task=task.identity, origin=origin, runs=tuple(runs), digest="0" * 64)
    if request.sign_key:
        bundle = bundle.model_copy(update={"signature": sign(signed_part(bundle), request.sign_key)})
    data = encode(bundle)
    decode(data)  # what is written can be read
    store.write({target: data}, "the bundle", target)
    taking = f"take it with: gates run {task.id} --evidence {near(target)}"
    return "\n".join([*lines, f"bundle: {near(target)}", taking, ""]), 0 if len(runs) == len(wanted) else 3


def _measured(
    whole: Task, task: Task, measurement: Measurement, device: str, on: str | None, context: Context
) -> tuple[BundledRun | None, str]:
    """Return what was measured, with the files as they were before and after, and what is said of it."""
    files = bind(whole, measurement, context)
    run = take(task, measurement, device, context, context.folder("measurements").evidence)
    if run.samples is None:
        return None, f"not measured: {run.problem}"
    if on not in {None, run.samples.device.type}:
        return None, f"not kept: asked for {on}, measured on {run.samples.device.type}"
    if bind(whole, measurement, context) != files:
        return None, "not kept: its files changed while it was measured"
    definition, measures = definition_of(measurement), tuple(map(definition_of, whole.measures_of(measurement.id)))
    shared = run.model_copy(update={"process": None, "raw": None})  # which are of this machine
    bundled = BundledRun(definition=definition, measures=measures, files=files, run=shared)
    return bundled, f"measured on {run.samples.device.name}"


def _origin(request: MeasureRequest, task: Task, context: Context) -> Origin:
    revision = observe(task, context)
    options = (("--on", request.on), ("--only", request.only))
    return Origin(
        at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        by=request.by or f"{psutil.Process().username()}@{platform.node()}",
        command=("gates", "measure", task.id, *(word for name, value in options if value for word in (name, value))),
        environment={name: value for name, value in environment(context).items() if name != "interpreter"},
        commit=revision.commit,
        dirty=revision.dirty,
    )


def _name(runs: list[BundledRun]) -> str:
    """Return a name that tells bundles of different machines apart: the devices."""
    devices = dict.fromkeys(f"{run.samples.device.type} {run.samples.device.name}" for run in runs)
    return re.sub(r"[^a-z0-9]+", "-", " ".join(devices).lower()).strip("-")[:80] + ".json"
