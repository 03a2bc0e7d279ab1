"""How true a model's gradients are in a precision, measured against float64."""

import copy
import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from amp_core.precision import Precision
from amp_core.step import Batch, LossFn

LOSS_SCALE = 2.0**16  # torch.amp.GradScaler's first one


@dataclass(frozen=True)
class GradientError:
    """How far a gradient of `size` elements is from its reference.

    `relative_error` is |gradient - reference| / |reference| in the 2-norm, `cosine` that of the angle between them.
    `flushed` is the share of the reference's nonzero elements that are zero in the gradient, `non_finite` that of inf
    and NaN, which make the error infinite. A cosine is 0 where the gradient is all zero or not finite.
    """

    name: str
    size: int
    relative_error: float
    cosine: float
    flushed: float
    non_finite: float


@dataclass(frozen=True)
class Integrity:
    """The errors of each parameter's gradient, in the model's order, and of all as one vector."""

    parameters: tuple[GradientError, ...]
    total: GradientError


def gradient_integrity(
    model: nn.Module, batch: Batch, loss_fn: LossFn, precision: Precision, *, loss_scale: float | None = None
) -> Integrity:
    """Return the errors of the unscaled gradients that `precision` gives, against those of the same model in float64.

    Both are computed on copies: the model, its buffers and the random generators stay as they are. The loss is
    multiplied by `loss_scale` (2**16 where the precision needs a scaler, else 1). Where a model draws random numbers,
    such as for dropout, the two draw different ones: call `model.eval()` first.

    Raises:
        ValueError: no parameter got a gradient, or the loss scale is not above 0.
    """
    scale = (LOSS_SCALE if precision.needs_scaler else 1.0) if loss_scale is None else loss_scale
    if not scale > 0.0:
        raise ValueError(f"loss_scale must be above 0, found {scale!r}")
    exact_batch = tuple(each.double() if each.is_floating_point() else each for each in batch)
    disabled = torch.autocast(precision.device_type, enabled=False)
    reference = _gradients(copy.deepcopy(model).double(), exact_batch, loss_fn, disabled, 1.0)
    with precision.products():
        found = _gradients(copy.deepcopy(model), batch, loss_fn, precision.autocast(), scale)
    if not reference:
        raise ValueError("no parameter got a gradient: expected a loss that depends on a trainable one")
    pairs = {name: (found.get(name, torch.zeros_like(true)), true) for name, true in reference.items()}
    whole, true_whole = (torch.cat(each) for each in zip(*pairs.values(), strict=True))
    each = tuple(_compare(name, gradient, true) for name, (gradient, true) in pairs.items())
    return Integrity(each, _compare("all", whole, true_whole))


def _gradients(
    model: nn.Module, batch: Batch, loss_fn: LossFn, autocast: torch.autocast, scale: float
) -> dict[str, Tensor]:
    """Return each parameter's true gradient, float64 and flat, of one batch."""
    devices = {parameter.device for parameter in model.parameters() if parameter.device.type == "cuda"}
    with torch.random.fork_rng(devices=list(devices)):
        with autocast:
            loss = loss_fn(model, batch)
        (loss * scale).backward()  # type: ignore[no-untyped-call]  # torch declares no types for it
    having = {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
    return {name: gradient.double().flatten() / scale for name, gradient in having.items()}


def _compare(name: str, gradient: Tensor, true: Tensor) -> GradientError:
    non_finite = (~gradient.isfinite()).double().mean().item()
    nonzero = true != 0.0
    flushed = ((gradient == 0.0) & nonzero).sum().item() / max(1, nonzero.sum().item())
    error = _relative(gradient, true) if non_finite == 0.0 else math.inf
    return GradientError(name, true.numel(), error, _cosine(gradient, true, error), flushed, non_finite)


def _cosine(gradient: Tensor, true: Tensor, error: float) -> float:
    if error == 0.0:
        return 1.0  # also of two gradients that are all zero
    product = gradient.norm() * true.norm()
    return (gradient @ true / product).item() if math.isfinite(error) and product > 0.0 else 0.0


def _relative(gradient: Tensor, true: Tensor) -> float:
    distance, length = (gradient - true).norm().item(), true.norm().item()
    return 0.0 if distance == 0.0 else distance / length if length else math.inf
