"""How float32 products are rounded now, by the interface that the installed torch wants."""

from typing import Any

import pytest
import torch

_BACKENDS: Any = torch.backends
_NEWER = hasattr(_BACKENDS.cuda.matmul, "fp32_precision")
settable = pytest.mark.skipif(not _NEWER, reason="before torch 2.9 a CPU has no such setting")


def rounding() -> str:
    """Return it for matrix products on the CPU."""
    setting: str = _BACKENDS.mkldnn.matmul.fp32_precision
    return setting


def on_cuda() -> tuple[str, str]:
    """Return it for matrix products and for convolutions on CUDA."""
    if _NEWER:
        return _BACKENDS.cuda.matmul.fp32_precision, _BACKENDS.cudnn.conv.fp32_precision
    products, convolutions = ("tf32" if one.allow_tf32 else "ieee" for one in (_BACKENDS.cuda.matmul, _BACKENDS.cudnn))
    return products, convolutions
