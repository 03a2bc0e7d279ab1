"""Peak memory of a training step on a CUDA device, as its allocator counted it."""

import gc
from collections.abc import Sequence

import torch

from amp_core.timing import order
from amp_core.workload import Workload

STEPS = 3  # the first allocates the optimizer's state, the later ones reach the peak with it


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


def _peak(workload: Workload, arm: str, device: torch.device, batches: Sequence[tuple[torch.Tensor, ...]]) -> float:
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    workload.worker(arm, device, batches).run(STEPS)
    torch.cuda.synchronize(device)
    return float(torch.cuda.max_memory_allocated(device))
