"""Measurements: commands of the project that hand over raw samples, once for each device that is asked for."""

import os
import shutil
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Self

from gates.check import Evidence
from gates.child import process
from gates.child.process import ProcessRun
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.evidence._timed import attempts_key, handed_over, measures_of, run_again_and_again, time_arms
from gates.measuring import machine
from gates.measuring.samples import BadSamples, Samples, read
from gates.measuring.taken import MeasurementRun
from gates.measuring.wire import ArmFailed
from gates.model import CommandRecord
from gates.task.measurement import Measurement
from gates.task.selection import cut_short
from gates.task.task import Task

MAX_BYTES = 64 * 1024 * 1024
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
SLACK_S = 0.05
COARSE_S = 5.0  # some file systems note times to two seconds, and others by a clock of their own


class Measurements(Evidence):
    """Every measurement that a criterion asks for."""

    runs: tuple[MeasurementRun, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Run each measurement in its own process, on each device that a criterion names."""
        asked = [(one, device) for one in task.measurements for device in asked_of(task, one)]
        if not asked:
            raise EvidenceUnavailable(f"no criterion of {task.path} asks for a measurement")
        folder = context.folder("measurements").evidence
        runs = tuple(_not_tried(one, device) or take(task, one, device, context, folder) for one, device in asked)
        commands = tuple(_recorded(task, run) for run in runs)
        return cls(how="benchmarks that wrote their raw samples", commands=commands, runs=runs)

    def of(self, measurement: str) -> tuple[MeasurementRun, ...]:
        """Return the runs of a measurement."""
        return tuple(run for run in self.runs if run.id == measurement)


def _recorded(task: Task, run: MeasurementRun) -> CommandRecord:
    purpose, argv = f"measurement {run.id}", command(task, run.id, run.device)
    return CommandRecord(purpose=purpose, argv=argv, ended=run.ended, duration_s=run.duration_s)


def command(task: Task, measurement_id: str, device: str) -> tuple[str, ...]:
    """Return the command of a measurement as a person would type it."""
    measurement = cut_short(next(m for m in task.measurements if m.id == measurement_id), task)
    words = measurement.run or tuple(f"{name}: {arm.name}" for name, arm in measurement.arms.items())
    return tuple(word.replace("{device}", device).replace("{out}", "samples.json") for word in words)


def asked_of(task: Task, measurement: Measurement) -> tuple[str, ...]:
    """Return the devices to measure on; `any` is measured on the CPU, which every machine has."""
    asked = [m.on for c in task.criteria for m in c.measures if m.from_ == measurement.id and not m.against_base]
    if not asked:
        return ()
    if not measurement.by_device:
        return ("any",)
    return tuple(sorted({"cpu" if device == "any" else device for device in asked}))


def _not_tried(measurement: Measurement, device: str) -> MeasurementRun | None:
    """Return the run of a measurement that could only fail here: the machine does not show the device."""
    if machine.may_have(device):
        return None
    problem = f"this machine shows no {device} device"
    return MeasurementRun(id=measurement.id, device=device, process=None, samples=None, problem=problem)


def take(task: Task, measurement: Measurement, device: str, context: Context, folder: Path) -> MeasurementRun:
    """Take a measurement in the way that the task asks for; the ledger remembers it."""
    run = partial(_take, task, measurement, device, context, folder)
    if measurement.arms:
        return run()
    key = attempts_key(task, cut_short(measurement, task), device, context)
    return handed_over(measures_of(task, measurement, device), key, context.root, run)


def _take(task: Task, measurement: Measurement, device: str, context: Context, folder: Path) -> MeasurementRun:
    if not measurement.arms and measurement.read == "samples":
        return _run(cut_short(measurement, task), device, context, folder)
    facts = MeasurementRun(id=measurement.id, device=device, process=None, samples=None)
    try:
        if measurement.arms:
            samples, taken, earlier = time_arms(task, measurement, device, context)
            facts = facts.model_copy(update={"taken": taken, "earlier": earlier})
        else:
            samples = run_again_and_again(cut_short(measurement, task), device, context, folder)
        _refuse_other(samples, device)
    except (ArmFailed, BadSamples) as error:
        return facts.model_copy(update={"problem": str(error)})
    kept = folder / f"{measurement.id}-{device}.json"
    kept.write_text(samples.model_dump_json(indent=1, by_alias=True) + "\n", encoding="utf-8")
    return facts.model_copy(update={"samples": samples, "raw": f"measurements/{kept.name}"})


def _run(measurement: Measurement, device: str, context: Context, folder: Path) -> MeasurementRun:
    """Run a measurement; the file that it writes lies in a folder whose name nothing before it could know."""
    out = Path(tempfile.mkdtemp(dir=folder)) / "samples.json"
    kept = folder / f"{measurement.id}-{device}.json"
    kept.unlink(missing_ok=True)
    argv = context.argv(measurement.run or (), device=device, out=str(out))
    limit = measurement.timeout_s or context.timeout_s
    ended, samples, problem, begun = None, None, "", time.time()
    try:
        ended = process.run(argv, cwd=context.root, timeout_s=limit, log=kept.with_suffix(""))
        samples = _read(ended, out, device, begun)
    except OSError as error:
        problem = f"the command cannot be started: {error.strerror or error}"
    except BadSamples as error:
        problem = str(error)
    regular = out.is_file() and not out.is_symlink()
    if regular:
        out.replace(kept)
    shutil.rmtree(out.parent, ignore_errors=True)
    raw = f"measurements/{kept.name}" if regular else f"measurements/{kept.stem}.stderr.txt"
    return MeasurementRun(
        id=measurement.id, device=device, process=ended, samples=samples, problem=problem, raw=raw if ended else None
    )


def _read(ended: ProcessRun, out: Path, device: str, begun: float) -> Samples:
    """Read the samples of a run that ended well; raise `BadSamples` with the reason otherwise."""
    if ended.exit_code != 0:
        raise BadSamples(f"the measurement ended with {ended.ended}: {ended.last_words}")
    if out.is_symlink() or (out.exists() and not out.is_file()):
        raise BadSamples("the measurement left something other than a plain file as its samples")
    if not out.is_file():
        raise BadSamples("the measurement ended well but wrote no samples file")
    if out.stat().st_mtime < begun - COARSE_S:
        raise BadSamples("the samples file was written before the measurement began: it is an old one")
    if out.stat().st_size > MAX_BYTES:
        raise BadSamples(f"the samples file has {out.stat().st_size} bytes, more than {MAX_BYTES}")
    try:
        text = out.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadSamples("the samples file is not UTF-8") from error
    samples = read(text)
    _refuse_other(samples, device)
    _refuse_impossible(samples, ended.duration_s)
    return samples


def _refuse_other(samples: Samples, device: str) -> None:
    if device not in {"any", samples.device.type}:
        raise BadSamples(f"measured on {samples.device.type!r} ({samples.device.name}), asked for {device!r}")
    if not machine.may_have(samples.device.type):
        there = f"{samples.device.type!r} ({samples.device.name})"
        raise BadSamples(f"it says that it was measured on {there}, and this machine shows no such device")


def _refuse_impossible(samples: Samples, ran_s: float) -> None:
    """Raise `BadSamples` for a time that is longer than all of the run that it is said to have been measured in.

    Times of processors add up, so it is the run's time on each core.
    """
    most_s = ran_s * (os.cpu_count() or 1) + SLACK_S
    for name, metric in samples.metrics.items():
        for arm, values in metric.arms.items() if metric.unit in SECONDS else ():
            longest = max(values) * SECONDS[metric.unit]
            if longest > most_s:
                raise BadSamples(
                    f"{name} of {arm!r} has a sample of {longest:.3g} s, and the whole run took {ran_s:.3g} s: "
                    "it was not measured in it"
                )
