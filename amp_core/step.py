"""One training step, the same lines for every precision."""

import inspect
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor, nn

from amp_core.precision import Precision
from amp_core.scaler import LossScaler
from amp_core.schedule import Schedule

Batch: TypeAlias = tuple[Tensor, ...]
LossFn: TypeAlias = Callable[[nn.Module, Batch], Tensor]


@dataclass(frozen=True)
class StepResult:
    """What one micro-batch came to: scalars on the device, so that reading them is the caller's choice.

    `loss` is this micro-batch's. `grad_norm` (of the true gradients, before clipping), `found_inf` (1 if the step was
    skipped, else 0) and `loss_scale` (the one its backward passes used) belong to the latest update: they are new
    where `updated` is true, and repeat inside an accumulation window.
    """

    loss: Tensor
    grad_norm: Tensor
    found_inf: Tensor
    loss_scale: Tensor
    updated: bool


class TrainStep:
    """A training step: forward under autocast, scaled backward, unscale, clip, step or skip, update.

    Each call takes one micro-batch; every `accumulate` calls the optimizer steps. `loss_fn(model, batch)` returns a
    mean loss; micro-batches of one window weigh the same. With a fused optimizer a call reads nothing back to
    the host. `max_grad_norm=None` does not clip.

    Raises:
        ValueError: at construction, for an argument out of range, parameters in half precision, an optimizer that
            needs a closure, or one with nothing to train.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        precision: Precision,
        loss_fn: LossFn,
        max_grad_norm: float | None = 1.0,
        accumulate: int = 1,
        schedule: Schedule | None = None,
        scaler: LossScaler | None = None,
    ) -> None:
        if accumulate < 1:
            raise ValueError(f"accumulate must be at least 1, found {accumulate!r}")
        if max_grad_norm is not None and not 0.0 < max_grad_norm < math.inf:
            raise ValueError(f"max_grad_norm must be a positive number or None (no clipping), found {max_grad_norm!r}")
        self.params = _trainable(optimizer)
        _refuse_half_precision(model, self.params)
        _refuse_closures(optimizer)
        _announce_host_read(optimizer)
        device = self.params[0].device
        self.model = model
        self.optimizer = optimizer
        self.precision = precision
        self.loss_fn = loss_fn
        self.max_grad_norm = math.inf if max_grad_norm is None else max_grad_norm
        self.accumulate = accumulate
        self.schedule = schedule
        self.scaler = scaler or LossScaler(device, dynamic=precision.needs_scaler)
        self.grad_norm = torch.zeros((), device=device)
        self.loss_scale = self.scaler.loss_scale.clone()
        self._constant_lr = torch.tensor(float(optimizer.param_groups[0]["lr"]), device=device)
        self._weight = 1.0 / accumulate
        self._in_window = 0

    @property
    def lr(self) -> Tensor:
        """Return the first group's learning rate, a scalar on the device, as the next step will use it."""
        return self._constant_lr if self.schedule is None else self.schedule.lr

    def __call__(self, batch: Batch) -> StepResult:
        """Take one micro-batch; at the end of its window also clip, step or skip, and update the scale."""
        self._in_window = self._in_window % self.accumulate + 1
        boundary = self._in_window == self.accumulate
        with self.precision.autocast():
            loss = self.loss_fn(self.model, batch)
        scaled = self.scaler.scale(loss * self._weight)
        scaled.backward()  # type: ignore[no-untyped-call]  # torch declares no types for it
        if boundary:
            self.loss_scale = self.scaler.loss_scale.clone()  # update changes it in place
            self.scaler.unscale_(self.optimizer)  # clipping must see true gradients
            self.grad_norm = nn.utils.clip_grad_norm_(self.params, self.max_grad_norm)
            self.scaler.skip_unless_finite(self.optimizer, self.grad_norm)
            self.scaler.step(self.optimizer)  # skips by itself; a fused optimizer decides inside its kernel
            self.scaler.update()  # counters, floor and ceiling stay on the device
            if self.schedule is not None:
                self.schedule.advance(self.scaler.applied)  # a skipped step must not advance it
            self.optimizer.zero_grad(set_to_none=True)
        return StepResult(loss.detach(), self.grad_norm, self.scaler.found_inf, self.loss_scale, updated=boundary)


def _trainable(optimizer: torch.optim.Optimizer) -> list[nn.Parameter]:
    params = [param for group in optimizer.param_groups for param in group["params"] if param.requires_grad]
    if not params:
        raise ValueError("the optimizer has no trainable parameter: set requires_grad, or pass it model.parameters()")
    return params


def _refuse_half_precision(model: nn.Module, params: list[nn.Parameter]) -> None:
    names = {id(param): name for name, param in model.named_parameters()}
    for param in params:
        if param.dtype in (torch.float16, torch.bfloat16):
            name = names.get(id(param), "of another model")
            raise ValueError(
                f"parameter {name} is {param.dtype}, expected torch.float32:"
                " call model.float() and let autocast choose the compute dtype"
            )


def _refuse_closures(optimizer: torch.optim.Optimizer) -> None:
    closure = inspect.signature(optimizer.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise ValueError(
            f"{type(optimizer).__name__} needs a closure, which loss scaling cannot serve:"
            " use an optimizer such as torch.optim.AdamW(..., fused=True)"
        )


def _announce_host_read(optimizer: torch.optim.Optimizer) -> None:
    if not getattr(optimizer, "_step_supports_amp_scaling", False):
        warnings.warn(
            f"{type(optimizer).__name__} is not fused: each step reads one number back to the host"
            " (pass fused=True to avoid it)",
            stacklevel=3,
        )
