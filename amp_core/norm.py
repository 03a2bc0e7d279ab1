"""Normalisations that read and write 16-bit activations, with their statistics and parameters in float32.

Autocast on an accelerator runs `layer_norm` and `rms_norm` in float32: the input is copied to float32 and saved for the
backward pass, the output is float32 and copied once more for the next product. These keep the dtype they are given.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional


class LeanLayerNorm(nn.LayerNorm):
    """A LayerNorm over the last dimensions, whose output has its input's dtype, also under autocast.

    It has nn.LayerNorm's arguments, state and, for a float32 input, bits. One kernel does it all: it accumulates in
    float32 and saves the 16-bit input and two float32 statistics a row.
    """

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  nn.LayerNorm's name for it
        """Return the normalised input, in its own shape and dtype."""
        weight, bias = _cast(self.weight, input), _cast(self.bias, input)
        with torch.autocast(input.device.type, enabled=False):
            return functional.layer_norm(input, self.normalized_shape, weight, bias, self.eps)


class LeanRMSNorm(nn.RMSNorm):
    """An RMSNorm over the last dimension, whose output has its input's dtype, also under autocast.

    It has nn.RMSNorm's state, and saves the input as it is and one float32 statistic a row. `eps=None` means float32's
    epsilon.
    """

    def __init__(self, width: int, eps: float | None = None) -> None:
        super().__init__(width, eps)

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalised input, in its own shape and dtype."""
        eps = torch.finfo(torch.float32).eps if self.eps is None else self.eps
        out: Tensor = _RMSNorm.apply(x, self.weight, eps)  # type: ignore[no-untyped-call]  # torch declares no types
        return out


class _RMSNorm(torch.autograd.Function):
    """y = x / rms(x) * weight, computed in float32 at least, for x (..., width) and weight (width,)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:  # noqa: ANN401  torch has no type for it
        wide = _widen(x)
        inverse = wide.square().mean(-1, keepdim=True).add_(eps).rsqrt_()
        ctx.save_for_backward(x, weight, inverse)
        return (wide * inverse * weight).to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:  # noqa: ANN401  the same
        x, weight, inverse = ctx.saved_tensors
        unit = _widen(x) * inverse
        wide = _widen(grad)
        slope = wide * weight
        grad_x = (slope - unit * (slope * unit).mean(-1, keepdim=True)) * inverse
        return grad_x.to(x.dtype), (wide * unit).flatten(0, -2).sum(0).to(weight.dtype), None


def _widen(tensor: Tensor) -> Tensor:
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _cast(parameter: Tensor | None, like: Tensor) -> Tensor | None:
    """Return a parameter for the kernel: a CPU's takes float32 with 16-bit input; others want one dtype for all."""
    return parameter if parameter is None or like.device.type == "cpu" else parameter.to(like.dtype)
