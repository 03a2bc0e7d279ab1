"""The gradients of a step: their norm, kept parameter by parameter, without a host read."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn


class GradientNorms(NamedTuple):
    """The 2-norms of one step's true gradients: `total`, a float32 scalar, and `each`, in the order of `params`."""

    total: Tensor
    each: Tensor
    params: Sequence[nn.Parameter]

    def first_non_finite(self, names: Mapping[int, str]) -> str:
        """Say which parameter's gradient is not finite, by its name in `names` (by `id`); a host read."""
        for param, norm in zip(self.params, self.each.tolist(), strict=True):
            if not math.isfinite(norm):
                name = names.get(id(param), f"of shape {tuple(param.shape)}")
                return f"the first parameter without a finite gradient is {name} (gradient norm {norm:g})"
        return "each parameter's gradient is finite, only the norm over all of them overflows float32"


def measure_gradients(params: Sequence[nn.Parameter], device: torch.device) -> GradientNorms:
    """Return the norms of the gradients that there are, as torch.nn.utils.clip_grad_norm_ computes the total.

    Those of bfloat16 gradients are float32. The norm of sharded gradients (DTensor) is that of the whole. Nothing is
    read back to the host.
    """
    grads = [grad for param in params if (grad := param.grad) is not None]
    if not grads:
        return GradientNorms(torch.zeros((), device=device), torch.zeros(0, device=device), ())
    having = params if len(grads) == len(params) else [param for param in params if param.grad is not None]
    dense = [grad.coalesce().values() if grad.is_sparse else grad for grad in grads]
    wide = torch.float32 if torch.bfloat16 in [grad.dtype for grad in dense] else None
    norms = torch._foreach_norm(dense, 2.0, wide)  # noqa: SLF001  what torch's own clipping calls
    own = torch.stack([norm if norm.device == device else norm.to(device) for norm in norms])
    # of distributed gradients over all shards: an exchange
    each = own if type(own) is Tensor else getattr(own, "full_tensor", lambda: own)()
    return GradientNorms(torch.linalg.vector_norm(each), each, having)


def by_group(norms: GradientNorms, optimizers: Sequence[torch.optim.Optimizer]) -> list[GradientNorms]:
    """Return the norms of each parameter group by itself; all of them together are what was measured."""
    parts, start = [], 0
    for group in (group for each in optimizers for group in each.param_groups):
        having = [param for param in group["params"] if param.grad is not None]
        each = norms.each[start : start + len(having)]
        parts.append(GradientNorms(torch.linalg.vector_norm(each), each, having))
        start += len(having)
    return parts
