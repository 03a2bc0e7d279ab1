"""The loss head in chunks: cross-entropy over a large vocabulary without its logits."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def chunked_cross_entropy(
    hidden: Tensor, head_weight: Tensor, targets: Tensor, *, chunk: int, ignore_index: int = -100
) -> Tensor:
    """Return the mean cross-entropy, in nat, of `hidden @ head_weight.T`, which is never held whole.

    `hidden` is float (..., width), `head_weight` float (vocab, width), `targets` int64 of hidden's leading shape. The
    logits are computed `chunk` rows at a time, and once more in the backward pass: peak memory grows with
    chunk * vocab instead of rows * vocab, for one more product of the head. The products run in autocast's dtype
    (without autocast in hidden's), softmax and sum in float32 at least, and the weight's gradient is summed over the
    chunks in float32. Gradients carry the loss scale exactly as those of a plain head do, so an overflow reaches them
    as inf or NaN. The result is a float32 scalar (float64 for float64), NaN if every target is ignored, as torch's is.

    Raises:
        ValueError: shapes that do not fit, or a chunk below 1.
    """
    if chunk < 1:
        raise ValueError(f"chunk must be at least 1 row, found {chunk!r}")
    if hidden.dim() < 2 or hidden.shape[:-1] != targets.shape or head_weight.shape[1:] != hidden.shape[-1:]:
        raise ValueError(
            "expected hidden (..., width), head_weight (vocab, width) and targets (...),"
            f" found {tuple(hidden.shape)}, {tuple(head_weight.shape)} and {tuple(targets.shape)}"
        )
    device_type = hidden.device.type
    if torch.is_autocast_enabled(device_type):
        hidden = hidden.to(torch.get_autocast_dtype(device_type))
    with torch.autocast(device_type, enabled=False):
        loss: Tensor = _ChunkedHead.apply(  # type: ignore[no-untyped-call]  # torch declares no types for it
            hidden.flatten(0, -2), head_weight, targets.flatten(), chunk, ignore_index
        )
    return loss


class _ChunkedHead(torch.autograd.Function):
    """Cross-entropy of a linear head, for hidden (rows, width), weight (vocab, width) and targets (rows,)."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401  torch has no type for it
        hidden: Tensor,
        weight: Tensor,
        targets: Tensor,
        chunk: int,
        ignore_index: int,
    ) -> Tensor:
        kept = targets != ignore_index
        index = targets.where(kept, 0).unsqueeze(1)
        matrix = weight.to(hidden.dtype)
        scores, log_sums = [], []
        for rows, at in zip(torch.split(hidden, chunk), torch.split(index, chunk), strict=True):
            logits = _logits(rows, matrix)
            scores.append(logits.gather(1, at))
            top = logits.amax(1, keepdim=True)
            log_sums.append(logits.sub_(top).exp_().sum(1, keepdim=True).log_().add_(top))
        log_sum = torch.cat(log_sums)
        losses = (log_sum - torch.cat(scores)).squeeze(1)
        ctx.save_for_backward(hidden, weight, index, kept, log_sum)
        ctx.chunk = chunk
        return losses.where(kept, 0.0).sum() / kept.sum()

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any,  # noqa: ANN401  the same
        grad: Tensor,
    ) -> tuple[Tensor, Tensor | None, None, None, None]:
        hidden, weight, index, kept, log_sum = ctx.saved_tensors
        matrix = weight.to(hidden.dtype)
        share = (grad / kept.sum()).where(kept, 0.0).unsqueeze(1)  # each row's part in the mean, times the loss scale
        grad_hidden = torch.empty_like(hidden)
        wide = torch.promote_types(weight.dtype, torch.float32)
        grad_weight = torch.zeros_like(weight, dtype=wide) if ctx.needs_input_grad[1] else None
        pieces = (torch.split(each, ctx.chunk) for each in (hidden, index, log_sum, share, grad_hidden))
        with torch.autocast(hidden.device.type, enabled=False):
            for rows, at, log_sum_here, share_here, out in zip(*pieces, strict=True):
                slope = _logits(rows, matrix).sub_(log_sum_here).exp_()
                slope.scatter_(1, at, slope.gather(1, at) - 1.0)
                narrow = slope.mul_(share_here).to(hidden.dtype)  # where float16 overflows, as in a plain head
                torch.mm(narrow, matrix, out=out)
                if grad_weight is not None:
                    grad_weight += narrow.T @ rows
        return grad_hidden, grad_weight, None, None, None


def _logits(rows: Tensor, matrix: Tensor) -> Tensor:
    """Return fresh logits of some rows, multiplied in their dtype, in float32 at least."""
    logits = rows @ matrix.T
    return logits.to(torch.promote_types(logits.dtype, torch.float32))
