"""Makes a step of the tested project at several sizes, each start in a fork of its own, and tells what each takes."""

import gc
import signal
import time
from collections.abc import Callable, Sequence
from cProfile import Profile
from functools import partial
from random import Random
from typing import Any

from .arms import Worker
from .asking import DONE, Teller, as_step, called, cuda_of_project, found, in_fork, program
from .calculating import built
from .memory import peak, reset_peak, resident, trim

SEGMENT_S = 0.005
WARM, LEAST, MOST = 2, 4, 60
PAGE = 4096  # memory is never less
CLOCKS = {"step_time_s": "wall_s", "step_cpu_time_s": "cpu_s"}
Step = Callable[[], object]


def peak_of(make: Callable[[], Step]) -> float:
    """Return the most memory that making a step and doing it three times takes, above what there was before."""
    gc.collect()
    trim()
    before = resident()
    if cuda := cuda_of_project():
        cuda.reset_peak_memory_stats()
    reset_peak()
    step = make()
    for _ in range(3):
        called(step)
    if cuda := cuda_of_project():  # by now
        cuda.synchronize()
    return float(max(PAGE, cuda.max_memory_allocated() if cuda else peak() - before))


def calls_of(make: Callable[[], Step]) -> float:
    """Return how many functions, Python's and built in, a step calls; the first step is not counted."""
    step, profile = make(), Profile()
    called(step)
    profile.runcall(step)
    return float(sum(entry.callcount for entry in profile.getstats()))


@program
def main(question: dict[str, Any], tell: Teller) -> None:
    """Measure the step, each start in a fork."""
    until = time.monotonic() + question["seconds"]
    make = found(question["call"])
    for start in range(question["restarts"]):
        if time.monotonic() > until:
            break
        code = in_fork(tell, partial(_measured, question, tell, make, start), question["root"])
        if code <= 0:
            how = f"was killed by {signal.Signals(-code).name}" if code else "ended by itself"
            tell("problem", what=f"it {how}", place=None)
        if code != DONE:
            break


def _measured(asked: dict[str, Any], tell: Teller, make: Callable[..., object], start: int) -> None:
    """Tell what is measured of the step at each size, in one start."""

    def step(size: int) -> Step:
        return as_step(make(*built(asked["args"]), **built(asked["kwargs"]), **{asked["argument"]: size}))

    steps = [partial(step, size) for size in asked["sizes"]]
    if asked["of"] in CLOCKS:
        _timed(asked, tell, steps, start)
        return
    called(steps[0]())  # what is loaded or made once is no part of a step
    measure = peak_of if asked["of"] == "peak_memory_bytes" else calls_of
    tell("round", restart=start, values=[measure(each) for each in steps])


def _timed(asked: dict[str, Any], tell: Teller, steps: Sequence[Callable[[], Step]], start: int) -> None:
    """Tell of rounds, in each of which every size is timed once, in an order of its own."""
    until = time.monotonic() + asked["budget_s"] / asked["restarts"]
    workers = [Worker(make, asked["threads"]) for make in steps]
    # so many steps are timed together that a clock can tell
    counts = [max(1, min(10_000, round(SEGMENT_S / max(one.run(1, WARM)["wall_s"], 1e-7)))) for one in workers]
    tell("device", type=workers[-1].hello()["device"]["type"])
    shuffle, order = Random(start).shuffle, [*range(len(workers))]  # noqa: S311  # one of our own
    for done in range(MOST):
        if done >= LEAST and time.monotonic() > until:
            break
        shuffle(order)
        took = {i: workers[i].run(counts[i], 1)[CLOCKS[asked["of"]]] / counts[i] for i in order}
        tell("round", restart=start, values=[took[i] for i in range(len(workers))])
