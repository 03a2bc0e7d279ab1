"""What is measured, on what and how much: decided before the first sample, and written down with the samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from amp_core.benchmark.arms import BASELINE, HALF, lean_arms, precisions_for, timed_arms
from amp_core.benchmark.timing import Clock, clock_for
from amp_core.benchmark.workload import Workload, workload_for
from amp_core.device import DeviceFacts, inspect
from amp_core.samples import Metric


class BenchmarkFailed(RuntimeError):
    """The arms did not do the work that their times claim."""


@dataclass(frozen=True)
class Plan:
    """How much is measured; six rounds or seeds are the least that give an interval at 95 %."""

    rounds: int = 24  # of step times
    seeds: int = 8  # trained in every precision, `train_steps` each
    train_steps: int = 40  # after which the model predicts as well as any can
    inference_rounds: int = 8
    inference_forwards: int = 25  # timed in a row, one by one
    scaling_rounds: int = 8
    threads: int = 1

    @classmethod
    def smoke(cls) -> "Plan":
        """Return a plan that measures everything, each as little as an interval needs."""
        return cls(rounds=8, seeds=6, train_steps=30, inference_rounds=6, inference_forwards=5, scaling_rounds=6)


@dataclass(frozen=True)
class Setup:
    """A device that is present, what runs on it, and how much of it."""

    device: torch.device
    facts: DeviceFacts
    workload: Workload
    precisions: tuple[str, ...]
    plan: Plan

    @classmethod
    def on(cls, device: torch.device, plan: Plan, precisions: Sequence[str] = ()) -> "Setup":
        """Return the setup for a device; without precisions, those that are worth timing on it."""
        facts = inspect(device)
        return cls(device, facts, workload_for(device), tuple(precisions) or precisions_for(facts), plan)

    @property
    def clock(self) -> Clock:
        """Return the clock of the device."""
        return clock_for(self.device)

    @property
    def segment_s(self) -> float:
        """Return how long a timed segment lasts at least."""
        return 0.010 if self.device.type == "cuda" else 0.030

    @property
    def arms(self) -> tuple[str, ...]:
        """Return the arms of the step times; lean ones where a GPU's memory is measured, too."""
        return timed_arms(self.precisions) + self._lean

    @property
    def memory_arms(self) -> tuple[str, ...]:
        """Return the arms whose memory is compared."""
        return self.precisions + self._lean

    @property
    def train_steps(self) -> int:
        """Return the steps of a training: on a GPU enough for a loss of precision to add up."""
        return self.plan.train_steps * (60 if self.device.type == "cuda" else 1)

    @property
    def trained(self) -> tuple[str, ...]:
        """Return the precisions whose training is compared: on every device both 16-bit ones."""
        return (BASELINE, *HALF)

    @property
    def _lean(self) -> tuple[str, ...]:
        return lean_arms(self.precisions) if self.device.type == "cuda" else ()

    def settings(self) -> dict[str, str]:
        """Return what holds for every part of the benchmark."""
        pinned = {name: "high" if name == "tf32" else "highest" for name in (*self.precisions, *self.trained)}
        return {
            "model": str(self.workload),
            "optimizer": "AdamW fused",
            "float32_matmul_precision": ", ".join(f"{name} {setting}" for name, setting in pinned.items()),
            "baseline": f"{BASELINE} with float32_matmul_precision={pinned[BASELINE]} on {self.facts.type}",
        }

    def describe_timing(self) -> str:
        """Return in a few sentences how it was timed."""
        clock = "CUDA events, one synchronize" if self.device.type == "cuda" else "the monotonic clock"
        return (
            f"Seconds per step over segments of at least {self.segment_s * 1000:.0f} ms, {clock} per segment, after one"
            " discarded step; arms interleaved, their order reversed every other round, garbage collection paused."
        )


@dataclass(frozen=True)
class Measured:
    """What one part of the benchmark found, and with which settings of its own."""

    metrics: Mapping[str, Metric]
    settings: Mapping[str, str] = field(default_factory=dict)
