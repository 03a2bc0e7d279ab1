"""Timing arms against each other: interleaved, warmed up, in segments, with every sample kept."""

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import torch
from torch import Tensor

from amp_core.step import Batch

MIN_WARMUP_STEPS = 3
MAX_WARMUP_STEPS = 50
WINDOW = 5  # steps that one median of the warm-up looks at
CONVERGED = 0.05  # relative change between two windows

Clock: TypeAlias = Callable[[Callable[[], None]], float]


class Worker(Protocol):
    """One arm that can be asked to take steps."""

    def run(self, steps: int) -> None:
        """Take that many steps."""


class TrainingWorker:
    """An arm that trains: it takes its batches in a fixed order, and keeps every loss."""

    def __init__(self, step: Callable[[Batch], Tensor], batches: Sequence[Batch]) -> None:
        self._step = step
        self._batches = batches
        self.losses: list[Tensor] = []

    def run(self, steps: int) -> None:
        """Take that many training steps."""
        for _ in range(steps):
            self.losses.append(self._step(self._batches[len(self.losses) % len(self._batches)]))


@dataclass(frozen=True)
class Warmup:
    """How an arm warmed up: its steps, whether its step time settled, and the fastest of its last steps."""

    steps: int
    converged: bool
    step_time_s: float


def clock_for(device: torch.device) -> Clock:
    """Return the clock that times work on a device: CUDA events on a GPU, the monotonic clock elsewhere."""
    return _cuda_events if device.type == "cuda" else _wall_clock


def order(arms: Sequence[str], round_index: int) -> tuple[str, ...]:
    """Return the order of a round: forwards in even rounds, backwards in odd ones."""
    return tuple(arms if round_index % 2 == 0 else reversed(arms))


def warm_up(worker: Worker, clock: Clock) -> Warmup:
    """Take steps until the median of the last five is within 5 % of the five before, fifty at most."""
    times: list[float] = []
    converged = False
    while len(times) < MAX_WARMUP_STEPS and not converged:
        times.append(clock(lambda: worker.run(1)))
        converged = len(times) >= max(MIN_WARMUP_STEPS, 2 * WINDOW) and _settled(times)
    return Warmup(len(times), converged, min(times[-WINDOW:]))


def steps_per_segment(warmups: Sequence[Warmup], segment_s: float) -> int:
    """Return how many steps the fastest arm needs to fill a segment; every arm takes as many."""
    return math.ceil(segment_s / min(warmup.step_time_s for warmup in warmups)) + 1


def measure(workers: Mapping[str, Worker], clock: Clock, *, rounds: int, steps: int) -> dict[str, tuple[float, ...]]:
    """Return seconds per step, by arm, one sample a round.

    A segment is one step that is discarded, as it follows a switch of arms, and `steps` that are timed together.
    """
    samples: dict[str, list[float]] = {name: [] for name in workers}
    with collection_paused():
        for round_index in range(rounds):
            for name in order(list(workers), round_index):
                samples[name].append(_segment(workers[name], clock, steps))
    return {name: tuple(values) for name, values in samples.items()}


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


def _segment(worker: Worker, clock: Clock, steps: int) -> float:
    worker.run(1)
    return clock(lambda: worker.run(steps)) / steps


def _settled(times: Sequence[float]) -> bool:
    last = statistics.median(times[-WINDOW:])
    before = statistics.median(times[-2 * WINDOW : -WINDOW])
    return abs(last - before) <= CONVERGED * before


def _wall_clock(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _cuda_events(work: Callable[[], None]) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]  # as torch has it
    start.record()
    work()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1000.0
