"""What a training step needs of its model and optimizers, told at its construction."""

import inspect
import warnings
from collections.abc import Sequence

import torch
from torch import nn


def trainable(optimizers: Sequence[torch.optim.Optimizer]) -> list[nn.Parameter]:
    """Return the parameters that the optimizers train, in order.

    Raises:
        ValueError: there is none, or two optimizers share one.
    """
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    params = [param for group in groups for param in group["params"] if param.requires_grad]
    if not params:
        raise ValueError("the optimizer has no trainable parameter: set requires_grad, or pass it model.parameters()")
    if len({id(param) for param in params}) < len(params):
        raise ValueError("two optimizers share a parameter: it would be unscaled and stepped twice; give it to one")
    return params


def refuse_half_precision(model: nn.Module, params: Sequence[nn.Parameter]) -> None:
    """Raise ValueError, with its name in the model, for a parameter in half precision: unscaling could not see it."""
    names = {id(param): name for name, param in model.named_parameters()}
    for param in params:
        if param.dtype in (torch.float16, torch.bfloat16):
            name = names.get(id(param), "of another model")
            raise ValueError(
                f"parameter {name} is {param.dtype}, expected torch.float32:"
                " call model.float() and let autocast choose the compute dtype"
            )


def refuse_closures(optimizer: torch.optim.Optimizer) -> None:
    """Raise ValueError for an optimizer whose step needs a closure, such as LBFGS."""
    closure = inspect.signature(optimizer.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise ValueError(
            f"{type(optimizer).__name__} needs a closure, which loss scaling cannot serve:"
            " use an optimizer such as torch.optim.AdamW(..., fused=True)"
        )


def announce_host_read(optimizer: torch.optim.Optimizer) -> None:
    """Warn of an optimizer that cannot decide on the device whether to step."""
    if not getattr(optimizer, "_step_supports_amp_scaling", False):
        warnings.warn(
            f"{type(optimizer).__name__} is not fused: each step reads back to the host whether it is to be skipped"
            " (pass fused=True to avoid it)",
            stacklevel=3,
        )
