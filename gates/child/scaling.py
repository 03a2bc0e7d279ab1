"""Makes a step of the tested project at several sizes, and tells what each takes, or which functions take it.

    python -m gates_probe.scaling QUESTION

The project is imported once; all that is measured is measured in forks of that process, so that no size finds what
another left behind.
"""

import gc
import math
import signal
import sys
import time
from collections.abc import Callable, Sequence
from cProfile import Profile
from functools import partial
from random import Random
from types import CodeType
from typing import Any

from .asking import DONE, Places, Teller, Unreachable, found, give_up, in_fork, is_lazy, program, said
from .calculating import built
from .memory import peak, reset_peak, resident, trim

SEGMENT_S = 0.005
WARM = 3
LEAST, MOST = 4, 60
PAGE = 4096  # memory is never less
Step = Callable[[], object]


def times_of(
    make: Callable[[int], Step], sizes: Sequence[int], number: int, share_s: float, clock: int, tell: Teller
) -> None:
    """Tell of rounds, in each of which every size is timed once, in an order of its own, by one of two clocks."""
    began = time.monotonic()
    steps = {size: make(size) for size in sizes}
    counts = {size: _warmed(step) for size, step in steps.items()}
    tell("device", type="cuda" if _cuda() else "cpu")
    gc.collect()
    gc.disable()
    shuffle = Random(number).shuffle  # noqa: S311  # one of our own
    for done in range(MOST):
        if done >= LEAST and time.monotonic() - began > share_s:
            break
        order = list(sizes)
        shuffle(order)
        took = {size: _timed(steps[size], counts[size]) for size in order}
        tell("round", restart=number, values=[took[size][clock] for size in sizes])


def peak_of(make: Callable[[], Step]) -> float:
    """Return the most memory that making a step and doing it three times takes, above what there was before."""
    gc.collect()
    trim()
    before = resident()
    if torch := _cuda():
        torch.cuda.reset_peak_memory_stats()
    reset_peak()
    step = make()
    for _ in range(3):
        called(step)
    if torch := _cuda():
        torch.cuda.synchronize()
        return float(max(PAGE, torch.cuda.max_memory_allocated()))
    return float(max(PAGE, peak() - before))


def calls_of(make: Callable[[], Step]) -> float:
    """Return how many functions, Python's and built in, a step calls; the first step is not counted."""
    step = make()
    called(step)
    count = 0

    def look(_frame: object, event: str, _arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(look)
    try:
        step()
    finally:
        sys.setprofile(None)
    return float(max(1, count))


def called(step: Step) -> object:
    """Do a step; raise `TypeError` where nothing was done."""
    result = step()
    if is_lazy(result):
        raise TypeError(f"the step returned a {type(result).__name__} that nobody runs; return a plain function")
    return result


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


def _cuda() -> Any:  # noqa: ANN401  # the project's torch, if it computes on a GPU
    torch = sys.modules.get("torch")
    return torch if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized() else None


def _synchronize() -> None:
    if torch := _cuda():
        torch.cuda.synchronize()


ENOUGH_S = 0.05
MOST_STEPS = 200
LEAST_SHARE = 0.1


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


SHARE = 0.75  # of the time limit, after which nothing new is begun
CLOCKS = ("step_time_s", "step_cpu_time_s")
VALUES = {"peak_memory_bytes": peak_of, "python_calls": calls_of}


@program
def main(question: dict[str, Any], tell: Teller) -> None:
    """Measure the step, or find what takes most of it."""
    until = time.monotonic() + SHARE * question["limit_s"]
    sizing = Sizing(question, tell)
    if question["where"]:
        sizing.forked("its least and largest size", sizing.where)
        return
    for i in range(question["restarts"]):
        if time.monotonic() > until or not sizing.forked(f"start {i + 1}", partial(sizing.measured, i)):
            break


class Sizing:
    """The step at each size; what is done with it is done in a fork, and told."""

    def __init__(self, question: dict[str, Any], tell: Teller) -> None:
        self._question, self._tell = question, tell
        self._sizes, self._of = question["sizes"], question["of"]
        self._make = found(question["call"])
        self._places = Places(question["root"])

    def step(self, size: int) -> Step:
        """Return the step at a size."""
        asked = self._question
        made = self._make(*built(asked["args"]), **built(asked["kwargs"]), **{asked["argument"]: size})
        if not callable(made):
            raise Unreachable(f"it returned {type(made).__name__}, expected the step: a function without arguments")
        return made  # type: ignore[no-any-return]  # whatever can be called

    def measured(self, number: int) -> None:
        """Tell what is measured at each size, in one start."""
        measure = VALUES.get(self._of)
        if measure is None:
            share_s = self._question["budget_s"] / self._question["restarts"]
            times_of(self.step, self._sizes, number, share_s, CLOCKS.index(self._of), self._tell)
            return
        called(self.step(self._sizes[0]))  # what is loaded or made once is no part of a step
        values = [measure(partial(self.step, size)) for size in self._sizes]
        self._tell("round", restart=number, values=values)

    def where(self) -> None:
        """Tell of the function that takes most beyond what the limit lets it, else of the one that grows fastest."""
        sizes, places = (self._sizes[0], self._sizes[-1]), self._places
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

    def forked(self, name: str, work: Callable[[], None]) -> bool:
        """Do something in a fork; return whether it came to its end, and tell why not."""

        def told() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001  # whatever the project raises is told
                what = str(error) if isinstance(error, Unreachable) else f"at {name} it raises {said(error)}"
                give_up(self._tell, what, self._places.innermost(error.__traceback__))

        code = in_fork(self._tell, told)
        if code < 0 or code == 0:
            how = f"was killed by {signal.Signals(-code).name}" if code else "ended by itself"
            self._tell("problem", what=f"at {name} it {how}", place=None)
        return code == DONE
