"""Fused optimizers: which of them skip a step inside their kernel, and what a skipped first step must not leave."""

import torch


def skips_on_device(optimizer: torch.optim.Optimizer) -> bool:
    """Say whether the optimizer's own kernel leaves out a marked step: torch's fused ones do.

    Of a `step` that somebody else wrote it cannot be known, whatever the optimizer says of itself.
    """
    by_torch = type(optimizer).step.__module__.startswith("torch.optim.")
    return by_torch and all(group.get("fused") for group in optimizer.param_groups)


def begin_momentum(optimizer: torch.optim.Optimizer) -> None:
    """Give fused SGD the momentum buffers of its first step, as zeros: momentum * 0 + gradient is the gradient.

    torch 2.13 allocates them without content and lets the kernel fill them. A kernel that skips its step does not,
    and the next one takes what lay in that memory for momentum. Fine after the first step, and for other optimizers.

    Raises:
        ValueError: the optimizer has dampening, which would shrink the first gradient.
    """
    if not isinstance(optimizer, torch.optim.SGD) or not skips_on_device(optimizer):
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
