"""What really ran: the dtypes that a model's matrix products gave in one forward pass."""

import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from amp_core.precision import Precision

MATRIX_PRODUCTS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


class ObservedDtypes:
    """Watches the linear and convolution layers of a model until it is told to conclude, once.

    Nothing is seen of a model without such layers, nor of one that is compiled, whole or in part: hooks would break
    its graphs, and taking them away would compile it a second time.
    """

    def __init__(self, model: nn.Module) -> None:
        self.dtypes: set[torch.dtype] = set()
        self._handles: list[RemovableHandle] = []
        if not any(map(_is_compiled, model.modules())):
            layers = (module for module in model.modules() if isinstance(module, MATRIX_PRODUCTS))
            self._handles = [layer.register_forward_hook(self._see) for layer in layers]

    def conclude(self, precision: Precision) -> None:
        """Stop watching, and warn if no matrix product ran in the precision that was asked for."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        if self.dtypes and precision.compute_dtype not in self.dtypes:
            found = ", ".join(sorted(map(str, self.dtypes)))
            warnings.warn(
                f"{precision.name} was asked for, but every linear and convolution layer computed in {found}:"
                " look for an autocast that the model turns off or overrides",
                stacklevel=4,
            )

    def _see(self, _module: nn.Module, _inputs: Any, output: Any) -> None:  # noqa: ANN401  hooks take what comes
        if isinstance(output, Tensor):
            self.dtypes.add(output.dtype)


def _is_compiled(module: nn.Module) -> bool:
    """Say whether torch.compile(module) or module.compile() made this."""
    return hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None
