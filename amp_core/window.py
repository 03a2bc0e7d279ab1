"""A window of micro-batches: what each of them weighs, and the means of their losses and metrics over it."""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TypeAlias

import torch
from torch import Tensor, nn

from amp_core.parallel import total_over_ranks

Batch: TypeAlias = tuple[Tensor, ...]
Weigh: TypeAlias = Callable[[Batch], float | Tensor]
Weight: TypeAlias = float | Tensor | None


def weights_of(
    window: Sequence[Batch], weigh: Weigh | None, model: nn.Module, device: torch.device
) -> Sequence[Weight]:
    """Return each micro-batch's weight in the mean over the window, and over the ranks; None for 1."""
    if weigh is None:
        return [None] if len(window) == 1 else [1.0 / len(window)] * len(window)
    tensors = [on_device(weigh(batch), device) for batch in window]
    total, ranks = total_over_ranks(model, torch.stack(tensors).sum())
    return [count * ranks / total for count in tensors]  # ranks: their gradients are averaged, not summed


def mean_loss(weighted: Sequence[Tensor], weights: Sequence[Weight]) -> Tensor:
    """Return the mean over a window of losses that are multiplied by their weights, float32."""
    return reduce(torch.add, map(_share, weighted, weights))


def mean_metrics(metrics: Sequence[Mapping[str, Tensor]], weights: Sequence[Weight]) -> dict[str, Tensor]:
    """Return the mean over a window of each metric, weighed as the losses are.

    Raises:
        ValueError: the micro-batches have different metrics.
    """
    names = metrics[0].keys()
    for each in metrics:
        if each.keys() != names:
            raise ValueError(f"a window's batches must have the same metrics, found {sorted(names)} and {sorted(each)}")
    pairs = [*zip(metrics, weights, strict=True)]
    return {name: mean_loss([m[name] if w is None else m[name] * w for m, w in pairs], weights) for name in names}


def on_device(number: float | Tensor, device: torch.device) -> Tensor:
    """Return a number as a float32 scalar on the device, without its graph."""
    if isinstance(number, Tensor):
        return number.detach().to(device, torch.float32).reshape(())
    return torch.full((), float(number), device=device)  # a fill, where a copy would wait for the device


def _share(weighted: Tensor, weight: Weight) -> Tensor:
    """Return a micro-batch's part in the window's mean, float32; one that weighs nothing has none, even if NaN."""
    share = weighted if weighted.dtype is torch.float32 else weighted.float()
    return share.masked_fill(weight == 0.0, 0.0) if isinstance(weight, Tensor) else share
