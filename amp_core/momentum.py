"""The momentum of fused SGD, which torch leaves unwritten when its first step is skipped."""

import torch


def begin_momentum(optimizer: torch.optim.Optimizer) -> None:
    """Give fused SGD the momentum buffers of its first step, as zeros: momentum * 0 + gradient is the gradient.

    torch 2.13 allocates them without content and lets the kernel fill them. A kernel that skips its step does not,
    and the next one takes what lay in that memory for momentum. Fine after the first step, and for other optimizers.

    Raises:
        ValueError: the optimizer has dampening, which would shrink the first gradient.
    """
    if not isinstance(optimizer, torch.optim.SGD) or not getattr(optimizer, "_step_supports_amp_scaling", False):
        return
    for group in optimizer.param_groups:
        if group["momentum"] == 0.0:
            continue
        if group["dampening"] != 0.0:
            raise ValueError(
                f"fused SGD with dampening={group['dampening']!r} loses its momentum if its first step is skipped:"
                " use dampening=0, or fused=False"
            )
        for param in group["params"]:
            if param.grad is not None and optimizer.state[param].get("momentum_buffer") is None:
                optimizer.state[param]["momentum_buffer"] = torch.zeros_like(param)
