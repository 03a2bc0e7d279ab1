"""Memory of a training step: what it saves for backward, its predicted peak, and on a CUDA device its measured one."""

import gc
from collections.abc import Callable, Mapping, Sequence

import torch

from amp_audit import predict_peak, saved_bytes
from amp_core.benchmark.setup import Measured, Setup
from amp_core.benchmark.timing import order
from amp_core.benchmark.workload import Workload
from amp_core.samples import Direction, Metric
from amp_core.step import Batch

REPEATS = 6
STEPS = 3  # the first allocates the optimizer's state, the later ones reach the peak with it
PREDICTION = "an estimate from tensor sizes alone, no measurement"


def measure_memory(setup: Setup) -> Measured:
    """Return saved bytes and the predicted peak, one number an arm, and on a CUDA device the peaks that were measured.

    The prediction has a metric of its own: it is an estimate, and must not be taken for a measurement.
    """
    workload, device = setup.workload, setup.device
    arms = setup.memory_arms
    metrics = {
        "saved_for_backward_bytes": _one_each({arm: saved_memory(workload, arm, device) for arm in arms}),
        "predicted_peak_memory_bytes": _one_each({arm: predicted_memory(workload, arm, device) for arm in arms}),
    }
    if device.type == "cuda":
        peaks = peak_memory(workload, arms, device, repeats=REPEATS)
        metrics["peak_memory_bytes"] = Metric("B", Direction.LOWER, paired=True, arms=peaks)
    return Measured(metrics, {"predicted_peak_memory_bytes": PREDICTION})


def saved_memory(workload: Workload, arm: str, device: torch.device) -> float:
    """Return the most bytes that one step saves for its backward pass, parameters left out."""
    worker = workload.worker(arm, device, workload.batches(device, count=1))
    return float(saved_bytes(lambda: worker.run(1)).bytes)


def predicted_memory(workload: Workload, arm: str, device: torch.device) -> float:
    """Return the predicted peak bytes of a step on that type of device; nothing is allocated."""
    cpu = torch.device("cpu")

    def make_step() -> Callable[[], None]:
        worker = workload.worker(arm, cpu, workload.batches(cpu, count=1))
        return lambda: worker.run(1)

    return float(predict_peak(make_step, like_cuda=device.type == "cuda").bytes)


def peak_memory(
    workload: Workload, arms: Sequence[str], device: torch.device, *, repeats: int
) -> dict[str, tuple[float, ...]]:
    """Return peak bytes by arm, one sample a repeat, the arms interleaved, each with a fresh model.

    Batches are in the peak, as they are in training; what was allocated before is not ours and must be nothing else.
    """
    samples: dict[str, list[float]] = {arm: [] for arm in arms}
    batches = workload.batches(device)
    for repeat in range(repeats):
        for arm in order(arms, repeat):
            samples[arm].append(_peak(workload, arm, device, batches))
    return {arm: tuple(values) for arm, values in samples.items()}


def release(device: torch.device) -> None:
    """Give back the memory of objects that are no longer used."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def _peak(workload: Workload, arm: str, device: torch.device, batches: Sequence[Batch]) -> float:
    release(device)
    torch.cuda.reset_peak_memory_stats(device)
    workload.worker(arm, device, batches).run(STEPS)
    torch.cuda.synchronize(device)
    return float(torch.cuda.max_memory_allocated(device))


def _one_each(values: Mapping[str, float]) -> Metric:
    return Metric("B", Direction.LOWER, paired=True, arms={arm: (value,) for arm, value in values.items()})
