"""Measurements that the gate times itself, or that other tools make; each attempt is in the ledger from its start."""

import ast
import contextlib
import hashlib
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path

from gates.child import process
from gates.child.process import ProcessRun
from gates.config import Context
from gates.evidence.bundles import named_files
from gates.measuring import answers, machine
from gates.measuring.answers import Source
from gates.measuring.bench import ArmFailed, Launch, launch
from gates.measuring.fitness import contended, disturbed
from gates.measuring.interval import TIME_UNITS, is_time
from gates.measuring.rounds import Plan
from gates.measuring.samples import BadSamples, Metric, Samples, read_times
from gates.measuring.session import measure
from gates.measuring.taken import Attempt, Ledger, MeasurementRun, Recalled, Taken, digest_of
from gates.project.files import files_of, import_roots
from gates.project.revision import processor
from gates.task.measurement import Arm, Measurement
from gates.task.task import Measure, Task, cut_short

BEGUN, FAILED = "begun", "failed"
KILLED = "it was stopped from outside"


def attempt(
    plan: Plan, measures: Sequence[Measure], key: str, root: Path, folder: Path
) -> tuple[Samples, Taken, Recalled]:
    """Measure until the measures are decided; return the samples, how they were taken, and the earlier attempts.

    One that an arm ends raises `ArmFailed`. One that is killed stays in the ledger as it was begun.
    """
    ledger = Ledger(root)
    recalled = ledger.recall(key)
    earlier = counted(recalled.attempts)
    begun = _begin(ledger, key)
    try:
        samples, taken = measure(plan, folder, partial(_settled, measures, earlier))
    except ArmFailed as error:
        ledger.append(begun.model_copy(update={"ended": FAILED, "pairs": error.pairs, "unfit": (str(error),)}))
        raise
    told = {
        "ended": taken.ended,
        "pairs": taken.pairs,
        "restarts": taken.restarts,
        "split": taken.split,
        "metrics": samples.metrics,
        "unfit": (*disturbed(taken), *(contended(taken) if plan.clock == "wall" else ())),
        "missed": answers.missed(_applying(measures, samples), Source(samples, taken, earlier)),
    }
    unwritten = ledger.append(begun.model_copy(update=told))
    return samples, taken, Recalled(attempts=earlier, problem=recalled.problem or unwritten)


def handed_over(measures: Sequence[Measure], key: str, root: Path, run: Callable[[], MeasurementRun]) -> MeasurementRun:
    """Run what hands over its samples itself; return it with the earlier attempts.

    The ledger keeps what it missed, not the samples: with the same seeds those of two attempts are the same ones.
    """
    ledger = Ledger(root)
    recalled = ledger.recall(key)
    begun = _begin(ledger, key)
    ended = run()
    drawn = _drawn(ended.samples) if ended.samples else ""
    if (same := ledger.same(drawn)) is not None:
        problem = f"its times are those of the attempt at {same.at}, to the last digit: no clock gives the same twice"
        ended = ended.model_copy(update={"samples": None, "problem": problem})
    samples = ended.samples
    told: dict[str, object] = {"ended": ended.ended, "unfit": (ended.problem,)}
    if samples:
        missed = answers.missed(_applying(measures, samples), Source(samples))
        told = {"ended": ended.ended, "unfit": (), "pairs": _longest(samples), "missed": missed, "drawn": drawn}
    unwritten = ledger.append(begun.model_copy(update=told))
    earlier = Recalled(attempts=counted(recalled.attempts), problem=recalled.problem or unwritten)
    return ended.model_copy(update={"earlier": earlier})


def _begin(ledger: Ledger, key: str) -> Attempt:
    """Write an attempt down before its first sample, as if it had been killed; return it to be told how it ended."""
    begun = Attempt(key=key, at=datetime.now(UTC).isoformat(), ended=BEGUN, pairs=0, unfit=(KILLED,))
    ledger.append(begun)
    return begun


def _longest(samples: Samples) -> int:
    return max(len(values) for metric in samples.metrics.values() for values in metric.arms.values())


def _drawn(samples: Samples) -> str:
    """Return the digest of the times among samples; none of so few that they may well come again."""
    times = {
        name: metric.arms for name, metric in samples.metrics.items() if metric.unit in TIME_UNITS or is_time(name)
    }
    values = [value for arms in times.values() for values in arms.values() for value in values]
    return digest_of(times) if len(set(values)) >= MANY else ""


MAX_BYTES = 64 * 1024 * 1024
COARSE_S = 5.0  # some file systems note times to two seconds, and others by a clock of their own
MANY = 10  # different times: fewer may be the same by chance


def counted(lines: Sequence[Attempt]) -> tuple[Attempt, ...]:
    """Return the attempts that lines of a ledger tell of: those that came to pairs, and those that never ended."""
    ended = {line.at for line in lines if line.ended != BEGUN}
    return tuple(line for line in lines if (line.at not in ended if line.ended == BEGUN else line.pairs))


def _settled(measures: Sequence[Measure], earlier: tuple[Attempt, ...], samples: Samples, taken: Taken) -> bool:
    return answers.settled(_applying(measures, samples), Source(samples, taken, earlier))


def _applying(measures: Sequence[Measure], samples: Samples) -> list[Measure]:
    return [measure for measure in measures if measure.on in {"any", samples.device.type}]


LISTED = """
import importlib.metadata, sys
print(sys.version, *sorted({f"{one.name} {one.version}" for one in importlib.metadata.distributions()}), sep="\\n")
"""
LIMIT_S = 60.0


METHOD = "gates.measuring/1"
MOST_READ = 1_000_000  # bytes of a file whose syntax is read


def time_arms(task: Task, measurement: Measurement, device: str, context: Context) -> tuple[Samples, Taken, Recalled]:
    """Attempt to measure; raise `ArmFailed` where an arm fails."""
    used, paths = cut_short(measurement, task), import_roots(task, context)
    arms = {
        name: partial(_started, arm, measurement, device, context.python, paths)
        for name, arm in measurement.arms.items()
    }
    key = attempts_key(task, measurement, device, context)
    logs = context.folder(f"workers-{measurement.id}-{device}").evidence
    plan = Plan.of(used, arms, context.timeout_s)
    return attempt(plan, measures_of(task, measurement, device), key, context.root, logs)


def attempts_key(task: Task, measurement: Measurement, device: str, context: Context) -> str:
    """Return what the attempts at a measurement are known by: the same code, packages and work on the same machine."""
    code = code_digest(task, measurement, context)
    facts = (code, installed(context.python), work_of(measurement), device, processor(), machine.name())
    return digest_of(facts)


def work_of(measurement: Measurement) -> str:
    """Return the digest of the work that is measured, by which attempts are known: limits and budgets make no other."""
    if measurement.run:
        return digest_of({"run": measurement.run, "read": measurement.read})
    arms = [arm.model_dump(mode="json") for arm in measurement.arms.values()]
    return digest_of({"method": METHOD, "arms": arms, "threads": measurement.threads})


def measures_of(task: Task, measurement: Measurement, device: str) -> tuple[Measure, ...]:
    """Return the measures that a measurement on a device is to answer."""
    asked = (measure for criterion in task.criteria for measure in criterion.measures)
    return tuple(
        m
        for m in asked
        if m.from_ == measurement.id and not m.against_base and ("any" in {m.on, device} or m.on == device)
    )


def run_again_and_again(measurement: Measurement, device: str, context: Context, folder: Path) -> Samples:
    """Run another tool's benchmark several times; each run gives one sample of each benchmark, paired by the run."""
    columns: dict[str, list[float]] = {}
    for number in turns(measurement):
        handed = hand_over(measurement, device, context, folder, f"{measurement.id}-{device}-{number}")
        if handed.problem:
            raise BadSamples(handed.problem)
        for name, value in read_times(handed.text, measurement.read).items():
            columns.setdefault(name, []).append(value)
    runs = max(map(len, columns.values()))
    short = [name for name, values in columns.items() if len(values) < runs]
    if short:
        raise BadSamples(f"{short[0]!r} is in {len(columns[short[0]])} of {runs} runs only")
    metric = Metric(unit="s", direction="lower", paired=True, arms={n: tuple(v) for n, v in columns.items()})
    return Samples(
        schema="gates.samples/1",
        device=machine.processor(),
        settings={"runs": str(runs)},
        timing=f"{measurement.read}, run {runs} times; of each run the median of each benchmark",
        metrics={"time_s": metric},
    )


def turns(measurement: Measurement) -> Iterator[int]:
    """Yield the number of each start, while the longest of them fits into what is left of the budget."""
    begun, longest = time.monotonic(), 0.0
    for number in range(measurement.restarts):
        started = time.monotonic()
        if number and started - begun + longest > measurement.budget_s:
            return
        yield number
        longest = max(longest, time.monotonic() - started)


@dataclass(frozen=True)
class Handed:
    """How a command ended, and what it handed over, or why that is nothing."""

    ended: ProcessRun | None = None
    text: str = ""
    problem: str = ""


def hand_over(measurement: Measurement, device: str, context: Context, folder: Path, name: str) -> Handed:
    """Run the command of a measurement, which writes into a folder whose name nothing before it could know."""
    limit = measurement.timeout_s or context.timeout_s
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        out, begun = Path(fresh) / "samples.json", time.time()
        argv = context.argv(measurement.run or (), device=device, out=str(out))
        try:
            ended = process.run(argv, cwd=context.root, timeout_s=limit, log=folder / name)
        except OSError as error:
            return Handed(problem=f"the command cannot be started: {error.strerror or error}")
        try:
            return Handed(ended, _text_of(ended, out, begun))
        except BadSamples as error:
            return Handed(ended, problem=str(error))


def _text_of(ended: ProcessRun, out: Path, begun: float) -> str:
    """Return what a run wrote that ended well; raise `BadSamples` with the reason otherwise."""
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
        return out.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadSamples("the samples file is not UTF-8") from error


def _started(arm: Arm, measurement: Measurement, device: str, python: str, paths: Sequence[Path], seed: int) -> Launch:
    return launch(arm, python=python, paths=paths, threads=measurement.threads, device=device, seed=seed)


def code_digest(task: Task, measurement: Measurement, context: Context) -> str:
    """Return the digest of the code that is measured, that of the arms with it: what only judges it makes no other.

    Nor does what no interpreter looks at: comments, blanks.
    """
    paths = files_of((*task.implementation, *named_files(task, measurement, context)), context.root)
    return digest_of([(context.shown(path), _meaning(path)) for path in paths])


def _meaning(path: Path) -> str:
    """Return the digest of what a file comes to: of Python its syntax, of all else its bytes."""
    source = path.read_bytes()
    if path.suffix == ".py" and len(source) < MOST_READ:
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            source = ast.dump(ast.parse(source)).encode(errors="replace")
    return hashlib.sha256(source).hexdigest()


@lru_cache(maxsize=8)
def installed(python: str) -> str:
    """Return the digest of an interpreter's version and packages; empty where it does not tell them."""
    try:
        told = subprocess.run([python, "-I", "-c", LISTED], capture_output=True, check=True, timeout=LIMIT_S)
    except (OSError, subprocess.SubprocessError):
        return ""
    return hashlib.sha256(told.stdout).hexdigest()
