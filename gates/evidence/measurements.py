"""Measurements, once for each device asked for, timed by the gate or handed over; each attempt is in the ledger."""

import ast
import contextlib
import hashlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Self

from gates import progress
from gates.check import Evidence, EvidenceSet
from gates.child import process
from gates.child.process import ProcessRun
from gates.code.syntax import Unparsed, parse
from gates.config import Context
from gates.errors import Absent, EvidenceUnavailable
from gates.evidence.bundles import named_files
from gates.measuring import answers, machine
from gates.measuring.bench import launch
from gates.measuring.fitness import CPU_TIME, contended, disturbed
from gates.measuring.interval import SECONDS, is_clocked
from gates.measuring.samples import BadSamples, Device, Metric, Samples, read, read_times
from gates.measuring.session import Plan, measure
from gates.measuring.taken import Attempt, Ledger, MeasurementRun, Taken, digest_of
from gates.project.files import files_of, import_roots
from gates.task.measurement import Measurement
from gates.task.task import Measure, Task

METHOD = "gates.measuring/1"
BEGUN, FAILED = "begun", "failed"
KILLED = "it was stopped from outside"
MAX_BYTES = 64 * 1024 * 1024
COARSE_S = 5.0  # some file systems note times to two seconds, and others by a clock of their own
MANY = 10  # different times: fewer may be the same by chance
SLACK_S = 0.05
LIMIT_S = 60.0
LISTED = """
import importlib.metadata, sys
print(sys.version, *sorted({f"{one.name} {one.version}" for one in importlib.metadata.distributions()}), sep="\\n")
"""
Take = Callable[[MeasurementRun], MeasurementRun]  # what takes a measurement, which knows of its earlier attempts


class Measurements(Evidence):
    """Every measurement that a criterion asks for."""

    runs: tuple[MeasurementRun, ...]

    @classmethod
    def derive(cls, task: Task, context: Context, seen: EvidenceSet) -> Self:
        """Take each measurement on each device that a criterion names; on none that the machine does not show."""
        if not (asked := [(one, device) for one in task.measurements for device in asked_of(task, one)]):
            raise Absent(f"no criterion of {task.path} asks for a measurement")
        folder = context.folder("measurements").evidence
        known = {(run.id, run.device): run for run in before.runs} if (before := seen.before(cls)) else {}

        def taken(one: Measurement, device: str) -> MeasurementRun:
            if not machine.may_have(device):
                return MeasurementRun(id=one.id, device=device, problem=f"this machine shows no {device} device")
            name, make = f"measurement {one.id} on {device}", partial(take, task, one, device, context, folder)
            return seen.taken_or(name, known.get((one.id, device)), make, context)

        runs = tuple(taken(*each) for each in asked)
        if before and all(run is known.get((run.id, run.device)) or not machine.may_have(run.device) for run in runs):
            return before
        commands = tuple(run.recorded(f"measurement {run.id}", command(task, run.id, run.device)) for run in runs)
        return cls(how="benchmarks that wrote their raw samples", commands=commands, runs=runs)


def command(task: Task, measurement_id: str, device: str) -> tuple[str, ...]:
    """Return the command of a measurement as a person would type it."""
    measurement = next(m for m in task.measurements if m.id == measurement_id)
    words = measurement.run or tuple(f"{name}: {arm.name}" for name, arm in measurement.arms.items())
    return tuple(word.replace("{device}", device).replace("{out}", "samples.json") for word in words)


def asked_of(task: Task, measurement: Measurement, on: str | None = None) -> tuple[str, ...]:
    """Return the devices to measure on, all or one; `any` is that one, or the CPU, which every machine has."""
    asked = {m.on for m in task.measures_of(measurement.id) if not m.against_base and m.on in {"any", on or m.on}}
    if not measurement.by_device:
        return ("any",) if asked else ()
    return tuple(sorted({on or "cpu" if device == "any" else device for device in asked}))


def take(task: Task, measurement: Measurement, device: str, context: Context, folder: Path) -> MeasurementRun:
    """Take a measurement in the way that the task asks for; the ledger remembers it."""
    facts = MeasurementRun(id=measurement.id, device=device)
    measures = [m for m in task.measures_of(measurement.id) if not m.against_base]
    key = attempts_key(task, measurement, device, context)
    if measurement.arms:
        paths, limit_s = import_roots(task, context), context.timeout_s
        start = partial(launch, python=context.python, paths=paths, threads=measurement.threads, device=device)
        arms = {name: partial(start, arm) for name, arm in measurement.arms.items()}
        one = counts_cpu(measurement, measures)
        plan = Plan(measurement, arms, limit_s, applies=lambda on: bool(_applying(measures, on)), one_processor=one)
        way: Take = partial(timed, plan, measures, context.folder(f"workers-{measurement.id}-{device}").evidence)
    else:
        handing = _handed_over if measurement.read == "samples" else _again_and_again
        way = partial(handing, measurement, context, folder / f"{measurement.id}-{device}")
    return kept(attempt(facts, measures, key, context.root, way), folder / f"{measurement.id}-{device}.json")


def counts_cpu(measurement: Measurement, measures: Sequence[Measure]) -> bool:
    """Return whether CPU time decides all, of workers with one thread, which can be bound to one processor."""
    alone = measurement.threads == 1 and not any(arm.time for arm in measurement.arms.values())
    return alone and hasattr(os, "sched_setaffinity") and all(one.of in CPU_TIME.values() for one in measures)


def kept(run: MeasurementRun, path: Path) -> MeasurementRun:
    """Return a run with its samples beside the raw files, where they are not in one already."""
    if run.samples is None or run.raw:
        return run
    path.write_text(run.samples.model_dump_json(indent=1, by_alias=True) + "\n", encoding="utf-8")
    return run.model_copy(update={"raw": f"{path.parent.name}/{path.name}"})


def attempt(facts: MeasurementRun, measures: Sequence[Measure], key: str, root: Path, way: Take) -> MeasurementRun:
    """Take a measurement, and return it with its earlier attempts; the ledger has it as killed until it has ended."""
    ledger = Ledger(root)
    lines, problem = ledger.read()
    run = facts.model_copy(update={"earlier": counted([line for line in lines if line.key == key])})
    begun = Attempt(key=key, at=datetime.now(UTC).isoformat(), ended=BEGUN, pairs=0, unfit=(KILLED,))
    ledger.append(begun)
    try:
        run = way(run)
        samples = _of_the_device(run)
        drawn = "" if run.taken else _drawn(samples)
        if same := next((line for line in lines if drawn and line.drawn == drawn), None):
            said = f"its times are those of the attempt at {same.at}, to the last digit"
            raise BadSamples(f"{said}: no clock gives the same twice")
        longest = max(len(values) for metric in samples.metrics.values() for values in metric.arms.values())
        told: dict[str, object] = {"ended": run.ended, "unfit": (), "pairs": longest, "drawn": drawn}
        # with the same seeds, the samples of two attempts are the same: of what was handed over only this is kept
        told["missed"] = answers.missed(_applying(measures, samples.device), run)
        told |= _told_of(run.taken, samples) if run.taken else {}
    except EvidenceUnavailable as error:
        run = run.model_copy(update={"samples": None, "problem": str(error)})
        told = {"ended": FAILED, "unfit": (run.problem,), "pairs": getattr(error, "pairs", 0)}
    unwritten = ledger.append(begun.model_copy(update=told))
    return run.model_copy(update={"ledger_problem": problem or unwritten})


def _told_of(taken: Taken, samples: Samples) -> dict[str, object]:
    """Return what the ledger holds of pairs that the gate took, which count in later attempts."""
    unfit = (*disturbed(taken), *(contended(taken) if taken.clock == "wall" else ()))
    way = taken.model_dump(include={"restarts", "split", "pairs", "one_processor"})
    return {"ended": taken.ended, "unfit": unfit, "metrics": samples.metrics, **way}


def counted(lines: Sequence[Attempt]) -> tuple[Attempt, ...]:
    """Return the attempts that lines of a ledger tell of: those that came to pairs, and those that never ended."""
    ended = {line.at for line in lines if line.ended != BEGUN}
    return tuple(line for line in lines if (line.at not in ended if line.ended == BEGUN else line.pairs))


def timed(plan: Plan, measures: Sequence[Measure], logs: Path, run: MeasurementRun) -> MeasurementRun:
    """Let the gate time the arms until the measures are decided; raise `ArmFailed` where one fails."""

    def seen(samples: Samples, taken: Taken) -> MeasurementRun:
        return run.model_copy(update={"samples": samples, "taken": taken})

    def settled(samples: Samples, taken: Taken) -> bool:
        asked, now = _applying(measures, samples.device), seen(samples, taken)
        numbers = [str(found) for one in asked if (found := answers.answered(one, now).seen)]
        done = f"{run.id}: {', '.join(numbers)} after {taken.pairs} of at most {taken.most} pairs"
        progress.so_far = lambda: done
        return answers.settled(asked, now)

    return seen(*measure(plan, logs, settled))


def _applying(measures: Sequence[Measure], device: Device) -> list[Measure]:
    return [m for m in measures if m.on in {"any", device.type} and {*m.when} <= {*device.capabilities}]


def _drawn(samples: Samples) -> str:
    """Return the digest of the times among samples; none of so few that they may well come again."""
    times = {name: metric.arms for name, metric in samples.metrics.items() if is_clocked(name, metric.unit)}
    values = {value for arms in times.values() for column in arms.values() for value in column}
    return digest_of(times) if len(values) >= MANY else ""


def attempts_key(task: Task, measurement: Measurement, device: str, context: Context) -> str:
    """Return what attempts are known by: the meaning of code, packages, work and machine, but no limits or budgets."""
    paths = files_of((*task.implementation, *named_files(task, measurement, context)), context.root)
    code = digest_of([(context.shown(path), _meaning(path)) for path in paths])
    work: dict[str, object] = {"run": measurement.run, "read": measurement.read}
    if measurement.arms:
        arms = [arm.model_dump(mode="json") for arm in measurement.arms.values()]
        work = {"method": METHOD, "arms": arms, "threads": measurement.threads}
    return digest_of((code, installed(context.python), digest_of(work), device, machine.name()))


def _meaning(path: Path) -> str:
    """Return the digest of what a file comes to: of Python its syntax, of all else its bytes."""
    source = path.read_bytes()
    with contextlib.suppress(Unparsed, RecursionError):
        if path.suffix == ".py":
            source = ast.dump(parse(source, path.name, "").tree).encode(errors="replace")
    return hashlib.sha256(source).hexdigest()


@lru_cache(maxsize=8)
def installed(python: str) -> str:
    """Return the digest of an interpreter's version and packages; empty where it does not tell them."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        told = subprocess.run([python, "-I", "-c", LISTED], capture_output=True, check=True, timeout=LIMIT_S)
        return hashlib.sha256(told.stdout).hexdigest()
    return ""


def _handed_over(measurement: Measurement, context: Context, place: Path, run: MeasurementRun) -> MeasurementRun:
    """Run a measurement that hands over its samples, and keep the file that it wrote."""
    place.with_suffix(".json").unlink(missing_ok=True)
    with _ran(measurement, run.device, context, place) as (ended, out):
        run = run.model_copy(update={"process": ended, "raw": f"{place.parent.name}/{place.name}.stderr.txt"})
        try:
            text = _text_of(ended, out)
            place.with_suffix(".json").write_text(text, encoding="utf-8")
            run = run.model_copy(update={"raw": f"{place.parent.name}/{place.name}.json"})
            samples = read(text)
            _refuse_impossible(samples, ended.duration_s)
        except BadSamples as error:
            return run.model_copy(update={"problem": str(error)})
    return run.model_copy(update={"samples": samples})


def _again_and_again(measurement: Measurement, context: Context, place: Path, run: MeasurementRun) -> MeasurementRun:
    """Run another tool's benchmark while the budget lasts: each run gives one sample of each benchmark."""
    columns: dict[str, list[float]] = {}
    begun, longest, runs = time.monotonic(), 0.0, 0
    while runs < measurement.restarts and (not runs or time.monotonic() - begun + longest <= measurement.budget_s):
        with _ran(measurement, run.device, context, place.with_name(f"{place.name}-{runs}")) as (ended, out):
            for name, value in read_times(_text_of(ended, out), measurement.read).items():
                columns.setdefault(name, []).append(value)
        longest, runs = max(longest, ended.duration_s), runs + 1
    if short := [name for name, values in columns.items() if len(values) < runs]:
        raise BadSamples(f"{short[0]!r} is in {len(columns[short[0]])} of {runs} runs only")
    metric = Metric(unit="s", direction="lower", paired=True, arms={n: tuple(v) for n, v in columns.items()})
    samples = Samples(
        schema="gates.samples/1",
        device=machine.processor(),
        settings={"runs": str(runs)},
        timing=f"{measurement.read}, run {runs} times; of each run the median of each benchmark",
        metrics={"time_s": metric},
    )
    return run.model_copy(update={"samples": samples})


@contextlib.contextmanager
def _ran(measurement: Measurement, device: str, context: Context, log: Path) -> Iterator[tuple[ProcessRun, Path]]:
    """Run the command of a measurement, which writes into a folder whose name nothing before it could know."""
    with tempfile.TemporaryDirectory(dir=log.parent) as fresh:
        out = Path(fresh) / "samples.json"
        argv = context.argv(measurement.run or (), device=device, out=str(out))
        yield process.run(argv, cwd=context.root, timeout_s=measurement.timeout_s or context.timeout_s, log=log), out


def _text_of(ended: ProcessRun, out: Path) -> str:
    """Return what a run wrote that ended well; raise `BadSamples` with the reason otherwise."""
    if ended.exit_code != 0:
        raise BadSamples(f"the measurement ended with {ended.ended}: {ended.last_words}")
    if out.is_symlink() or (out.exists() and not out.is_file()):
        raise BadSamples("the measurement left something other than a plain file as its samples")
    if not out.is_file():
        raise BadSamples("the measurement ended well but wrote no samples file")
    if out.stat().st_mtime < time.time() - ended.duration_s - COARSE_S:
        raise BadSamples("the samples file was written before the measurement began: it is an old one")
    if out.stat().st_size > MAX_BYTES:
        raise BadSamples(f"the samples file has {out.stat().st_size} bytes, more than {MAX_BYTES}")
    try:
        return out.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadSamples("the samples file is not UTF-8") from error


def _of_the_device(run: MeasurementRun) -> Samples:
    """Return the samples of a run; raise `BadSamples` where there are none, or they are of another device."""
    if run.samples is None:
        raise BadSamples(run.problem)
    there = run.samples.device
    if run.device not in {"any", there.type}:
        raise BadSamples(f"measured on {there.type!r} ({there.name}), asked for {run.device!r}")
    if not machine.may_have(there.type):
        said = f"it says that it was measured on {there.type!r} ({there.name})"
        raise BadSamples(f"{said}, and this machine shows no such device")
    return run.samples


def _refuse_impossible(samples: Samples, ran_s: float) -> None:
    """Raise `BadSamples` for a time that is longer than all of the run that it is said to be of, on each core."""
    most_s = ran_s * (os.cpu_count() or 1) + SLACK_S
    for name, metric in samples.metrics.items():
        for arm, values in metric.arms.items() if metric.unit in SECONDS else ():
            if (longest := max(values) * SECONDS[metric.unit]) > most_s:
                took = f"{longest:.3g} s, and the whole run took {ran_s:.3g} s"
                raise BadSamples(f"{name} of {arm!r} has a sample of {took}: it was not measured in it")
