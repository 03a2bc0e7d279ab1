"""How step time, and on a GPU peak memory, grow with the batch size and the sequence length."""

import dataclasses
from collections.abc import Iterator
from contextlib import suppress

import torch

from amp_core.benchmark.memory import peak_memory, release
from amp_core.benchmark.setup import Measured, Setup
from amp_core.benchmark.steps import time_arms
from amp_core.benchmark.workload import Workload
from amp_core.samples import Direction, Metric

BATCH_SIZES = {"cpu": (1, 2, 8), "cuda": (1, 4, 16, 32)}
CONTEXTS = {"cpu": (8, 16, 64), "cuda": (256, 512, 1024)}
PEAK_REPEATS = 1  # the allocator counts the same work to the same byte


def measure_scaling(setup: Setup) -> Measured:
    """Return the metrics of every shape; arms that do not fit into memory are left out there, and named."""
    metrics: dict[str, Metric] = {}
    missing: list[str] = []
    for shape, workload in shapes(setup):
        arms = setup.precisions
        if setup.device.type == "cuda":
            peaks = {
                arm: peak for arm in arms if (peak := peak_or_none(workload, arm, setup.device, repeats=PEAK_REPEATS))
            }
            missing += [f"{arm} at {shape}" for arm in arms if arm not in peaks]
            arms = tuple(peaks)
            if peaks:
                name = f"scaling_peak_memory_bytes_{shape}"
                metrics[name] = Metric("B", Direction.LOWER, paired=True, arms=peaks)
        if arms and (times := _times_or_none(workload, arms, setup)):
            metrics[f"scaling_step_time_s_{shape}"] = Metric("s", Direction.LOWER, paired=True, arms=times)
        elif arms:
            missing.append(f"the times of all arms together at {shape}")
    return Measured(metrics, {"scaling_out_of_memory": ", ".join(missing) or "none"})


def shapes(setup: Setup) -> Iterator[tuple[str, Workload]]:
    """Yield the name of each shape and its workload: other batch sizes, then other sequence lengths."""
    base = setup.workload
    for size in BATCH_SIZES[setup.device.type]:
        yield f"batch_{size}", dataclasses.replace(base, batch_size=size)
    for context in CONTEXTS[setup.device.type]:
        model = dataclasses.replace(base.model, context=context)
        yield f"context_{context}", dataclasses.replace(base, model=model)


def _times_or_none(workload: Workload, arms: tuple[str, ...], setup: Setup) -> dict[str, tuple[float, ...]] | None:
    rounds, segment_s = setup.plan.scaling_rounds, setup.segment_s
    with suppress(torch.OutOfMemoryError):
        return time_arms(workload, arms, setup.device, setup.clock, rounds=rounds, segment_s=segment_s).step_time_s
    release(setup.device)
    return None


def peak_or_none(workload: Workload, arm: str, device: torch.device, *, repeats: int) -> tuple[float, ...] | None:
    """Return an arm's peak bytes, one sample a repeat, or None if it does not fit into the device's memory."""
    with suppress(torch.OutOfMemoryError):  # what its frames held is freed when the block ends
        return peak_memory(workload, (arm,), device, repeats=repeats)[arm]
    release(device)
    return None
