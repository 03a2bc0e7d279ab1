"""The canonical mixed-precision recipe, written out with torch alone: the peer that TrainStep is compared with."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from amp_core.step import Batch, LossFn


def make_scaler(device_type: str, dtype: torch.dtype) -> torch.amp.GradScaler:
    """Return torch's scaler, enabled for float16 only, as the recipe has it."""
    return torch.amp.GradScaler(device_type, enabled=dtype is torch.float16)


def step_by_hand(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    window: Sequence[Batch],
    loss_fn: LossFn,
    *,
    device_type: str,
    dtype: torch.dtype,
    max_grad_norm: float | None,
) -> Tensor:
    """Take one optimizer step over a window of micro-batches; return the last one's detached scalar loss."""
    for batch in window:
        with torch.amp.autocast(device_type=device_type, dtype=dtype, enabled=dtype is not torch.float32):
            loss = loss_fn(model, batch)
        scaled = scaler.scale(loss if len(window) == 1 else loss * (1.0 / len(window)))
        scaled.backward()  # type: ignore[no-untyped-call]  # torch declares no types for it
    scaler.unscale_(optimizer)
    if max_grad_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()
