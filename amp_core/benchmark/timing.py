"""Timing arms against each other: interleaved, warmed up, in segments, with every sample kept."""

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import torch

MIN_WARMUP_STEPS = 3
MAX_WARMUP_STEPS = 50
WINDOW = 5  # steps that one median of the warm-up looks at
CONVERGED = 0.05  # relative change between two windows


@dataclass(frozen=True)
class Elapsed:
    """Seconds that work took: on the wall (on a GPU by its own clock), and of CPU time (of all threads, CPU only)."""

    wall_s: float
    cpu_s: float | None = None

    def __truediv__(self, steps: int) -> "Elapsed":
        return Elapsed(self.wall_s / steps, None if self.cpu_s is None else self.cpu_s / steps)


Clock: TypeAlias = Callable[[Callable[[], None]], Elapsed]


class Worker(Protocol):
    """One arm that can be asked to take steps."""

    def run(self, steps: int) -> None:
        """Take that many steps."""


@dataclass(frozen=True)
class Warmup:
    """How an arm warmed up: its steps, whether its step time settled, and the fastest of its last steps."""

    steps: int
    converged: bool
    step_time_s: float


def clock_for(device: torch.device) -> Clock:
    """Return the clock that times work on a device: CUDA events on a GPU, the monotonic clock elsewhere."""
    return _cuda_clock if device.type == "cuda" else _host_clock


def order(arms: Sequence[str], round_index: int) -> tuple[str, ...]:
    """Return the order of a round: forwards in even rounds, backwards in odd ones."""
    return tuple(arms if round_index % 2 == 0 else reversed(arms))


def warm_up(worker: Worker, clock: Clock) -> Warmup:
    """Take steps until the median of the last five is within 5 % of the five before, fifty at most."""
    times: list[float] = []
    converged = False
    while len(times) < MAX_WARMUP_STEPS and not converged:
        times.append(clock(lambda: worker.run(1)).wall_s)
        converged = len(times) >= max(MIN_WARMUP_STEPS, 2 * WINDOW) and _settled(times)
    return Warmup(len(times), converged, min(times[-WINDOW:]))


def steps_per_segment(warmups: Sequence[Warmup], segment_s: float) -> int:
    """Return how many steps the fastest arm needs to fill a segment; every arm takes as many."""
    return math.ceil(segment_s / min(warmup.step_time_s for warmup in warmups)) + 1


def measure(workers: Mapping[str, Worker], clock: Clock, *, rounds: int, steps: int) -> dict[str, tuple[Elapsed, ...]]:
    """Return the time of one step, by arm, one sample a round.

    A segment is one step that is discarded, as it follows a switch of arms, and `steps` that are timed together.
    """
    samples: dict[str, list[Elapsed]] = {name: [] for name in workers}
    with collection_paused():
        for round_index in range(rounds):
            for name in order(list(workers), round_index):
                samples[name].append(_segment(workers[name], clock, steps))
    return {name: tuple(values) for name, values in samples.items()}


def latencies(
    work: Callable[[], object], count: int, device: torch.device, new_event: Callable[[], Any] | None = None
) -> tuple[float, ...]:
    """Return the seconds of each of `count` calls made one after another.

    On a GPU they are differences of events in its stream, all recorded before the host waits once, for the last.
    """
    if device.type != "cuda":
        moments = [time.perf_counter()]
        for _ in range(count):
            work()
            moments.append(time.perf_counter())
        return tuple(end - start for start, end in pairwise(moments))
    make = new_event or partial(torch.cuda.Event, enable_timing=True)
    events = [make() for _ in range(count + 1)]
    events[0].record()
    for event in events[1:]:
        work()
        event.record()
    events[-1].synchronize()
    return tuple(start.elapsed_time(end) / 1000.0 for start, end in pairwise(events))


@contextmanager
def collection_paused() -> Iterator[None]:
    """Collect garbage now, and not again while the context lasts."""
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Compute with that many CPU threads while the context lasts."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _segment(worker: Worker, clock: Clock, steps: int) -> Elapsed:
    worker.run(1)
    return clock(lambda: worker.run(steps)) / steps


def _settled(times: Sequence[float]) -> bool:
    last = statistics.median(times[-WINDOW:])
    before = statistics.median(times[-2 * WINDOW : -WINDOW])
    return abs(last - before) <= CONVERGED * before


def _host_clock(work: Callable[[], None]) -> Elapsed:
    start, cpu_start = time.perf_counter(), time.process_time()
    work()
    return Elapsed(time.perf_counter() - start, time.process_time() - cpu_start)


def _cuda_clock(work: Callable[[], None]) -> Elapsed:
    return Elapsed(latencies(work, 1, torch.device("cuda"))[0])
