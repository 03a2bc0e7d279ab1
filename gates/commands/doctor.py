"""What `gates doctor` does: tell what this machine can and cannot verify, and how well it measures."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from gates.child import process
from gates.child.guardian import guarded_folder
from gates.measuring import machine
from gates.measuring.bench import Launch, launch
from gates.measuring.fitness import contended, disturbed, noise
from gates.measuring.rounds import BASELINE, CANDIDATE, Trace, adaptive, detectable, windows
from gates.measuring.session import Plan, measure
from gates.measuring.wire import ArmFailed
from gates.model import Outcome
from gates.task.measurement import Arm
from gates.words import printable

HERE = Path(__file__).parents[1] / "measuring"
LIMIT, SLOWED = 1.05, 1.10
MEASURE_S = 60.0
KEPT_S = 8.0
TRIALS = 200
MANY = 1000


@dataclass(frozen=True)
class DoctorRequest:
    """What was asked for on the command line, defaults filled in."""

    root: Path
    python: str
    measure: bool = False
    seconds: float = MEASURE_S


def perform(request: DoctorRequest, *, say: Callable[[str], None]) -> tuple[str, int]:
    """Look, measure where that was asked for, and return the page and the exit code."""
    with guarded_folder() as folder:
        told = _interpreter(request, folder)
        lines = [*_machine(), "", *_verifiable(request, told)]
        code = 0
        if request.measure:
            say(f"measuring for about {request.seconds:.0f} s; leave the machine alone")
            measured, code = _measured(request, folder)
            lines += ["", *measured]
    return "\n".join(lines) + "\n", code


def _machine() -> Iterator[str]:
    now = machine.observe()
    all_of_them = psutil.cpu_count() or now.cores
    yield f"processor    {machine.processor().name}, {now.cores} of {all_of_them} cores may be used"
    yield f"quota        {now.quota if now.quota not in {'', '-1', 'max 100000'} else 'none that can be seen'}"
    yield f"memory       {psutil.virtual_memory().total / 1024**3:.0f} GiB"
    if now.pressure_s is None:
        yield "pressure     not told by this system: a crowded processor shows in wall time over CPU time only"
    else:
        begun, before = time.monotonic(), now.pressure_s
        time.sleep(0.5)
        share = ((machine.pressure() or before) - before) / (time.monotonic() - begun)
        yield f"pressure     something waited for a processor {min(share, 1):.0%} of the last half second"
    if now.plugged is False:
        yield "power        on battery: clocks may change under load"


def _interpreter(request: DoctorRequest, folder: Path) -> dict[str, Any]:
    """Return what the project's interpreter tells of itself, or why it does not."""
    argv = [request.python, "-W", "ignore", str(HERE / "_probe.py")]
    try:
        ended = process.run(argv, cwd=folder, timeout_s=120, log=folder / "probe")
    except OSError as error:
        return {"problem": f"{request.python!r} cannot be started: {error.strerror or error}"}
    if ended.exit_code != 0:
        return {"problem": f"{request.python!r} ended with {ended.ended}: {ended.last_words}"}
    try:
        told = json.loads(printable(ended.stdout.tail.strip().splitlines()[-1]))
    except (ValueError, IndexError):
        told = None
    return told if isinstance(told, dict) else {"problem": f"{request.python!r} told nothing"}


def _verifiable(request: DoctorRequest, told: dict[str, Any]) -> Iterator[str]:
    if "problem" in told:
        yield f"interpreter  {told['problem']}: nothing of a project can be run"
        return
    versions, devices = told["versions"], told["devices"]
    yield f"interpreter  {request.python}, {told['implementation']} {told['python']}"
    yield f"versions     {', '.join(f'{name} {version}' for name, version in versions.items()) or 'none'}"
    if "torch_problem" in told:
        yield f"torch        cannot be imported: {told['torch_problem']}"
    clocks = (f"{name} {how} to {resolution:g} s" for name, (how, resolution) in told["clocks"].items())
    yield f"clocks       {', '.join(clocks)}"
    yield f"devices      {', '.join(devices)}"
    yield ""
    yield _can("tests", "pytest" in versions, "pytest is not installed in this interpreter")
    yield _can("lines that tests execute", "coverage" in versions, "coverage is not installed in this interpreter")
    yield _can("training steps", "torch" in versions and "torch_problem" not in told, "there is no torch that works")
    yield _can("numbers on the cpu", True, "")
    for device in ("cuda", "rocm"):
        present = any(name.startswith(device) for name in devices)
        yield _can(
            f"numbers on {device}", present, f"this machine shows no {device} device; measure on one that has it"
        )


def _can(what: str, there: bool, why: str) -> str:
    return f"can verify   {what}" if there else f"cannot       {what}: {why}"


def _measured(request: DoctorRequest, folder: Path) -> tuple[list[str], int]:
    """Time two equal arms against each other, and judge that over and over, as it is and with one arm slowed down."""
    began = time.monotonic()

    def start(seed: int) -> Launch:
        arm = launch(Arm(call="_reference:make"), python=request.python, paths=[HERE], threads=1, seed=seed)
        return replace(arm, cwd=folder)

    budget = max(request.seconds - KEPT_S, 1.0)
    plan = Plan(arms={BASELINE: start, CANDIDATE: start}, frozen="-", most=MANY, budget_s=budget)
    try:
        samples, taken = measure(plan, folder, lambda _samples, _taken: False)
    except ArmFailed as error:
        return [f"cannot measure: {error}"], 3
    trace = Trace(samples=samples, taken=taken)
    return [*_rates(trace), f"took         {time.monotonic() - began:.0f} s"], 0


def _rates(trace: Trace) -> Iterator[str]:
    taken = trace.taken
    starts = len(set(taken.restarts))
    yield f"measured     two equal arms, {taken.pairs} pairs, processes started {starts} times"
    seen = noise(taken)
    if seen:
        yield f"noise floor  {seen.floor:.2%}: time of a second copy of an arm over that of the arm, {seen}"
    for reason in (*disturbed(taken), *contended(taken)):
        yield f"unfit        {reason}"
    for pairs in (trace.most // 4, trace.most):
        least = detectable(trace, pairs, TRIALS)
        yield f"detectable   {f'a change of {least:.1%}' if least is not None else 'nothing'} with {pairs} pairs"
    same = [adaptive(window, LIMIT)[0] for window in windows(trace, TRIALS, 1.0)]
    slow = [adaptive(window, LIMIT)[0] for window in windows(trace, TRIALS, SLOWED)]
    if not same:
        yield f"error rates  not known: fewer than {trace.most} pairs in the time"
        return
    apart = max(1, taken.pairs // trace.most)
    yield f"error rates  against a limit of {LIMIT - 1:.0%}; {TRIALS} overlapping windows, about {apart} independent"
    yield f"             equal arms: {_share(same, Outcome.FAILED)} false BLOCK, {_share(same, Outcome.UNKNOWN)} open"
    yield (
        f"             {SLOWED - 1:.0%} slower: {_share(slow, Outcome.PASSED)} false PASS, "
        f"{_share(slow, Outcome.FAILED)} BLOCK, {_share(slow, Outcome.UNKNOWN)} open"
    )


def _share(outcomes: list[Outcome], which: Outcome) -> str:
    return f"{outcomes.count(which) / len(outcomes):.0%}"
