"""What really ran: the dtypes that a model's matrix products gave in one forward pass."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from amp_core.precision import Precision

MATRIX_PRODUCTS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
WIDE = {torch.float32, torch.float64}


@contextmanager
def observed_dtypes(model: nn.Module) -> Iterator[set[torch.dtype]]:
    """Yield a set that fills with the dtypes that linear and convolution layers give while the block runs.

    Nothing is seen of a model without such layers, nor of one that is compiled, whole or in part: hooks would break
    its graphs, and taking them away would compile it a second time.
    """
    dtypes: set[torch.dtype] = set()

    def see(_module: nn.Module, _inputs: Any, output: Any) -> None:  # noqa: ANN401  hooks take what comes
        if isinstance(output, Tensor):
            dtypes.add(output.dtype)

    modules = [*model.modules()]
    compiled = any(hasattr(each, "_orig_mod") or getattr(each, "_compiled_call_impl", None) for each in modules)
    layers = [] if compiled else [module for module in modules if isinstance(module, MATRIX_PRODUCTS)]
    handles = [layer.register_forward_hook(see) for layer in layers]
    try:
        yield dtypes
    finally:
        for handle in handles:
            handle.remove()


def warn_unless_seen(dtypes: set[torch.dtype], precision: Precision) -> None:
    """Warn if matrix products were seen, and none of them ran in the precision that was asked for."""
    wide = precision.compute_dtype is torch.float32 and dtypes <= WIDE
    if dtypes and precision.compute_dtype not in dtypes and not wide:
        found = ", ".join(sorted(map(str, dtypes)))
        warnings.warn(
            f"{precision.name} was asked for, but every linear and convolution layer computed in {found}:"
            " look for an autocast that the model turns off or overrides",
            stacklevel=4,
        )
