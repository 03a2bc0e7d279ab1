"""Makes a step of the tested project at several sizes, and tells what each takes, or which functions take it.

    python -m gates_probe.scaling QUESTION

The project is imported once; all that is measured is measured in forks of that process, so that no size finds what
another left behind.
"""

import gc
import math
import signal
import time
from collections.abc import Callable
from cProfile import Profile
from functools import partial
from random import Random
from types import CodeType
from typing import Any

from .asking import DONE, Places, Teller, as_step, called, cuda_of_project, found, in_fork, program
from .calculating import built
from .memory import peak, reset_peak, resident, trim

SEGMENT_S = 0.005
WARM = 3
LEAST, MOST = 4, 60
PAGE = 4096  # memory is never less
ENOUGH_S, MOST_STEPS = 0.05, 200  # of a profile
LEAST_SHARE = 0.1  # of a step, below which no function is named
SHARE = 0.75  # of the time limit, after which nothing new is begun
CLOCKS = ("step_time_s", "step_cpu_time_s")
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
    _synchronize()
    cuda = cuda_of_project()  # by now
    return float(max(PAGE, cuda.max_memory_allocated() if cuda else peak() - before))


def calls_of(make: Callable[[], Step]) -> float:
    """Return how many functions, Python's and built in, a step calls; the first step is not counted."""
    step, profile = make(), Profile()
    called(step)
    profile.runcall(step)
    return float(sum(entry.callcount for entry in profile.getstats()))


def _synchronize() -> None:
    if cuda := cuda_of_project():
        cuda.synchronize()


def _warmed(step: Step) -> int:
    """Return how many steps are timed together, so that a clock can tell."""
    for _ in range(WARM - 1):
        called(step)
    began = time.perf_counter()
    called(step)
    _synchronize()
    return max(1, min(10_000, round(SEGMENT_S / max(time.perf_counter() - began, 1e-7))))


def _timed(step: Step, count: int) -> tuple[float, float]:
    step()  # what another size left in the caches is not this one's
    _synchronize()
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        step()
    _synchronize()
    return (time.perf_counter() - wall) / count, (time.process_time() - cpu) / count


def functions_of(step: Step, of: str, places: Places) -> dict[CodeType, float]:
    """Return what each function of the project takes of a step, with all that it calls outside of the project."""

    def is_ours(code: object) -> bool:
        return isinstance(code, CodeType) and places.shown(code.co_filename) is not None

    called(step)  # what is made once is no part of a step
    counting = of == "python_calls"
    profile = Profile(time.process_time if of == "step_cpu_time_s" else time.perf_counter, builtins=counting)
    began, steps = time.perf_counter(), 0
    while not steps or (not counting and steps < MOST_STEPS and time.perf_counter() - began < ENOUGH_S):
        profile.runcall(step)
        steps += 1
    taken: dict[CodeType, float] = {}
    for entry in profile.getstats():
        if isinstance(entry.code, CodeType) and is_ours(entry.code):
            foreign = (sub.totaltime for sub in entry.calls or () if not is_ours(sub.code))
            calls = sum(sub.callcount for sub in entry.calls or ())
            taken[entry.code] = (calls if counting else entry.inlinetime + sum(foreign)) / steps
    return taken


@program
def main(question: dict[str, Any], tell: Teller) -> None:
    """Measure the step in forks, or find in one what takes most of it."""
    until = time.monotonic() + SHARE * question["limit_s"]
    sizing = Sizing(question, tell)
    looks = [partial(sizing.measured, start) for start in range(question["restarts"])]
    for look in [sizing.where] if question["where"] else looks:
        if time.monotonic() > until:
            break
        code = in_fork(tell, look, question["root"])
        if code <= 0:
            how = f"was killed by {signal.Signals(-code).name}" if code else "ended by itself"
            tell("problem", what=f"it {how}", place=None)
        if code != DONE:
            break


class Sizing:
    """The step at each size, and what is told of it."""

    def __init__(self, question: dict[str, Any], tell: Teller) -> None:
        self._question, self._tell = question, tell
        self._sizes, self._of = question["sizes"], question["of"]
        self._make = found(question["call"])

    def step(self, size: int) -> Step:
        """Return the step at a size."""
        asked = self._question
        return as_step(self._make(*built(asked["args"]), **built(asked["kwargs"]), **{asked["argument"]: size}))

    def measured(self, start: int) -> None:
        """Tell what is measured at each size, in one start."""
        if self._of in CLOCKS:
            self._timed(start)
            return
        called(self.step(self._sizes[0]))  # what is loaded or made once is no part of a step
        measure = peak_of if self._of == "peak_memory_bytes" else calls_of
        values = [measure(partial(self.step, size)) for size in self._sizes]
        self._tell("round", restart=start, values=values)

    def _timed(self, start: int) -> None:
        """Tell of rounds, in each of which every size is timed once, in an order of its own."""
        until = time.monotonic() + self._question["budget_s"] / self._question["restarts"]
        steps = [self.step(size) for size in self._sizes]
        counts = [_warmed(step) for step in steps]
        self._tell("device", type="cuda" if cuda_of_project() else "cpu")
        gc.collect()
        gc.disable()
        shuffle, order = Random(start).shuffle, [*range(len(steps))]  # noqa: S311  # one of our own
        for done in range(MOST):
            if done >= LEAST and time.monotonic() > until:
                break
            shuffle(order)
            took = {i: _timed(steps[i], counts[i])[CLOCKS.index(self._of)] for i in order}
            self._tell("round", restart=start, values=[took[i] for i in range(len(steps))])

    def where(self) -> None:
        """Tell of the function that takes most beyond what the limit lets it, else of the one that grows fastest."""
        sizes, places = (self._sizes[0], self._sizes[-1]), Places(self._question["root"])
        least, most = (functions_of(self.step(size), self._of, places) for size in sizes)
        ratio, whole = sizes[1] / sizes[0], sum(most.values()) or 1.0
        floor = 1e-3 * sum(least.values()) or 1e-9  # what one that did not run then may have taken
        found: list[tuple[float, float, str, str, int]] = []
        for code, value in most.items():
            path, line = places.shown(code.co_filename) or "", code.co_firstlineno
            before = max(least.get(code, 0.0), floor)
            exponent = math.log(max(value, floor) / before) / math.log(ratio)
            told = f"grows with about {exponent:.2f} and takes {value / whole:.0%} of the step"
            if value >= LEAST_SHARE * whole:
                beyond = max(0.0, value - before * ratio ** self._question["at_most"])
                found.append((beyond, exponent, f"{code.co_qualname} at {path}:{line} {told}", path, line))
        if found:
            *_, told, path, line = max(found)
            self._tell("grown", grown=told, grown_at={"path": path, "line": line})
