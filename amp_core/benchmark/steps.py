"""The time of one training step, every arm against the others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from amp_core.benchmark.setup import BenchmarkFailed, Measured, Setup
from amp_core.benchmark.timing import Clock, Elapsed, Warmup, measure, steps_per_segment, warm_up
from amp_core.benchmark.workload import TrainingWorker, Workload
from amp_core.samples import Direction, Metric


@dataclass(frozen=True)
class Timed:
    """The times of a step by arm, one a round, and how they came about."""

    elapsed: Mapping[str, tuple[Elapsed, ...]]
    warmups: Mapping[str, Warmup]
    steps_per_segment: int

    @property
    def step_time_s(self) -> dict[str, tuple[float, ...]]:
        """Return the seconds of a step, by arm."""
        return {arm: tuple(each.wall_s for each in values) for arm, values in self.elapsed.items()}

    @property
    def step_cpu_time_s(self) -> dict[str, tuple[float, ...]]:
        """Return the CPU seconds of a step, by arm; empty on a GPU."""
        found = {
            arm: tuple(each.cpu_s for each in values if each.cpu_s is not None) for arm, values in self.elapsed.items()
        }
        return found if all(found.values()) else {}


def measure_steps(setup: Setup) -> Measured:
    """Return step times, by the wall's clock and by the CPU's, and the throughput that they come to."""
    timed = time_arms(
        setup.workload, setup.arms, setup.device, setup.clock, rounds=setup.plan.rounds, segment_s=setup.segment_s
    )
    metrics = {"step_time_s": Metric("s", Direction.LOWER, paired=True, arms=timed.step_time_s)}
    if timed.step_cpu_time_s:
        metrics["step_cpu_time_s"] = Metric("s", Direction.LOWER, paired=True, arms=timed.step_cpu_time_s)
    for name, amount in (("samples_per_s", setup.workload.batch_size), ("tokens_per_s", setup.workload.tokens)):
        rates = {arm: tuple(amount / time for time in times) for arm, times in timed.step_time_s.items()}
        metrics[name] = Metric("1/s", Direction.HIGHER, paired=True, arms=rates)
    return Measured(metrics, _settings(setup, timed))


def time_arms(
    workload: Workload, arms: Sequence[str], device: torch.device, clock: Clock, *, rounds: int, segment_s: float
) -> Timed:
    """Time every arm of a workload against the others; raise as `time_workers` does."""
    batches = workload.batches(device)
    workers = {arm: workload.worker(arm, device, batches) for arm in arms}
    return time_workers(workers, clock, rounds=rounds, segment_s=segment_s)


def time_workers(workers: Mapping[str, TrainingWorker], clock: Clock, *, rounds: int, segment_s: float) -> Timed:
    """Warm up all workers, and time them against each other.

    Raises:
        BenchmarkFailed: an arm took another number of steps than it should, or its loss is not finite.
    """
    warmups = {arm: warm_up(worker, clock) for arm, worker in workers.items()}
    steps = steps_per_segment(list(warmups.values()), segment_s)
    elapsed = measure(workers, clock, rounds=rounds, steps=steps)
    for arm, worker in workers.items():
        done = len(worker.losses) - warmups[arm].steps
        if done != rounds * (steps + 1):
            raise BenchmarkFailed(f"arm {arm!r} took {done} steps, expected {rounds * (steps + 1)}")
        if not torch.stack(worker.losses).isfinite().all():
            raise BenchmarkFailed(f"arm {arm!r} reached a loss that is not finite: its times say nothing")
    return Timed(elapsed, warmups, steps)


def _settings(setup: Setup, timed: Timed) -> dict[str, str]:
    warmups = ", ".join(
        f"{arm} {warmup.steps}{'' if warmup.converged else ' (not settled)'}" for arm, warmup in timed.warmups.items()
    )
    return {
        "rounds": str(setup.plan.rounds),
        "order": f"{' '.join(timed.elapsed)}, reversed every other round",
        "steps_per_segment": str(timed.steps_per_segment),
        "warmup_steps": warmups,
    }
