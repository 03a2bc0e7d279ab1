"""Copies of batches to a device."""

import torch
from torch import Tensor

from amp_core.step import Batch


def pins_memory(device_type: str) -> bool:
    """Say whether batches for a device type are pinned, and so may be copied without blocking."""
    return device_type in ("cuda", "xpu")


def to_device(batch: Batch, device: torch.device, *, non_blocking: bool = True) -> Batch:
    """Return the batch on the device; what may be copied without blocking is, if that is safe: from pinned memory.

    A copy to the host always blocks: whoever read it before it had ended would read garbage.
    """
    return tuple(tensor.to(device, non_blocking=non_blocking and _may_not_block(tensor)) for tensor in batch)


class SideStream:
    """Copies batches to an accelerator beside the work of its current stream."""

    def __init__(self, device: torch.device) -> None:
        self._module = torch.get_device_module(device)  # torch.cuda, or torch.xpu with the same names
        self._stream = self._module.Stream(device)

    def to_device(self, batch: Batch, device: torch.device) -> Batch:
        """Return the batch on the device; only this stream may use it before `hand_over`."""
        with self._module.stream(self._stream):
            return to_device(batch, device)

    def hand_over(self, batch: Batch) -> None:
        """Make the current stream wait for the copies so far, and its allocator keep their memory until it is done."""
        current = self._module.current_stream(self._stream.device)
        current.wait_stream(self._stream)
        for tensor in batch:
            tensor.record_stream(current)


def _may_not_block(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu" and tensor.is_pinned()
