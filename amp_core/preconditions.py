"""What a training step needs of its model and optimizers, told at its construction."""

import inspect
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler

from amp_core.device import inspect as inspect_device
from amp_core.ema import Ema
from amp_core.optimizers import skips_on_device
from amp_core.precision import Precision, Resolved, resolve
from amp_core.scaler import LossScaler
from amp_core.schedule import Schedule


def as_precision(precision: Precision | Resolved | str, device: torch.device) -> Precision:
    """Return the precision that a step was given, by itself, in an answer of `resolve`, or by its name.

    Raises:
        ValueError: it is none of these.
    """
    if isinstance(precision, str):
        resolved = resolve(precision, None, inspect_device(device))
        for message in resolved.warnings:
            warnings.warn(message, stacklevel=4)
        precision = resolved
    if isinstance(precision, Resolved):
        precision = precision.precision
    if not isinstance(precision, Precision):
        raise ValueError(  # noqa: TRY004  an argument out of range, as the others
            f"precision must be a name such as 'bf16', or what resolve() returned, found {precision!r:.80}"
        )
    return precision


def as_schedule(given: Schedule | LRScheduler | Sequence[LRScheduler] | None) -> Schedule | None:
    """Return the schedule that a step was given, also as one of torch's own schedulers for each optimizer."""
    each = [given] if isinstance(given, LRScheduler) else given
    if isinstance(each, Sequence) and each and all(isinstance(one, LRScheduler) for one in each):
        return Schedule.of(*each)
    return given  # type: ignore[return-value]  # what it is otherwise is looked at with the other parts


def as_loss_and_metrics(returned: object) -> tuple[Tensor, Mapping[str, float | Tensor]]:
    """Return what a loss function returned, as a scalar and metrics by name, if there are any.

    Raises:
        ValueError: the loss is no tensor with one element, or a metric is no number.
    """
    if isinstance(returned, Tensor) and returned.ndim == 0:
        return returned, {}
    loss, metrics = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, {})
    if not isinstance(loss, Tensor) or loss.numel() != 1 or not isinstance(metrics, Mapping):
        found = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else f"a {type(loss).__name__}"
        beside = "" if isinstance(metrics, Mapping) else f" and a {type(metrics).__name__}"
        raise ValueError(
            f"loss_fn must return one number, a scalar tensor, or that and a mapping of metrics, found {found}{beside}"
        )
    for name, value in metrics.items():
        if isinstance(value, Tensor) and value.numel() != 1:
            raise ValueError(f"the metric {name!r} must be one number, found a tensor of shape {tuple(value.shape)}")
    return loss if loss.ndim == 0 else loss.reshape(()), metrics


def refuse_what_is_no_batch(batch: object) -> None:
    """Raise ValueError for a tensor, whose rows would be taken for inputs and targets, and for a batch without rows."""
    if isinstance(batch, Tensor):
        raise ValueError(  # noqa: TRY004  as the others
            f"a batch is a tuple of tensors, found a tensor of shape {tuple(batch.shape)}: call step((inputs, targets))"
        )
    values = batch if isinstance(batch, (tuple, list)) else batch.values() if isinstance(batch, Mapping) else ()
    first = next(iter(values), None)
    if isinstance(first, Tensor) and not first.numel():
        raise ValueError(f"a batch is empty: its first tensor has shape {tuple(first.shape)}, its loss is NaN")


def all_optimizers(given: torch.optim.Optimizer | Sequence[torch.optim.Optimizer]) -> tuple[torch.optim.Optimizer, ...]:
    """Return the optimizers that a step was given, one or several.

    Raises:
        ValueError: something else was given.
    """
    if isinstance(given, torch.optim.Optimizer):
        return (given,)
    found = tuple(given) if isinstance(given, Sequence) else ()
    if not found or not all(isinstance(each, torch.optim.Optimizer) for each in found):
        raise ValueError(f"expected an optimizer or a sequence of them, found a {type(given).__name__}")
    return found


def refuse_foreign(
    model: nn.Module, optimizers: Sequence[torch.optim.Optimizer], *, schedule: object, ema: Ema | None, scaler: object
) -> None:
    """Raise ValueError for parts of a step that belong to another model or optimizer, or to another library."""
    own = {id(param) for param in model.parameters()}
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    if own.isdisjoint(id(param) for group in groups for param in group["params"]):
        raise ValueError("the optimizer holds no parameter of the model: make it of model.parameters()")
    if others := sum(id(param) not in own for group in groups for param in group["params"]):
        warnings.warn(f"{others} parameters of the optimizer are not the model's: no checkpoint has them", stacklevel=3)
    if ema is not None and own.isdisjoint(id(param) for param in ema.params):
        raise ValueError("the averages hold no parameter of the model: make them of model.parameters()")
    if scaler is not None and not isinstance(scaler, LossScaler):
        raise ValueError(f"the scaler must be an amp_core.LossScaler, found {type(scaler).__name__}")
    if schedule is None:
        return
    if not isinstance(schedule, Schedule):
        raise ValueError(  # noqa: TRY004  as the others
            "the schedule must be an amp_core.Schedule, or a scheduler of torch.optim.lr_scheduler for each optimizer,"
            f" found a {type(schedule).__name__}"
        )
    if not schedule.moves(optimizers):
        raise ValueError("the schedule is of other optimizers, or another schedule has taken them over")


def refuse_other_state(state: Mapping[str, Any]) -> None:
    """Raise ValueError unless this has the parts of a step's state."""
    missing = {"model", "optimizers", "scaler", "ema"} - set(state)
    if state and all(isinstance(value, Tensor) for value in state.values()):
        raise ValueError("this is the state of a model: load it with model.load_state_dict, before Ema and TrainStep")
    if missing:
        raise ValueError(
            f"a step's state needs {', '.join(sorted(missing))}, found {sorted(state)}: pass its part 'step'"
        )


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


def refuse_half_precision(model: nn.Module, params: Sequence[nn.Parameter], precision: Precision) -> None:
    """Raise ValueError, with its name in the model, for a parameter in half precision; "bf16" takes bfloat16 ones."""
    names = {id(param): name for name, param in model.named_parameters()}
    for param in params:
        if param.dtype is torch.float16 or param.dtype is torch.bfloat16 is not precision.compute_dtype:
            name = names.get(id(param), "of another model")
            raise ValueError(
                f"parameter {name} is {param.dtype}, expected torch.float32:"
                " call model.float() and let autocast choose the compute dtype"
            )


def refuse_limits(given: float | Sequence[float | None] | None, groups: int) -> None:
    """Raise ValueError unless these are limits of gradient norms: one for all gradients, or one a parameter group."""
    limits = given if isinstance(given, Sequence) else (given,)
    for limit in limits:
        if limit is not None and not limit > 0.0:
            raise ValueError(f"max_grad_norm must be a positive number or None (no clipping), found {limit!r}")
    if limits is given and len(limits) != groups:
        raise ValueError(f"max_grad_norm has {len(limits)} limits for {groups} parameter groups: give each one its own")


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
    if not skips_on_device(optimizer):
        warnings.warn(
            f"{type(optimizer).__name__} is not fused by torch: each step reads back to the host whether it is to be"
            " skipped (pass fused=True to avoid it, where torch has it)",
            stacklevel=3,
        )
