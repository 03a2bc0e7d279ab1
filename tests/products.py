"""How float32 products are rounded now, by torch's newer interface."""

from typing import Any

import torch

_BACKENDS: Any = torch.backends


def rounding() -> str:
    """Return it for matrix products on the CPU."""
    setting: str = _BACKENDS.mkldnn.matmul.fp32_precision
    return setting


def convolutions() -> str:
    """Return it for convolutions on CUDA."""
    setting: str = _BACKENDS.cudnn.conv.fp32_precision
    return setting
